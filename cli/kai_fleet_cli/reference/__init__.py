"""What `make reference` writes: pages from the code."""
