"""The program of a stack: the project's own `__main__.py`, or the package's where there is none."""

import runpy
from importlib import import_module
from threading import Thread

from kai_fleet.state.targeting import Targets
from kai_fleet_cli.stack_file.reading import ROOT


def load() -> None:
    """Begin to import what the program declares, half a second's work, while the CLI starts."""
    Thread(target=import_module, args=["kai_fleet.program"], daemon=True).start()


def program(targets: Targets | None = None) -> None:
    """Declare the stack as Pulumi's Python host does, with all that the project's file declares.

    With `targets` only the teams that they name; the engine leaves alone what is no target.
    """
    main = ROOT / "__main__.py"
    if targets is None and main.is_file():
        runpy.run_path(str(main), run_name="__main__")
        return
    from kai_fleet.program import program as declare
    from kai_fleet_policies.validation import checked_settings

    declare(checked_settings, targets)
