"""What a stack runs now, by its own state, and what it takes to get from there."""
