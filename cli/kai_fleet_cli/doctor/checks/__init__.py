"""The checks: plain functions from what was read to findings, each in a module of its own."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from kai_fleet_cli.doctor.causes import merge_by_cause
from kai_fleet_cli.doctor.checks import (
    api_access,
    gpu_quota,
    gpu_stack,
    groups,
    guards,
    isolation,
    monitoring,
    network,
    nodes,
    pods,
    prices,
    vclusters,
)
from kai_fleet_cli.doctor.checks.kai import (
    gpu_sharing,
    kai_parts,
    leftovers,
    queues,
    shards,
    webhooks,
)
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kubectl_fleet.objects import MALFORMED, malformed
from kubectl_fleet.waiting.finding import Finding


def check_access(snapshot: Snapshot) -> Iterator[Finding]:
    """Each cluster with kinds that this user may not read: what needs them is not checked."""
    for cluster in snapshot.clusters:
        if cluster.unreadable:
            refusal = next(iter(cluster.unreadable.values()))
            yield cluster.warning(
                f"read access to {', '.join(sorted(cluster.unreadable))}",
                f"it was refused ({refusal}), so what depends on it was not checked",
                "give this user get and list on them (ClusterRole view, and secrets and nodes)",
            )


# In the order in which they are told. A check yields everything that it looked at, what is well
# included; a finding without a name of its own gets the check's.
CHECKS: Final[tuple[tuple[str, Callable[[Snapshot], Iterator[Finding]]], ...]] = (
    ("readable", check_access),
    ("nodes", nodes.check),
    ("gpu-stack", gpu_stack.check),
    ("gpu-one-sharer", gpu_stack.check_sharing),
    ("runtime-class", gpu_sharing.check_runtime_class),
    ("vcluster", vclusters.check),
    ("api-access", api_access.check),
    ("gpu-quota", gpu_quota.check),
    ("shared-gpu", gpu_sharing.check_maps),
    ("isolation", isolation.check),
    ("helm-record", vclusters.check_records),
    ("network-plugin", network.check_plugin),
    ("network-reach", network.check_addresses),
    ("monitoring", monitoring.check),
    ("prices", prices.check),
    ("kai-parts", kai_parts.check),
    ("webhooks", webhooks.check),
    ("leftovers", leftovers.check),
    ("queues", queues.check),
    ("guard", guards.check),
    ("groups", groups.check),
    ("shards", shards.check),
    ("topologies", shards.check_topologies),
    ("pods", pods.check_written),
    ("pending", pods.check_pending),
    ("refused", pods.check_refused),
    ("pod-groups", pods.check_groups),
    ("gpu-sharing", gpu_sharing.check),
)


def examine(snapshot: Snapshot) -> list[Finding]:
    """What all checks say, in their order, each cause once.

    The API server of a vCluster is its tenant's, and may answer objects that none of Kubernetes'
    has. Such a vCluster counts as not reached: the others are looked at all the same.
    """
    try:
        return _examine(snapshot)
    except MALFORMED:
        teams = {name: _readable(snapshot, team) for name, team in snapshot.teams.items()}
        if all(team is snapshot.teams[name] for name, team in teams.items()):
            raise
        return _examine(replace(snapshot, teams=teams))


def _examine(snapshot: Snapshot) -> list[Finding]:
    return merge_by_cause(
        finding if finding.check else replace(finding, check=name)
        for name, check in CHECKS
        for finding in check(snapshot)
    )


def _readable(snapshot: Snapshot, team: TeamState) -> TeamState:
    """The team, without the inside of its vCluster where that cannot be looked at."""
    if team.inside is None:
        return team
    try:
        _examine(replace(snapshot, teams={team.wanted.name: team}))
    except MALFORMED as error:
        return replace(team, inside=None, unreached=malformed(error))
    return team
