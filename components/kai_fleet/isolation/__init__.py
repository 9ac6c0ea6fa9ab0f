"""What keeps a team within its bounds: its namespace, and the guards of the host."""
