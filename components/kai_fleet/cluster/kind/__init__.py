"""A kind cluster on this machine: its config file as data, and the scripts that make it."""

from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent
