"""What every room uses: errors, checks, logged data, policies, ratios, the problem, and contracts between rooms."""
