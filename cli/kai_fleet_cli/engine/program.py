"""The program of a stack: the project's own `__main__.py`, or the package's where there is none."""

import runpy

from kai_fleet.program import program as declare
from kai_fleet.state.targeting import Targets
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies.validation import checked_settings


def program(targets: Targets | None = None) -> None:
    """Declare the stack as Pulumi's Python host does, with all that the project's file declares.

    With `targets` only the teams that they name; the engine leaves alone what is no target.
    """
    main = ROOT / "__main__.py"
    if targets is None and main.is_file():
        runpy.run_path(str(main), run_name="__main__")
    else:
        declare(checked_settings, targets)
