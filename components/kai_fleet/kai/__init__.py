"""KaiScheduler: its arguments, its chart values and how it gets to another version."""
