"""Models that are simulated forward, step by step."""
