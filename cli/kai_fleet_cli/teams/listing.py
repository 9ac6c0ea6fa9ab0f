"""`fleet teams`: what is written, what runs, and what of the GPUs is in use now."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kai_fleet.fleet.arguments import Arguments
from kai_fleet.queue_specs import specs_of
from kai_fleet.releases import KAI
from kai_fleet.settings import Settings
from kai_fleet.settings.files.project import FLEET
from kai_fleet.settings.sections.kubernetes import UNLIMITED
from kai_fleet.settings.sections.queues import leaves
from kai_fleet_cli.cluster_reader import NoAnswerError, gpus_held
from kai_fleet_cli.display.terminal import print_line
from kai_fleet_cli.teams.stack_state import StackState

_HEADINGS: Final = ("team", "mode", "version", "running", "support ends", "queues")
_GPUS: Final = "GPUs used/\npromised/most"
Row = Mapping[str, Any]


def rows(settings: Settings, state: StackState) -> tuple[list[Row], list[str]]:
    """Every team of a stack, as `--json` has it, and notes on what is not known.

    What is not known is None; a GPU amount of -1 is unlimited.
    """
    with ThreadPoolExecutor(8) as pool:
        answers = {name: pool.submit(_used, state, name) for name in sorted(settings.teams)}
    used = {name: answer.result() for name, answer in answers.items()}
    notes = list(state.refused.values())
    if own := ", ".join(sorted(settings.team_stacks)):
        notes.append(f"teams with a stack of their own are listed there: {own}")
    if silent := [name for name in used if used[name] is None and name in state.kubeconfigs]:
        notes.append(f"not known where the vCluster did not answer: {', '.join(silent)}")
    kept = {*settings.teams, *settings.team_stacks, *settings.removed}
    notes += [
        f"team {name} runs and is in no file any more: updates are refused until it is put back, or"
        f" named: {FLEET} up --remove-team {name}"
        for name in sorted(state.versions.keys() - kept)
    ]
    return [_row(settings, name, state, used[name]) for name in used], notes


def _used(state: StackState, team: str) -> float | None:
    """The GPUs that pods of a vCluster hold; None where there is none, or it does not answer."""
    kubeconfig = state.kubeconfigs.get(team)
    try:
        return gpus_held(kubeconfig) if kubeconfig else None
    except NoAnswerError:
        return None


def _row(settings: Settings, name: str, state: StackState, used: float | None) -> Row:
    """One team. What its vCluster runs is told where that answers: one that is gone runs nothing"""
    team, version = settings.teams[name], settings.teams[name].scheduler.version
    end = KAI[version].support_end if version and version in KAI else None
    arguments, running = Arguments(settings), None if used is None else state.versions.get(name)
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
        "gpus": {"most": settings.gpus_of(name), "guaranteed": guaranteed, "used": used},
    }


def show(stack: str, found: Sequence[Row], notes: Sequence[str], console: Console) -> None:
    """Print the table and its notes; what is not known is "-", and no value is cut off."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for heading in (*_HEADINGS, _GPUS):
        table.add_column(heading, overflow="fold")
    for row in found:
        version, gpus = row["version"], row["gpus"]
        texts = (version["wanted"], version["running"], row["supportEnd"], ", ".join(row["queues"]))
        amounts = "/".join(_amount(gpus[key]) for key in ("used", "guaranteed", "most"))
        cells = (row["team"], row["mode"], *(text or "-" for text in texts), amounts)
        table.add_row(*map(escape, cells))
    if not found:
        notes = [f"stack {stack} has no team yet; add one: {FLEET} team add NAME --stack {stack}"]
    else:
        console.print(table)
    for note in notes:
        print_line(console, f"- {note}")


def _amount(value: float | None) -> str:
    if value is None:
        return "-"
    return "unlimited" if value == UNLIMITED else f"{value:g}"
