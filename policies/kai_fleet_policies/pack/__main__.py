"""The policy pack as the Pulumi engine runs it.

Nothing may import this module: a policy pack serves the engine and never returns (P5).
"""

import runpy

runpy.run_module("kai_fleet_policies.pack.analyzer", run_name="__main__")
