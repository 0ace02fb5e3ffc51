"""Models of the environment, one small file each, fitted from weighted trajectories."""
