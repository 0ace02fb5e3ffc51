"""Bounds calibrated on logs that are simulated from models fitted to the logs: approximate."""
