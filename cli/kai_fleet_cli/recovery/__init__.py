"""Failures of the engine: their causes, and the commands that repair them."""
