"""The program of a stack, as Pulumi's Python host runs it."""

import runpy

from kai_fleet_cli.stack_file.reading import ROOT


def program() -> None:
    """Declare the stack, with all that the project's file declares."""
    main = ROOT / "__main__.py"
    if main.is_file():
        runpy.run_path(str(main), run_name="__main__")
        return
    from kai_fleet.program import program as declare
    from kai_fleet_policies.validation import checked_settings

    declare(checked_settings)
