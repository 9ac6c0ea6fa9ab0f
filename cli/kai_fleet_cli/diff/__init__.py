"""Two plans compared: what an edit changes, in words."""
