"""What lets a team have a stack of its own: its account, and the rights of that."""
