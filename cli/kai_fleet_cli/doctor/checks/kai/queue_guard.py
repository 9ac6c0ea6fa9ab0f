"""The guard inside a vCluster, which its tenant can delete: it helps, and its absence is said."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.guards.policies import Object
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.guard_objects import BINDINGS, POLICIES, unlike

NAME = "guard"


def check(look: Snapshot) -> Iterator[Finding]:
    """Every vCluster whose stack wants a guard in it."""
    for team in look.teams.values():
        if team.inside is None or not team.wanted.guards:
            continue
        found = [it for each in team.wanted.guards for it in _guard(team.inside, each)]
        yield from found
        if not found and not {POLICIES, BINDINGS} & set(team.inside.unreadable):
            yield team.inside.well(NAME, f"guard of team {team.wanted.name}")


def _guard(inside: ClusterState, declared: Object) -> Iterator[Finding]:
    for subject, how in unlike(inside, declared):
        yield inside.warning(NAME, subject, f"{how}: {_then(declared)}", inside.update)


def _then(declared: Object) -> str:
    if "outside" in declared["metadata"]["name"]:
        return "pods that ask for GPUs without KAI run beside the queues"
    return "pods that name no queue, or a wrong one, are let in, and stay Pending"
