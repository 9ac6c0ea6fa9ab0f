"""What keeps teams apart on the host: a team's namespace and everything that bounds it."""
