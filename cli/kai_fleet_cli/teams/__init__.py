"""Teams by command: added, switched, rolled back, moved, listed, removed."""
