"""One team, and one among many: made, switched, rolled back and removed, beside a script that does
the same by hand.

Among many, some have a stack of their own. One team of either kind is changed by the commands that
a person types; the script does the same step to a team of its own right after, beside the same
neighbours.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.by_hand import ByHand
from bench.figures import Figure, Table, exponent
from bench.host_objects import nodes, synced
from bench.program import STACK, Program, Ran
from bench.stacks import BASE, VCLUSTER, team, teams, text
from kai_fleet_cli.stack_file.reading import path_of

OLD, NEW, OTHER = "v0.14.7", "v0.16.8", "v0.9.3"  # upwards in place, back by replacement
_STEPS: Final = ("a new team", "switch in place", "switch by replacement", "a team removed")
_WANTED: Final = (1.1, 1.15, 1.25, 1.3)  # of the script's time for each step, at most
# The script really makes these; it is linear, so more of them tell nothing more.
_HANDS: Final = ("hand0", "hand1", "hand2")
_FIRST_OF_MANY: Final = 0.4  # of the script's time, at most
_AMONG_MANY: Final = 2.0  # the same for each step to one of twenty teams or more
_MANY: Final = 20
_ONE_IN: Final = 4  # so many teams to one that has a stack of its own
# So long before each step nothing is done, for either side: the sandbox looks more often, for ten
# seconds, at the vCluster that the step before was about.
_CALM_SECONDS: Final = 12.0
_AS_BEFORE: Final = ("--mode", "virtual", "--version", OLD, "--gpus", "2", "--queue", "leaf0=0.1")


def compare_one(program: Program, pod_seconds: str) -> Table:
    """A neighbour is there throughout. Each side does each step twice; the better of two counts."""
    title = f"One team beside a neighbour, pods start after {pod_seconds} s"
    table = Table(title, "`helm` and `kubectl`")
    program.write(_with_neighbour())
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


def _with_neighbour(**teams: Any) -> dict[str, Any]:
    neighbour = {"neighbour": team("research", NEW)}
    return {**BASE, "kai-fleet:vcluster": VCLUSTER, "kai-fleet:teams": {**neighbour, **teams}}


def _up(program: Program, version: str | None) -> float:
    gone = {
        **_with_neighbour(),
        "kai-fleet:removed": ["mover"],
    }  # a team goes only where it is named
    program.write(_with_neighbour(mover=team("ml", version)) if version else gone)
    return program.fleet("up").seconds


def compare_many(program: Program, sizes: list[int], pod_seconds: str) -> Table:
    """First `up` of each size, then what is done to one team of either kind among them."""
    table = Table(f"Many teams, pods start after {pod_seconds} s", "script")
    most = max(sizes)
    pools = [f"bench-{name}" for name in (*range(most), *_own(most), *_HANDS)]
    with tempfile.TemporaryDirectory() as folder, nodes(program.sandbox, pools):
        charts = program.sandbox.directory / "charts"
        hands = [
            ByHand(program.sandbox, Path(folder), charts, name, f"bench-{name}") for name in _HANDS
        ]
        script = sum(hand.new_team(OLD) for hand in hands) / len(hands)
        removal = sum(hand.remove() for hand in hands) / len(hands)
        firsts = []
        for size in sizes:
            with _environment(program, size) as own:
                first = _first(program, own)
                firsts.append((float(size), first))
                what = f"{size} teams, {len(own)} in own stacks"
                wanted = _FIRST_OF_MANY if size >= _MANY else None
                made = f"{what}: first `up` of all"
                table.figures += [
                    _shown(Figure(made, first, script * size, wanted)),
                    _nothing(program, f"{what}: `up` of the platform, nothing changed"),
                    *_one(program, hands[0], "team0", size, "in the platform's stack"),
                    *_one(program, hands[1], own[0], size, "in its own stack"),
                    _all_removed(program, own, what, removal * size),
                ]
    if len(firsts) > 1:
        table.notes.append(f"First `up` grows with teams^{exponent(firsts):.2f} (1 is linear).")
    table.notes += [
        f"The script made {len(_HANDS)} teams one after the other, {script:.1f} s each, while"
        f" nobody else was there, and removed them, {removal:.1f} s each. It is linear: its time"
        " for all is that times their number.",
        "First `up` is that of the platform with its teams, then that of all team stacks at once."
        " Every other step is one command, `fleet team switch`, `rollback`, `remove` or `add` with"
        " `--yes`; the script does it to a team of its own beside the same teams, which it makes"
        f" before and removes when the program has. {_CALM_SECONDS:.0f} s before each of them"
        " nothing is done.",
    ]
    return table


@contextmanager
def _environment(program: Program, size: int) -> Iterator[list[str]]:
    """The stack files of so many teams; the names of those with their own. Nothing stays."""
    own = _own(size)
    theirs = {name: team(f"bench-{name}", OLD) for name in own}
    grants = {n: {key: its[key] for key in ("nodePool", "gpus")} for n, its in theirs.items()}
    program.write(teams(size - len(own), OLD) | {"kai-fleet:teamStacks": grants})
    try:
        for name, its in theirs.items():
            config: dict[str, Any] = {
                "kai-fleet:platform": {"stack": STACK},
                "kai-fleet:team": {"name": name} | its,
            }
            path_of(_stack(name)).write_text(text({"config": config}))
        yield own
    finally:
        for name in own:
            path_of(_stack(name)).unlink(missing_ok=True)


def _own(size: int) -> list[str]:
    return [f"own{n}" for n in range(max(1, size // _ONE_IN))]


def _first(program: Program, own: list[str]) -> float:
    """Seconds until all teams are there: the platform's, then all others at once."""
    begun = time.monotonic()
    program.fleet("up")
    _at_once(program, "up", own)
    return time.monotonic() - begun


def _at_once(program: Program, command: str, own: list[str], *flags: str) -> None:
    def run(name: str) -> Ran:
        fleet = (sys.executable, "-m", "kai_fleet_cli", command)
        return program.hand(*fleet, "--stack", _stack(name), *flags)

    with ThreadPoolExecutor(max(1, len(own))) as pool:
        list(pool.map(run, own))


def _all_removed(program: Program, own: list[str], what: str, script: float) -> Figure:
    begun = time.monotonic()
    _at_once(program, "destroy", own, "--yes")
    program.fleet("destroy", "--yes")
    return _shown(Figure(f"{what}: all removed", time.monotonic() - begun, script))


def _nothing(program: Program, what: str) -> Figure:
    seconds = program.fleet("up").seconds
    return Figure(what, seconds, mib=program.fleet("up", memory=True).mib)


def _one(program: Program, hand: ByHand, name: str, size: int, where: str) -> Iterator[Figure]:
    """What is done to one team, each time beside the script."""
    what = f"{size}, one {where}"
    wanted = _WANTED if size < _MANY else (_AMONG_MANY,) * len(_STEPS)
    new_team, in_place, replacement, removal = wanted
    own = ("--own-stack",) if name.startswith("own") else ()
    pool = f"bench-{name.removeprefix('team')}"

    def typed(*arguments: str) -> Ran:
        time.sleep(_CALM_SECONDS)
        return program.fleet("team", *arguments, "--yes")

    def scripted(step: Callable[[], float]) -> float:
        time.sleep(_CALM_SECONDS)
        return step()

    new = scripted(partial(hand.new_team, OLD))
    switched = typed("switch", name, NEW)
    upgraded = scripted(partial(hand.upgrade, NEW))
    yield _told(f"{what}: switched in place", switched, upgraded, in_place)
    back = typed("rollback", name)
    replaced = scripted(partial(hand.replace, OLD))
    yield _told(f"{what}: rolled back, by replacement", back, replaced, replacement)
    synced(program.sandbox, f"team-{name}", pool, OLD)
    removed = typed("remove", name)
    synced(program.sandbox, hand.namespace, hand.pool, OLD)
    yield _told(f"{what}: removed", removed, scripted(hand.remove), removal)
    added = typed("add", name, *_AS_BEFORE, "--pool", f"kai-fleet/pool={pool}", *own)
    yield _told(f"{what}: added", added, new, new_team)


def _told(what: str, ran: Ran, by_hand: float, wanted: float) -> Figure:
    return _shown(Figure(what, ran.seconds, by_hand, wanted))


def _shown(figure: Figure) -> Figure:
    """At once: all of them take a quarter of an hour."""
    print(figure.row(), flush=True)
    return figure


def _stack(name: str) -> str:
    return f"{STACK}-{name}"
