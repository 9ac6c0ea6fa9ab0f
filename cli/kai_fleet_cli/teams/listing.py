"""`fleet teams`: declared and running versions, and the GPUs that each team is guaranteed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console

from kai_fleet.arguments import Arguments
from kai_fleet.queue_specs import UNLIMITED, specs_of
from kai_fleet.releases import KAI
from kai_fleet.settings import Settings
from kai_fleet.settings.files.project import FLEET
from kai_fleet.settings.sections.queues import leaves
from kai_fleet_cli.display.terminal import print_line, print_table
from kai_fleet_cli.teams.stack_state import StackState

_HEADINGS: Final = (
    *("team", "mode", "version", "running", "support ends", "guaranteed", "GPUs", "queues"),
)
Row = Mapping[str, Any]


def rows(settings: Settings, state: StackState) -> tuple[list[Row], list[str]]:
    """Every team of a stack, as `--json` has it, and notes on what is not known.

    What is not known is None; a GPU amount of -1 is unlimited.
    """
    notes = list(state.refused.values())
    if own := ", ".join(sorted(settings.team_stacks)):
        notes.append(f"teams with a stack of their own are listed there: {own}")
    kept = {*settings.teams, *settings.team_stacks, *settings.removed}
    notes += [
        f"team {name} runs and is in no file any more: updates are refused until it is put back, or"
        f" named: {FLEET} up --remove-team {name}"
        for name in sorted(state.versions.keys() - kept)
    ]
    return [
        _row(settings, name, state.versions.get(name)) for name in sorted(settings.teams)
    ], notes


def _row(settings: Settings, name: str, running: str | None) -> Row:
    team, version = settings.teams[name], settings.teams[name].scheduler.version
    end = KAI[version].support_end if version and version in KAI else None
    arguments = Arguments(settings)
    given = arguments.host_queues() if team.queue else arguments.queues(name)
    specs = specs_of(given["queues"], given.get("gpus"), given.get("pools"))
    promised = [
        spec["resources"]["gpu"]["quota"]
        for queue, spec in specs.items()
        if (queue == team.queue if team.queue else "parentQueue" not in spec)
    ]
    guaranteed = UNLIMITED if UNLIMITED in promised else sum(promised)
    return {
        "team": name,
        "mode": team.scheduler.mode,
        "version": {"wanted": version, "running": running},
        "supportEnd": end.isoformat() if end else None,
        "queues": [team.queue] if team.queue else leaves(team.queues),
        "gpus": {"most": settings.own_of(name).counted, "guaranteed": guaranteed},
    }


def show(stack: str, found: Sequence[Row], notes: Sequence[str], console: Console) -> None:
    """Print the table and its notes; what is not known is "-"."""
    if found:
        print_table(console, _HEADINGS, [_cells(row) for row in found])
    else:
        notes = [f"stack {stack} has no team yet; to add one see: {FLEET} team add --help"]
    for note in notes:
        print_line(console, f"- {note}")


def _cells(row: Row) -> list[str]:
    version, gpus = row["version"], row["gpus"]
    texts = (version["wanted"], version["running"], row["supportEnd"])
    amounts = (gpus["guaranteed"], gpus["most"])
    return [
        row["team"],
        row["mode"],
        *(text or "-" for text in texts),
        *("unlimited" if amount == UNLIMITED else f"{amount:g}" for amount in amounts),
        ", ".join(row["queues"]) or "-",
    ]
