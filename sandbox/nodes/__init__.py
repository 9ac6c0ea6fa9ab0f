"""Fake nodes."""
