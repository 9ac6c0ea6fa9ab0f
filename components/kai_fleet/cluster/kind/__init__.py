"""A kind cluster on this machine: its config file as data, and the scripts that make it."""
