"""What was read of a cluster, and why pods wait: plain functions from the one to findings."""
