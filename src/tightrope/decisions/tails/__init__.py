"""The distribution of the candidate's return: its tail, not only its mean."""
