"""A kind cluster on this machine: its config file, and the scripts that create and delete it."""

from pathlib import Path

SCRIPTS = Path(__file__).parent
