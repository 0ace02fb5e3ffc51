"""From settings to an answer: what is computed, how far to trust it, and which bound to use."""
