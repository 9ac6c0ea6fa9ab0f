"""`python heard.py FILE team switch …`: a `fleet` command as typed, the engine's events in FILE.

FILE gets a line per step, begun or ended, of every update and removal that the command ran: its
operation and its URN. Run it with the project as PYTHONPATH.
"""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pulumi import automation

from kai_fleet_cli.__main__ import main


def listening(run: Callable[..., Any], file: Path) -> Callable[..., Any]:
    """A method of a stack that writes the events which it hears to the file as well."""

    @functools.wraps(run)
    def heard(*arguments: Any, on_event: Any = None, **more: Any) -> Any:
        def noted(event: Any) -> None:
            step = event.resource_pre_event or event.res_outputs_event or event.res_op_failed_event
            if step is not None:
                operation = getattr(step.metadata.op, "value", step.metadata.op)
                with file.open("a") as lines:
                    lines.write(f"{operation} {step.metadata.urn}\n")
            if on_event is not None:
                on_event(event)

        return run(*arguments, on_event=noted, **more)

    return heard


if __name__ == "__main__":
    into = Path(sys.argv[1])
    into.touch()
    for name in ("up", "destroy"):
        setattr(automation.Stack, name, listening(getattr(automation.Stack, name), into))
    sys.argv = ["fleet", *sys.argv[2:]]
    main()
