"""What the rules look at, read from where it stands: settings, declared resources, the engine."""
