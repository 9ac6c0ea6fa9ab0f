"""Running Pulumi: a stack's environment, its updates, and how they are interrupted."""
