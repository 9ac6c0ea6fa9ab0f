"""One team: made, switched, rolled back, removed, beside a script that does the same by hand."""

import tempfile
from pathlib import Path
from typing import Any

from bench.by_hand import ByHand
from bench.figures import Figure, Table
from bench.host_objects import synced
from bench.program import Program
from bench.stacks import BASE, VCLUSTER, team

OLD, NEW, OTHER = "v0.14.7", "v0.16.8", "v0.9.3"
# Multiples of the script's time, at most.
NEW_TEAM, IN_PLACE, REPLACEMENT, REMOVAL = 1.1, 1.15, 1.25, 1.3


def compare(program: Program, pod_seconds: str) -> Table:
    """A neighbour is there throughout. The better of two counts where a step is done twice."""
    title = f"One team beside a neighbour, pods start after {pod_seconds} s"
    table = Table(title, "`helm` and `kubectl`")
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
        Figure("a new team", new, by_hand, NEW_TEAM),
        Figure("switch in place", min(in_place, again), upgraded, IN_PLACE),
        Figure("switch by replacement", replaced, swapped, REPLACEMENT),
        Figure("a team removed", removed, removal, REMOVAL),
        Figure("`up`, nothing changed", nothing),
    ]
    table.notes.append(
        "What `up` takes where nothing changed is what every command takes beside its work: the"
        " CLI, its calls before and after an update, the plugins, the policy pack, the program."
        " A script has no such part, and no state, preview or rules either."
    )
    return table


def _stack(**teams: Any) -> dict[str, Any]:
    neighbour = {"neighbour": team("research", NEW)}
    return {**BASE, "kai-fleet:vcluster": VCLUSTER, "kai-fleet:teams": {**neighbour, **teams}}


def _up(program: Program, version: str | None) -> float:
    gone = {**_stack(), "kai-fleet:removed": ["mover"]}  # a team goes only where it is named
    program.write(_stack(mover=team("ml", version)) if version else gone)
    return program.fleet("up").seconds
