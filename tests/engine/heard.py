"""`python heard.py FILE team switch …`: a `fleet` command as typed, the engine's events in FILE.

FILE gets a line per step, begun or ended, of every update and removal that the command ran: its
operation and its URN. Run it with the project as PYTHONPATH.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from fleet import engine_events
from fleet.__main__ import main


def listen(file: Path) -> None:
    """Have what the commands hear of the engine written to the file as well."""
    hear = engine_events.Told.hear
    file.touch()

    def noted(told: engine_events.Told, event: Any) -> None:
        step = event.resource_pre_event or event.res_outputs_event or event.res_op_failed_event
        if step is not None:
            operation = getattr(step.metadata.op, "value", step.metadata.op)
            with file.open("a") as lines:
                lines.write(f"{operation} {step.metadata.urn}\n")
        hear(told, event)

    engine_events.Told.hear = noted


if __name__ == "__main__":
    listen(Path(sys.argv[1]))
    sys.argv = ["fleet", *sys.argv[2:]]
    main()
