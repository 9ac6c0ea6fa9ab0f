"""`kubectl fleet`: a team's queues, its GPUs and why its pods wait, by its own kubeconfig."""
