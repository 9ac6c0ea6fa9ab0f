"""Running Pulumi: a stack's environment, and its updates."""
