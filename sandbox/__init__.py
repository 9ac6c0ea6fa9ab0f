"""The local control plane: a whole cluster on this machine, with fake GPU nodes."""
