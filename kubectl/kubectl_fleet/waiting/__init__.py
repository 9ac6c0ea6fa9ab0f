"""Why pods wait: plain functions from what was read of a cluster to findings."""
