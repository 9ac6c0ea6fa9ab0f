"""The findings on a terminal: one line for each thing that is not well, the others counted."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kai_fleet_cli.doctor.causes import COMMAND
from kai_fleet_cli.doctor.diagnosis import Diagnosis
from kubectl_fleet.live.finding import Health

_STYLE = {Health.BROKEN: "red", Health.WARNING: "yellow"}


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print what one run found, what is broken first."""
    ill = [finding for finding in diagnosis.findings if finding.health is not Health.OK]
    ill.sort(key=lambda finding: finding.health is Health.WARNING)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("", no_wrap=True)
    table.add_column("where", no_wrap=True)
    table.add_column("what", overflow="fold", ratio=2)
    table.add_column("why, and what to do", overflow="fold", ratio=5)
    for finding in ill:
        # Commands stand out; their backticks stay, for who copies from a file.
        fix = COMMAND.sub(lambda command: f"[bold]{command[0]}[/]", escape(finding.fix))
        table.add_row(
            f"[{_STYLE[finding.health]}]{finding.health.value}[/]",
            escape(finding.cluster),
            escape(finding.subject),
            escape(finding.cause) + (f"\n→ {fix}" if fix else ""),
        )
    if ill:
        console.print(table)
    console.print(_sentence(diagnosis), markup=False, highlight=False, soft_wrap=True)


def _sentence(diagnosis: Diagnosis) -> str:
    what = f"stack {diagnosis.stack}" if diagnosis.stack else "the cluster"
    if diagnosis.blind:
        return f"{what} could not be looked at"
    well, warned, broken = map(diagnosis.count, (Health.OK, Health.WARNING, Health.BROKEN))
    names = sorted({it.check for it in diagnosis.findings if it.health is Health.OK})
    healthy = f"{well} {'check' if well == 1 else 'checks'} passed ({', '.join(names)})"
    healthy = healthy if well else "no check passed"
    warnings = f"{warned} warning{'' if warned == 1 else 's'}"
    if broken:
        return f"{what}: {broken} broken, {warnings}; {healthy}"
    if diagnosis.unread:
        unread = " and ".join(diagnosis.unread)
        return f"{what} is not known to be healthy: nothing of {unread} may be read; {healthy}"
    if warned:
        return f"{what} works, with {warnings}; {healthy}"
    return f"{what} is healthy: {healthy}"
