"""A kind cluster on this machine: its config file, and the scripts that create and delete it."""

from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent
