"""A small Kubernetes control plane: etcd, API server, controllers, and their processes."""
