"""Who holds what of one cluster, and who waits for how much: plain data, and nothing prints."""
