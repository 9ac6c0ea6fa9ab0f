"""The program of a team's removal: its stack's outputs without the team, and nothing else.

The engine leaves everything else in the stack as it is (fleet/neighbours.py), so nothing of that
has to be declared: a second and a half of work beside nineteen other teams, most of it imports.
"""

from __future__ import annotations

from components.focus import declared
from components.outputs import export
from components.past import read_past
from components.platform_reading import read_platform
from policies.gate import checked_settings


def run() -> None:
    """Say again what the stack has, less the team that its file no longer holds.

    Raises pulumi.RunError as the project's own program does.
    """
    past = read_past()
    settings = checked_settings(past, read_platform)
    export(settings, declared(settings, past), teams={}, workloads={})
