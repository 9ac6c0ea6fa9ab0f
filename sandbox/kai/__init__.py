"""What KAI does to a cluster, simulated."""
