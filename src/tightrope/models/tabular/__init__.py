"""Models that count, for numbered states and actions."""
