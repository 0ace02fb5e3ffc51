"""Models that step: fitted transitions, simulated forward."""
