"""One team: made, switched, rolled back, removed, beside a script that does the same by hand."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from bench.by_hand import ByHand
from bench.figures import Figure, Table
from bench.program import Program
from bench.stacks import BASE, VCLUSTER, team
from bench.synced import synced

OLD, NEW, OTHER = "v0.14.7", "v0.16.8", "v0.9.3"
# What the charts take from nothing to a working team on a real cluster, in seconds: measured on
# one node with KAI v0.9.3 inside a vCluster, plain helm and kubectl, images already there.
REAL_TEAM: Final = 43.0
SHARE: Final = 0.15  # of that, the most that the program may add


def compare(program: Program, pod_seconds: str) -> Table:
    """A neighbour is there throughout. The better of two counts where a step is done twice."""
    pods = f"pods start after {pod_seconds} s" if pod_seconds else "pods start at once"
    table = Table(f"One team beside a neighbour, {pods}", "`helm` and `kubectl`")
    program.write(_stack())
    program.fleet("up")
    nothing = program.fleet("up").seconds
    new = _up(program, OLD)
    in_place = _up(program, NEW)
    replaced = _up(program, OTHER)
    again = _up(program, NEW)
    synced(program.sandbox, "team-mover", "ml", NEW)
    removed = _up(program, None)
    with tempfile.TemporaryDirectory() as folder:
        hand = ByHand(program.sandbox, Path(folder), program.sandbox.directory / "charts")
        by_hand = hand.new_team(OLD)
        upgraded = hand.upgrade(NEW)
        swapped = hand.replace(OTHER)
        upgraded = min(upgraded, hand.upgrade(NEW))
        synced(program.sandbox, hand.namespace, hand.pool, NEW)
        removal = hand.remove()
    table.figures += [
        Figure("a new team", new, by_hand),
        Figure("switch in place", min(in_place, again), upgraded, 2.0),
        Figure("switch by replacement", replaced, swapped, 2.0),
        Figure("a team removed", removed, removal, 1.0),
        Figure("`up`, nothing changed", nothing),
    ]
    over = new - by_hand
    table.notes.append(
        f"A new team takes {over:.1f} s more than its charts: {over / REAL_TEAM:.0%} of the"
        f" {REAL_TEAM:.0f} s that these take on a real cluster (wanted: under {SHARE:.0%})."
    )
    return table


def _stack(**teams: Any) -> dict[str, Any]:
    neighbour = {"neighbour": team("research", NEW)}
    return {**BASE, "kai-fleet:vcluster": VCLUSTER, "kai-fleet:teams": {**neighbour, **teams}}


def _up(program: Program, version: str | None) -> float:
    program.write(_stack(mover=team("ml", version)) if version else _stack())
    return program.fleet("up").seconds
