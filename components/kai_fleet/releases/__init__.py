"""Where charts come from, which values they have, and what Helm records of them."""
