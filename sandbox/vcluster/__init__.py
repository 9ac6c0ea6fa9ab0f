"""A control plane for every vCluster."""
