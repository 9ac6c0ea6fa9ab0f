"""The policy pack of an installed package, as Pulumi's language host runs it.

Nothing may import this module: a policy pack serves the engine and never returns.
"""

from kai_fleet_policies.pack.analyzer import main

main()
