"""Pages of the documentation that studies write."""
