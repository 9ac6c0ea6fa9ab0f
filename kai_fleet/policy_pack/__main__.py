"""The policy pack as the Pulumi engine runs it, from an installed package.

Nothing may import this module: a policy pack serves the engine and never returns (P5).
"""

import runpy

runpy.run_module("kai_fleet.policies.pack.analyzer", run_name="__main__")
