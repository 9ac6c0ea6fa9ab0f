"""A GPU cluster for many teams, as the engine runs it.

The steps are in `stack/kai_fleet_stack/stack_program.py`, one after the other: settings, which
every rule judges before anything is declared; the host cluster; monitoring; each team; workloads;
outputs.
"""

from kai_fleet_stack import program

if __name__ == "__main__":
    program()
    # Resources of your own can follow here: `pulumi up` and `fleet up` both declare them.
