"""What is asked about a whole stack, beside what it runs now."""
