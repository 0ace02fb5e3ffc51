"""Models that count: states and actions with labels."""
