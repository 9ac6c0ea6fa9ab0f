"""Helm's records of the teams' releases: written by nobody but Helm.

Helm does what they say when it removes or upgrades a release, and who runs it has more rights than
a tenant.
"""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet_cli.doctor.cluster_state import Snapshot
from kai_fleet_cli.doctor.finding import Finding

NAME = "helm-record"


def check(look: Snapshot) -> Iterator[Finding]:
    """Every team whose records could be read, one with a stack of its own too: it may move here."""
    for name, team in look.teams.items():
        if team.records is None:
            continue
        subject = f"Helm's record of release {name}"
        if not team.records:
            yield look.host.well(NAME, subject)
            continue
        at = f"{look.host.kubectl} -n {team.wanted.namespace}"
        secrets = " ".join(it.secret for it in team.records)
        yield look.host.broken(
            NAME,
            subject,
            f"it is not what vCluster's chart makes, and Helm would do what it says:"
            f" {'; '.join(f'Secret {it.secret} {it.why}' for it in team.records)}",
            "find out who wrote it (managedFields), then delete it before anything else is done to"
            f" team {name}: `{at} delete secret {secrets}`, then {team.update or look.host.update}",
        )
