"""Reaching a cluster: its access, its identity, a Secret of it, the project's own provider."""
