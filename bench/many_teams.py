"""Many teams at once, beside a script that makes one after the other."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.by_hand import ByHand
from bench.figures import Figure, Table, exponent
from bench.program import Program
from bench.stacks import team, teams

OLD, NEW = "v0.14.7", "v0.16.8"
_SCRIPTED: Final = 3  # teams that the script really makes; it is linear, so more tell nothing more


@dataclass(frozen=True)
class Script:
    """Seconds of each step for one team, by hand."""

    new: float
    switched: float
    removed: float


def compare(program: Program, sizes: list[int], pod_seconds: str) -> Table:
    """First `up` of each size, and what is done to one team among them."""
    table = Table(f"Many teams in one stack, pods start after {pod_seconds} s", "script")
    script = _scripted(program)
    firsts = []
    for size in sizes:
        all_of_them = teams(size, OLD)
        program.write(all_of_them)
        first = program.fleet("up")
        firsts.append((float(size), first.seconds))
        nothing = program.fleet("up")
        program.write(_with(all_of_them, team0=team("bench-0", NEW)))
        switched = program.fleet("up")
        program.write(all_of_them)
        rolled_back = program.fleet("up")
        program.write(_with(all_of_them, team0=None))
        removed = program.fleet("up")
        program.write(all_of_them)
        added = program.fleet("up")
        wanted, by_script = 1 / 3 if size >= 20 else None, script.new * size
        table.figures += [
            Figure(f"{size} teams: first `up`", first.seconds, by_script, wanted, first.mib),
            Figure(f"{size} teams: `up`, nothing changed", nothing.seconds, mib=nothing.mib),
            Figure(f"{size} teams: one switched", switched.seconds, script.switched, 1.3),
            Figure(f"{size} teams: one rolled back, by replacement", rolled_back.seconds),
            Figure(f"{size} teams: one removed", removed.seconds, script.removed, 1.0),
            Figure(f"{size} teams: one added", added.seconds, script.new, 1.3),
        ]
        program.fleet("destroy")
    if len(firsts) > 1:
        table.notes.append(f"First `up` grows with teams^{exponent(firsts):.2f} (1 is linear).")
    table.notes.append(
        f"The script really made {_SCRIPTED} teams, {script.new:.1f} s each, and is linear; its"
        " time for more is that times their number."
    )
    return table


def _scripted(program: Program) -> Script:
    with tempfile.TemporaryDirectory() as folder:
        charts = program.sandbox.directory / "charts"
        hands = [
            ByHand(program.sandbox, Path(folder), charts, f"hand{n}") for n in range(_SCRIPTED)
        ]
        new = sum(hand.new_team(OLD) for hand in hands) / _SCRIPTED
        switched = min(hand.upgrade(NEW) for hand in hands)
        begun = time.monotonic()
        for hand in hands:
            hand.remove()
        return Script(new, switched, (time.monotonic() - begun) / _SCRIPTED)


def _with(config: dict[str, Any], **changed: dict[str, Any] | None) -> dict[str, Any]:
    merged = {**config["kai-fleet:teams"], **changed}
    return {**config, "kai-fleet:teams": {name: it for name, it in merged.items() if it}}
