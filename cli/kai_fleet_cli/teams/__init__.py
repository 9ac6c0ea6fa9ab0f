"""Teams by command: added, switched, rolled back, tried, moved, listed, removed."""
