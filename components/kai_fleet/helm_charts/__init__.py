"""The chart that a Helm release asks for, and the one that Helm installed."""
