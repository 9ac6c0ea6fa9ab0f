"""The checks: each a plain function from what was read to findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol, cast

from kai_fleet_cli.doctor.causes import merge_by_cause
from kai_fleet_cli.doctor.checks import (
    held_gpus,
    helm_records,
    isolation,
    monitoring,
    network_plugin,
    network_reach,
    nodes,
    pending,
    refused,
    rule_violations,
    runtime_classes,
    shared_maps,
    unreadable,
    vclusters,
)
from kai_fleet_cli.doctor.checks.kai import (
    gpu_sharing,
    kai_parts,
    leftovers,
    pod_groups,
    queue_guard,
    queues,
    shards,
    webhooks,
)
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.tenant_objects import ODD, odd


class Check(Protocol):
    """A module of this package."""

    NAME: str

    def check(self, look: Snapshot, /) -> Iterator[Finding]:
        """Everything that this check looked at, what is well included."""


CHECKS: Final[tuple[Check, ...]] = tuple(
    cast(Check, module)
    for module in (
        unreadable,
        nodes,
        runtime_classes,
        vclusters,
        held_gpus,
        shared_maps,
        isolation,
        helm_records,
        network_plugin,
        network_reach,
        monitoring,
        kai_parts,
        webhooks,
        leftovers,
        queues,
        queue_guard,
        shards,
        rule_violations,
        pending,
        refused,
        pod_groups,
        gpu_sharing,
    )
)


def examine(look: Snapshot) -> list[Finding]:
    """What all checks say, in their order, each cause once.

    The API server of a vCluster is its tenant's, and may answer objects that none of Kubernetes'
    has. Such a vCluster counts as not reached: the others are looked at all the same.
    """
    try:
        return _examined(look)
    except ODD:
        teams = {name: _readable(look, team) for name, team in look.teams.items()}
        if all(team is look.teams[name] for name, team in teams.items()):
            raise
        return _examined(replace(look, teams=teams))


def _examined(look: Snapshot) -> list[Finding]:
    return merge_by_cause(finding for check in CHECKS for finding in check.check(look))


def _readable(look: Snapshot, team: TeamState) -> TeamState:
    """The team, without the inside of its vCluster where that cannot be looked at."""
    if team.inside is None:
        return team
    try:
        _examined(replace(look, teams={team.wanted.name: team}))
    except ODD as why:
        return replace(team, inside=None, unreached=odd(why))
    return team
