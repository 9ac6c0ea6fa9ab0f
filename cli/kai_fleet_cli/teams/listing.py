"""`fleet teams`: what is written, what runs, and what of the GPUs is in use now."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from kai_fleet.releases import KAI
from kai_fleet.settings.sections.queues import walk
from kai_fleet_cli.cluster_reader import ClusterReader, NoAnswerError
from kai_fleet_cli.recovery import resume
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import queues
from kai_fleet_cli.teams.connect import Connected
from kai_fleet_cli.teams.lookup import PlatformFile, TeamPlace
from kai_fleet_cli.teams.stack_state import StackState

_GPUS: Final = "GPUs used,\npromised,\nmost"
_HEADINGS: Final = ("team", "stack", "mode", "version", "running", "support ends", "queues", _GPUS)
# On a narrow terminal a team's stack and queues stand on the lines below it.
_NARROW: Final = ("team", "mode", "version", "running", "support ends", "GPUs used/quota/limit")
_ENDLESS: Final = 10_000  # columns
Row = Mapping[str, Any]


def read(platform: PlatformFile, connected: Connected) -> tuple[list[Row], list[str]]:
    """Every team of a platform, as `--json` has it, and why something of it is not known.

    What is not known is None; a GPU amount of -1 is unlimited.
    """
    states, unread = connected.states(platform)
    declared = sorted(platform.teams.values(), key=lambda place: place.name)
    others = [
        TeamPlace(platform.stack, name, stack, (), {"gpus": None})  # nothing is written of it
        for stack, state in states.items()
        for name in sorted(state.values.keys() - platform.teams.keys())
    ]
    # A team stack's state is the team's: what it says of other teams is not listened to.
    every = [(place, states.get(place.stack, StackState())) for place in (*declared, *others)]
    with ThreadPoolExecutor(8) as pool:
        used = list(pool.map(lambda it: _used(it[1].kubeconfigs.get(it[0].name)), every))
    notes = [connected.note] if connected.note else []
    notes += [*unread, *(it.refused[place.name] for place, it in every if place.name in it.refused)]
    if silent := [
        place.name
        for (place, state), gpus in zip(every, used, strict=True)
        if gpus is None and place.name in state.kubeconfigs
    ]:
        notes.append(
            "what runs and the GPUs in use are not known where the vCluster did not answer:"
            f" {', '.join(sorted(silent))}"
        )
    notes += [_undeclared(platform, place) for place in others]
    return [_row(platform, *it, gpus) for it, gpus in zip(every, used, strict=True)], notes


def _row(platform: PlatformFile, place: TeamPlace, state: StackState, used: float | None) -> Row:
    """One team. What its vCluster runs is told where that answers: one that is gone runs nothing"""
    release = KAI.get(place.version or "")
    end = release.support_end if release else None
    of_host = place.mode == "host" and place.raw.get("queue")
    return {
        "team": place.name,
        "stack": place.stack,
        "mode": place.mode,
        "version": {
            "wanted": place.version,
            "running": None if used is None else state.versions.get(place.name),
        },
        "supportEnd": end.isoformat() if end else None,
        "queues": [str(of_host)] if of_host else queues.leaves(place.raw.get("queues")),
        "gpus": {"most": place.gpus, "guaranteed": _guaranteed(platform, place), "used": used},
    }


def _undeclared(platform: PlatformFile, place: TeamPlace) -> str:
    """What the next update does about a team that no file has: by the rules `team-granted` and
    `team-removal`.
    """
    team, stack = place.name, place.stack
    if stack == platform.stack and team in platform.grants:
        return (
            f"team {team} is granted a stack of its own, and stack {stack} has it still: updates of"
            f" it are refused until it is back in kai-fleet:teams (docs/team-stacks.md)"
        )
    try:
        removed = reading.read(place.file).get("removed")
    except reading.StackFileError:
        removed = None
    if isinstance(removed, list) and team in removed:
        return f"team {team} is in no file any more; the next update removes it"
    return (
        f"team {team} is in no file any more, and stack {stack} has it still: updates of it are"
        f" refused until the team is put back, or named: {resume.FLEET} up --stack {stack}"
        f" --remove-team {team}"
    )


def _used(kubeconfig: str | None) -> float | None:
    """The GPUs that pods of a vCluster hold; None where there is none, or it does not answer."""
    try:
        return ClusterReader(content=kubeconfig).held().gpus if kubeconfig else None
    except NoAnswerError:
        return None


def _guaranteed(platform: PlatformFile, place: TeamPlace) -> float | None:
    """The GPUs that queues promise a team; None where no queue does."""
    if place.mode == "virtual":
        return queues.guaranteed(place.raw.get("queues"), place.gpus, place.pools)
    if place.mode != "host":
        return None
    every = walk(queues.filled(platform.raw.get("queues"), None))
    return next((it.queue.gpu.quota for it in every if it.name == place.raw.get("queue")), None)


def show(stack: str, rows: Sequence[Row], notes: Sequence[str], console: Console) -> None:
    """Print the table and its notes; what is not known is "-", and no value is cut off."""
    if rows:
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
        for heading in _HEADINGS:
            table.add_column(heading, justify="right" if heading == _GPUS else "left", no_wrap=True)
        for row in rows:
            team, *others, gpus = _cells(row)
            cells = (team, row["stack"], *others, ", ".join(row["queues"]) or "-", gpus)
            table.add_row(*map(escape, cells))
        endless = console.options.update(width=_ENDLESS)
        if Measurement.get(console, endless, table).maximum <= console.width:
            console.print(table)
        else:
            for line in _narrow(rows, console.width):
                console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        add = f"fleet team add NAME --stack {stack}"
        console.print(f"Stack {stack} has no team yet; add one: {add}", markup=False)
    for note in notes:
        console.print(f"- {note}", markup=False, highlight=False, soft_wrap=True)


def _narrow(rows: Sequence[Row], width: int) -> Iterator[str]:
    every = [_NARROW, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    apart = sum(widths) + 2 * len(widths) > width  # a long name has a line to itself
    for row, cells in zip((None, *rows), every, strict=True):
        first, *rest = (cell.ljust(wide) for cell, wide in zip(cells, widths, strict=True))
        if apart:
            yield from textwrap.wrap(cells[0], width)
        line = "  ".join(["" if apart else first, *rest])
        yield from textwrap.wrap(line, width, subsequent_indent="    ")
        if row is not None:
            below = f"  stack {row['stack']}"
            below += f"; queues {', '.join(row['queues'])}" if row["queues"] else ""
            yield from textwrap.wrap(below, width, subsequent_indent="    ", break_on_hyphens=False)


def _cells(row: Row) -> tuple[str, ...]:
    """A team's own line, its name first and its GPUs last."""
    version, gpus = row["version"], row["gpus"]
    texts = (version["wanted"], version["running"], row["supportEnd"])
    amounts = "/".join(_amount(gpus[key]) for key in ("used", "guaranteed", "most"))
    return (row["team"], row["mode"], *(text or "-" for text in texts), amounts)


def _amount(value: float | None) -> str:
    if value is None:
        return "-"
    return "unlimited" if value == -1 else f"{value:g}"
