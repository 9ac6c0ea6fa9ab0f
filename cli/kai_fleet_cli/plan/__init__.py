"""The offline plan: the program without an engine, and how its result is shown."""
