"""A GPU cluster for many teams, as the engine runs it; step by step: kai_fleet/program.py."""

from kai_fleet.program import program
from kai_fleet_policies.validation import checked_settings

if __name__ == "__main__":
    program(checked_settings)
    # Resources of your own can follow here: `pulumi up` and `fleet up` both declare them.
