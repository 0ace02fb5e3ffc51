"""Studies: grids of trials on domains with known values."""
