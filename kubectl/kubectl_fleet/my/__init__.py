"""What a team asks its own cluster: its queues, its GPUs, its pods that wait."""
