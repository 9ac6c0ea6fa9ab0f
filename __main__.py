"""A GPU cluster for many teams, as the engine runs it.

The steps are in `components/kai_fleet/program.py`, one after the other: settings, which every rule
judges before anything is declared; the host cluster; monitoring; each team; workloads; outputs.
"""

from kai_fleet.program import program
from kai_fleet_policies.validation import checked_settings

if __name__ == "__main__":
    program(checked_settings)
    # Resources of your own can follow here: `pulumi up` and `fleet up` both declare them.
