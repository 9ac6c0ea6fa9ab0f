"""What rules read: a cluster, its teams, queues, and pods."""
