"""What this user may not read: the checks that need it were left out, which is said."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet_cli.doctor.cluster_state import Snapshot
from kai_fleet_cli.doctor.finding import Finding

NAME = "readable"


def check(look: Snapshot) -> Iterator[Finding]:
    """Each cluster with kinds that were refused."""
    for cluster in look.clusters:
        if cluster.unreadable:
            kinds = ", ".join(sorted(cluster.unreadable))
            why = next(iter(cluster.unreadable.values()))
            yield cluster.warning(
                NAME,
                f"read access to {kinds}",
                f"it was refused ({why}), so what depends on it was not checked",
                "give this user get and list on them (ClusterRole view, and secrets and nodes)",
            )
