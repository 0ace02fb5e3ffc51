"""Fitted Q evaluation: what is done in the logs and what the candidate would do, as features; sums; regressors."""
