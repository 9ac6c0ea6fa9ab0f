"""What was read of one API server: its objects, and what is said of them."""
