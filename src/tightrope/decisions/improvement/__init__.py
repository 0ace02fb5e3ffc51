"""A better policy: proposed on one part of the logs, tested once on the other."""
