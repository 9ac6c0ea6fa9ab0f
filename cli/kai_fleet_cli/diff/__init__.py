"""Two plans compared: what an edit refuses, loses, restarts and changes."""
