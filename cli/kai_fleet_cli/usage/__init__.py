"""`fleet usage`: who used how many GPUs, over time by Prometheus, or now by the clusters."""
