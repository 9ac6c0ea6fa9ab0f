"""Rules about teams: their nodes, queues and grants."""
