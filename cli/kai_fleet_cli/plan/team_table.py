"""The teams of a stack as a table on a terminal."""

from __future__ import annotations

from rich import box
from rich.markup import escape
from rich.table import Table

from kai_fleet_cli.plan.picture import Picture


def team_table(seen: Picture) -> Table:
    """One line per team: who schedules it, on what, with how many GPUs and queues."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("team", "mode", "scheduler", "vCluster", "nodes", "GPUs", "queues"):
        table.add_column(column, justify="right" if column in ("GPUs", "queues") else "left")
    for team in seen.teams.values():
        table.add_row(
            escape(team.name),
            team.mode or "-",
            escape(team.scheduler),
            team.vcluster or "-",
            escape(team.pool) or "any",
            "-" if team.gpus is None else f"{team.gpus:g}",
            str(len(team.inside.queues)) if team.inside.queues else "-",
        )
    return table
