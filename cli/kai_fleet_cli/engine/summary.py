"""The end of an update: a stack's teams, and commands to go on with."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Console

from kai_fleet.settings.files.project import FLEET, preview_command
from kai_fleet.wording import counted
from kai_fleet_cli.display.terminal import print_line, print_table
from kai_fleet_cli.engine.report import Report, operation

_HEADINGS: Final = ("team", "mode", "scheduler", "GPUs", "API", "leaf queues")
_SANDBOX_TOOLS: Final = f'  eval "$({FLEET} sandbox env)"   # its kubectl, helm and pulumi\n'


def show(name: str, report: Report, standins: Sequence[str], console: Console) -> None:
    """Print the teams of a stack as a table, what is simulated, and how to reach them."""
    teams: Mapping[str, Mapping[str, Any]] = report.outputs.get("teams", {})
    print_line(console, f"Stack {name}")
    print_table(console, _HEADINGS, [_cells(*item) for item in teams.items()])
    if not report.began:
        same = sum(operation(step) == "same" for step in report.steps)
        print_line(console, f"Nothing changed: {counted(same, 'resource', 'is')} as declared.")
    if standins:
        print_line(console, f"Not real here: {', '.join(standins)} (docs/sandbox.md).")
    if not teams:
        return
    own_kai = [team for team, about in teams.items() if about["mode"] == "virtual"]
    team = next(iter(own_kai or teams))
    kinds, change = ("nodes,queues", "scheduler's version") if own_kai else ("nodes", "team's gpus")
    print_line(
        console,
        f"Next:\n{_SANDBOX_TOOLS if standins else ''}{_get_kubeconfig(team, name)}\n"
        f"  kubectl --kubeconfig {team}.kubeconfig get {kinds}\n"
        f"  {FLEET} doctor --stack {name}\n"
        f"  edit a {change} in Pulumi.{name}.yaml, then: {preview_command(name)}",
    )


def _cells(team: str, about: Mapping[str, Any]) -> list[str]:
    schedulers = {"virtual": f"KAI {about.get('scheduler')}", "host": "the host's KAI"}
    scheduler, gpus = schedulers.get(about["mode"], "-"), str(int(about["gpus"]))
    leaves = ", ".join(about["queues"]) or "-"
    return [team, about["mode"], scheduler, gpus, about["server"], leaves]


def next_steps(stack: str, team: str) -> str:
    """Commands to copy for whoever added a team."""
    file = f"{team}.kubeconfig"
    return f"Next, for team {team}:\n{_get_kubeconfig(team, stack)}\n{for_the_team(file)}"


def _get_kubeconfig(team: str, stack: str) -> str:
    return f"  {FLEET} team kubeconfig {team} --stack {stack} --output {team}.kubeconfig"


def for_the_team(file: str) -> str:
    """The commands for whoever gets the kubeconfig."""
    return (
        "Its queues, its GPUs, why a pod waits (a first pod: docs/ml-engineers.md):\n"
        f"  kubectl fleet queues --kubeconfig {shlex.quote(file)}"
    )
