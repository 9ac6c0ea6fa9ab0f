"""Stand-ins for Pulumi's Kubernetes and Command provider plugins.

They are used only where the official plugins cannot be had, speak the same
protocol (gRPC, one process per provider resource) and follow the official
plugins in what they make, keep in the state, replace and wait for.
"""
