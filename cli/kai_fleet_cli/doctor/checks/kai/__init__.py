"""Checks of KAI, its queues and its shards."""
