"""Many teams at once, beside a script that makes one after the other."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.by_hand import ByHand
from bench.figures import Figure, Table, exponent
from bench.program import Program
from bench.stacks import teams

VERSION = "v0.9.3"
_SCRIPTED = 4  # teams that the script really makes; it is linear, so more tell nothing more


def compare(program: Program, sizes: list[int], pod_seconds: str) -> Table:
    """First `up` of each size, and what one more switch costs among them."""
    table = Table("Many teams in one stack", "script")
    firsts = []
    with tempfile.TemporaryDirectory() as folder:
        took = 0.0
        hands = [
            ByHand(
                program.sandbox,
                Path(folder),
                program.sandbox.directory / "charts",
                f"hand{n}",
                "vision",
            )
            for n in range(_SCRIPTED)
        ]
        for hand in hands:
            took += hand.new_team(VERSION)
        for hand in hands:
            hand.remove()
    each = took / _SCRIPTED
    for size in sizes:
        program.write(teams(size, VERSION))
        first = program.fleet("up")
        nothing = program.fleet("up")
        firsts.append((float(size), first.seconds))
        wanted = 1 / 3 if size >= 20 else None
        table.figures += [
            Figure(f"{size} teams: first `up`", first.seconds, each * size, wanted, first.mib),
            Figure(f"{size} teams: `up`, nothing changed", nothing.seconds, mib=nothing.mib),
        ]
        program.fleet("destroy")
    if len(firsts) > 1:
        table.notes.append(f"First `up` grows with teams^{exponent(firsts):.2f} (1 is linear).")
    table.notes.append(
        f"The script made {_SCRIPTED} teams, {each:.1f} s each, and is linear; its time for more is"
        f" that times their number. Pods start after {pod_seconds or '0'} s here."
    )
    return table
