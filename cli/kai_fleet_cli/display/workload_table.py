"""What runs in the teams' vClusters, as a table on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table


def workload_table(workloads: Mapping[str, Mapping[str, Any]]) -> Table:
    """One line per workload: whose it is, its queue, its GPUs, and where it answers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("workload", "kind", "team", "namespace", "queue", "GPU", "inside at"):
        table.add_column(column, overflow="fold")
    for name, about in workloads.items():
        table.add_row(
            escape(name),
            about["kind"],
            escape(about["team"]),
            escape(about["namespace"]),
            escape(about.get("queue") or "-"),
            escape(about.get("gpu") or "-"),
            escape(about.get("url") or "-"),
        )
    return table
