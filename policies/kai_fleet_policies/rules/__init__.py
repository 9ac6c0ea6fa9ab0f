"""One module per rule, each with NAME, LEVEL, SEVERITY, WHY, REMEDY and `check`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, cast

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet_policies.problem import Level, Problem, Severity
from kai_fleet_policies.rules.charts import sources_known
from kai_fleet_policies.rules.kai import (
    gpu_one_sharer,
    kai_feature_known,
    kai_value_known,
    kai_value_reaches,
    kai_version_known,
    kai_version_supported,
)
from kai_fleet_policies.rules.queues import (
    queue_cluster_scoped,
    queue_depth,
    queue_duration,
    queue_quota,
    queue_tree,
    queue_zero_quota,
)
from kai_fleet_policies.rules.teams import (
    team_gang,
    team_granted,
    team_isolation,
    team_node_pools,
    team_one_mode,
    team_parent_queue,
    team_queue_limit,
    team_unique,
)
from kai_fleet_policies.rules.vclusters import (
    vcluster_flags,
    vcluster_isolation,
    vcluster_upgrade,
    vcluster_values,
    vcluster_version_known,
    vcluster_version_supported,
)
from kai_fleet_policies.rules.workloads import (
    namespace_reserved,
    workload_gpu_request,
    workload_gpu_sharing,
    workload_known_keys,
    workload_leaf_queue,
    workload_scheduler,
    workload_vllm_memory,
)


class Rule(Protocol):
    """A module of this package: what it forbids, why, what to write instead, and the check."""

    NAME: str
    LEVEL: Level
    SEVERITY: Severity
    WHY: str
    REMEDY: str

    def check(self, cluster: DeclaredCluster, /) -> Iterator[Problem]:
        """Every problem of one cluster; relations between a host's teams are the host's."""


RULES: Final[tuple[Rule, ...]] = tuple(
    cast(Rule, module)
    for module in (
        queue_tree,
        queue_quota,
        queue_depth,
        queue_duration,
        queue_cluster_scoped,
        queue_zero_quota,
        workload_leaf_queue,
        workload_scheduler,
        workload_known_keys,
        workload_gpu_request,
        workload_gpu_sharing,
        workload_vllm_memory,
        namespace_reserved,
        team_node_pools,
        team_one_mode,
        team_unique,
        team_granted,
        team_parent_queue,
        team_queue_limit,
        team_isolation,
        team_gang,
        sources_known,
        kai_version_known,
        kai_version_supported,
        kai_value_known,
        kai_value_reaches,
        kai_feature_known,
        vcluster_version_known,
        vcluster_version_supported,
        vcluster_values,
        vcluster_isolation,
        vcluster_flags,
        vcluster_upgrade,
        gpu_one_sharer,
    )
)


def check(clusters: Iterable[DeclaredCluster], only: Iterable[Rule] = RULES) -> list[Problem]:
    """What the rules say, mandatory problems first, then by path, rule and text."""
    every = list(clusters)
    return _in_order({problem for rule in only for problem in said_by(rule, every)})


def said_by(rule: Rule, clusters: Iterable[DeclaredCluster]) -> list[Problem]:
    """What one rule says, in the same order."""
    return _in_order({problem for cluster in clusters for problem in rule.check(cluster)})


def _in_order(found: set[Problem]) -> list[Problem]:
    return sorted(
        found, key=lambda p: (p.level is Level.ADVISORY, p.path, p.rule, p.subject, p.message)
    )
