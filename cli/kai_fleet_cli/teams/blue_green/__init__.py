"""Two KAI versions side by side: a second team on a part of the nodes."""
