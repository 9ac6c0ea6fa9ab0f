"""Rules about where charts and images come from."""
