"""One team: made, switched, rolled back, removed, beside a script that does the same by hand."""

import tempfile
from pathlib import Path
from typing import Any

from bench.by_hand import ByHand
from bench.figures import Figure, Table
from bench.host_objects import synced
from bench.program import Program
from bench.stacks import BASE, VCLUSTER, team

OLD, NEW, OTHER = "v0.14.7", "v0.16.8", "v0.9.3"  # upwards in place, back by replacement
# Multiples of the script's time, at most.
NEW_TEAM, IN_PLACE, REPLACEMENT, REMOVAL = _WANTED = 1.1, 1.15, 1.25, 1.3
_STEPS = ("a new team", "switch in place", "switch by replacement", "a team removed")


def compare(program: Program, pod_seconds: str) -> Table:
    """A neighbour is there throughout. Each side does each step twice; the better of two counts."""
    title = f"One team beside a neighbour, pods start after {pod_seconds} s"
    table = Table(title, "`helm` and `kubectl`")
    program.write(_stack())
    program.fleet("up")
    nothing = min(program.fleet("up").seconds for _ in range(2))
    rounds = [(_by_program(program), _by_hand(program)) for _ in range(2)]
    ours, scripted = (list(map(min, *done)) for done in zip(*rounds, strict=True))
    for what, seconds, by_hand, wanted in zip(_STEPS, ours, scripted, _WANTED, strict=True):
        table.figures.append(Figure(what, seconds, by_hand, wanted))
    table.figures.append(Figure("`up`, nothing changed", nothing))
    table.notes.append(
        "Each step was done twice by each, and the better of two counts. What `up` takes where"
        " nothing changed is what every command takes beside its work: the CLI, its calls before"
        " and after an update, the plugins, the policy pack, the program. A script has no such"
        " part, and no state, preview or rules either."
    )
    return table


def _by_program(program: Program) -> tuple[float, ...]:
    steps = [_up(program, version) for version in (OLD, NEW, OTHER)]
    synced(program.sandbox, "team-mover", "ml", OTHER)
    return (*steps, _up(program, None))


def _by_hand(program: Program) -> tuple[float, ...]:
    with tempfile.TemporaryDirectory() as folder:
        hand = ByHand(program.sandbox, Path(folder), program.sandbox.directory / "charts")
        steps = (hand.new_team(OLD), hand.upgrade(NEW), hand.replace(OTHER))
        synced(program.sandbox, hand.namespace, hand.pool, OTHER)
        return (*steps, hand.remove())


def _stack(**teams: Any) -> dict[str, Any]:
    neighbour = {"neighbour": team("research", NEW)}
    return {**BASE, "kai-fleet:vcluster": VCLUSTER, "kai-fleet:teams": {**neighbour, **teams}}


def _up(program: Program, version: str | None) -> float:
    gone = {**_stack(), "kai-fleet:removed": ["mover"]}  # a team goes only where it is named
    program.write(_stack(mover=team("ml", version)) if version else gone)
    return program.fleet("up").seconds
