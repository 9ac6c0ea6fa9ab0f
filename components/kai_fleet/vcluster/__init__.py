"""VirtualCluster: its arguments, its chart values and its kubeconfig."""
