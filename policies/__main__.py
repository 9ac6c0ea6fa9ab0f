"""The policy pack as the Pulumi engine runs it.

Nothing may import this module: a policy pack serves the engine and never returns (P5).
"""

import runpy
import sys
from pathlib import Path

# The engine starts the pack in its own directory, from wherever the program is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

runpy.run_module("kai_fleet.policies.pack.analyzer", run_name="__main__")
