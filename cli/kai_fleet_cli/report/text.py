"""Print a report on a terminal: tables, then who waits and what the doctor finds."""

from datetime import timedelta

from rich.console import Console

from kai_fleet.wording import counted
from kai_fleet_cli.display.terminal import print_line, print_table
from kai_fleet_cli.doctor import diagnosis
from kai_fleet_cli.report.model import Report
from kai_fleet_policies.model.queues import UNLIMITED


def show(report: Report, console: Console) -> None:
    """Print all but the node pools."""
    figures = ", ".join(f"{gpus(amount)} {name}" for name, amount in report.figures.items())
    print_line(
        console, f"GPUs of stack {report.stack} at {report.time:%Y-%m-%d %H:%M} UTC: {figures}"
    )
    for sentence in report.missing:
        print_line(console, f"not read: {sentence}")
    teams = [
        [team.name, team.scheduler, *map(gpus, (team.promised, team.in_use, team.waiting))]
        for team in report.teams
    ]
    print_table(console, ("team", "scheduler", "promised", "in use", "waiting"), teams)
    queues = [
        [
            cluster,
            f"{'  ' * (queue.level - 1)}{queue.display_name or queue.name}",
            *map(gpus, (queue.quota, queue.limit, queue.in_use, queue.borrowed, queue.waiting)),
        ]
        for cluster, of_cluster in report.queues.items()
        for queue in of_cluster
    ]
    headings = ("cluster", "queue", "quota", "limit", "in use", "borrowed", "waiting")
    print_table(console, headings, queues)
    for wait in report.waits:
        amounts = f"{counted(wait.pods, 'pod')}, {counted(wait.gpus, 'GPU')}"
        since = f", {age(report.time - wait.since)}" if wait.since else ""
        why = wait.cause or "on the way to a node"
        print_line(console, f"{wait.team} waits: {amounts}{since}: {why}")
        if wait.fix:
            print_line(console, f"  → {wait.fix}")
    diagnosis.show(diagnosis.Diagnosis(report.stack, tuple(report.findings)), console)


def gpus(amount: float | None) -> str:
    """An amount with two decimals at most, `unlimited`, or a dash for not known."""
    if amount is None:
        return "\u2013"
    if amount == UNLIMITED:
        return "unlimited"
    return f"{round(amount, 2):,g}" if amount < 10**6 else f"{amount:,.0f}"


def age(since: timedelta) -> str:
    """An age in its two largest units."""
    minutes = max(0, int(since.total_seconds() // 60))
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
