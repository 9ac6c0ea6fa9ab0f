"""Objects as API servers answer them, and what is said of them."""
