"""Pages that `make reference` generates from the code."""
