"""Teams by command: added, switched, rolled back, listed, removed."""
