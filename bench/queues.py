"""Queue trees: the program beside `kubectl` on a file of the same objects."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bench.figures import Figure, Table, exponent
from bench.host_objects import listed, queue
from bench.program import Program
from bench.stacks import host_queues
from kai_fleet.settings import load
from kai_fleet.settings.sections.queues import walk

_MANY: Final = 5000  # queues; a run's own seconds do not count there


def compare(program: Program, sizes: list[int]) -> Table:
    """First `up`, no change, one change, removal, at each size, on one host with KAI."""
    table = Table("Queues of one host", "`kubectl`")
    program.write(host_queues(0))
    program.fleet("up")
    firsts = []
    for size in sizes:
        firsts.append((float(size), _one_size(program, size, table)))
    if len(firsts) > 1:
        table.notes.append(f"First `up` grows with queues^{exponent(firsts):.2f} (1 is linear).")
    return table


def _one_size(program: Program, size: int, table: Table) -> float:
    config, changed = host_queues(size), host_queues(size, first=0.5)
    program.write(config)
    count = len(manifests(config, ""))
    first = program.fleet("up")
    nothing, preview = program.fleet("up"), program.fleet("preview")
    mib = program.fleet("up", memory=True).mib
    program.write(changed)
    change = program.fleet("up")
    program.write(host_queues(0))
    removal = program.fleet("up")
    with tempfile.TemporaryDirectory() as folder:
        file, other = Path(folder) / "queues.json", Path(folder) / "changed.json"
        # Names of their own: the program's queues are not taken over.
        file.write_text(listed(manifests(config, "by-hand-")))
        other.write_text(listed(manifests(changed, "by-hand-")))
        apply = ("kubectl", "apply", "--server-side", "-f")
        hand_first = program.hand(*apply, str(file))
        hand_diff = program.hand("kubectl", "diff", "--server-side", "-f", str(file), fine=(0, 1))
        hand_nothing = program.hand(*apply, str(file))
        hand_change = program.hand(*apply, str(other))
        hand_removal = program.hand("kubectl", "delete", "--wait=false", "-f", str(file))
    what = f"{count} queues: "
    table.figures += [
        Figure(
            f"{what}first `up`", first.seconds, hand_first.seconds, 1.0 if size >= _MANY else None
        ),
        Figure(f"{what}`up`, nothing changed", nothing.seconds, hand_nothing.seconds, mib=mib),
        Figure(f"{what}preview, nothing changed", preview.seconds, hand_diff.seconds),
        Figure(f"{what}`up`, one changed", change.seconds, hand_change.seconds),
        Figure(f"{what}all removed", removal.seconds, hand_removal.seconds),
    ]
    return first.seconds


def manifests(config: Mapping[str, Any], prefix: str) -> list[Any]:
    """The tree of a stack file as Queue objects, their names with a prefix."""
    settings = load({key.partition(":")[2]: value for key, value in config.items()}).settings
    assert settings is not None
    return [
        queue(f"{prefix}{it.name}", it.queue.spec(f"{prefix}{it.parent}" if it.parent else None))
        for it in walk(settings.queues)
    ]
