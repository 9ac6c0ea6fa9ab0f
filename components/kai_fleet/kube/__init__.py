"""The product's client of Kubernetes: a kubeconfig, and plain requests for JSON."""
