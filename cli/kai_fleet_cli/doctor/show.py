"""The findings on a terminal: one line for each thing that is not well, the others counted."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kai_fleet_cli.doctor.causes import COMMAND
from kai_fleet_cli.doctor.checks import unreadable
from kai_fleet_cli.doctor.diagnosis import Diagnosis
from kai_fleet_cli.doctor.finding import Finding, Health

_STYLE = {Health.BROKEN: "red", Health.WARNING: "yellow"}


def show(visit: Diagnosis, console: Console) -> None:
    """Print a visit."""
    ill = [finding for finding in visit.findings if finding.health is not Health.OK]
    ill.sort(key=lambda finding: finding.health is Health.WARNING)
    if ill:
        console.print(_table(ill))
    console.print(_sentence(visit), markup=False, highlight=False, soft_wrap=True)


def _table(findings: list[Finding]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("where", no_wrap=True)
    table.add_column("what", overflow="fold", ratio=2)
    table.add_column("why, and what to do", overflow="fold", ratio=5)
    for finding in findings:
        table.add_row(
            f"[{_STYLE[finding.health]}]{finding.health.value}[/]",
            escape(finding.cluster),
            escape(finding.subject),
            escape(finding.cause) + (f"\n→ {_bold(finding.fix)}" if finding.fix else ""),
        )
    return table


def _bold(fix: str) -> str:
    """A fix whose commands stand out; their backticks stay, for who copies from a file."""
    return COMMAND.sub(lambda command: f"[bold]{command[0]}[/]", escape(fix))


def _sentence(visit: Diagnosis) -> str:
    what = f"stack {visit.stack}" if visit.stack else "the cluster"
    if visit.blind:
        return f"{what} could not be looked at"
    well, warned, broken = (visit.count(h) for h in (Health.OK, Health.WARNING, Health.BROKEN))
    kinds = sorted({finding.check for finding in visit.findings if finding.health is Health.OK})
    fine = f"{well} {'check' if well == 1 else 'checks'} passed ({', '.join(kinds)})"
    healthy = fine if well else "no check passed"
    warnings = f"{warned} warning{'' if warned == 1 else 's'}"
    if {finding.check for finding in visit.findings} == {unreadable.NAME}:
        return f"{what}: nothing could be checked, for want of the rights to read it"
    if broken:
        return f"{what}: {broken} broken, {warnings}; {healthy}"
    if warned:
        return f"{what} works, with {warnings}; {healthy}"
    return f"{what} is healthy: {healthy}"
