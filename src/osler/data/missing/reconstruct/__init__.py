"""Ways to reconstruct a missing value from the other columns of its row."""
