"""What this stack has made, and what others have: a component leaves that alone."""
