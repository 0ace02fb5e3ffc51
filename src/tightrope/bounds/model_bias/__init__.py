"""How far a model's value can be from the truth."""
