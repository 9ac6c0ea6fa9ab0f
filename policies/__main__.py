"""The policy pack as the Pulumi engine runs it.

Nothing may import this module: a PolicyPack serves the engine and never returns (P5).
"""

import runpy
import sys
from pathlib import Path

# The engine starts the pack in its own directory, from wherever the program is.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from provider.launch import LOADED, hand_over

code = hand_over(LOADED, "policies.pack", sys.argv[1:])
if code is not None:
    sys.exit(code)
runpy.run_module("policies.pack", run_name="__main__")
