"""Rules about queue trees."""
