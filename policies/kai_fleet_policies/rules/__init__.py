"""One module per rule, each with LEVEL, SEVERITY, WHY, REMEDY and `check`."""

from collections.abc import Iterable
from importlib import import_module
from typing import Final, TypeAlias, cast

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet_policies import problem
from kai_fleet_policies.problem import Level, Problem, name_of, problems_of

Rule: TypeAlias = problem.Rule[DeclaredCluster]

# In the order of the page of rules; each is a module here, or of those that judge what runs in a
# team's own cluster, too.
RULES: Final[tuple[Rule, ...]] = tuple(
    cast(Rule, import_module(module, __name__))
    for module in (
        ".queues.queue_tree",
        ".queues.queue_quota",
        ".queues.queue_units",
        ".queues.queue_depth",
        ".queues.queue_duration",
        ".queues.queue_cluster_scoped",
        ".queues.queue_zero_quota",
        ".workloads.workload_leaf_queue",
        ".workloads.workload_scheduler",
        ".workloads.workload_known_keys",
        ".workloads.workload_gpu_request",
        ".workloads.workload_gpu_sharing",
        ".workloads.workload_vllm_memory",
        ".namespace_reserved",
        ".teams.team_node_pools",
        ".teams.team_one_mode",
        ".teams.team_unique",
        ".teams.team_parent_queue",
        ".teams.team_queue_limit",
        ".teams.team_isolation",
        ".teams.team_gang",
        ".sources_known",
        ".kai.kai_version_known",
        ".kai.kai_version_supported",
        ".kai.kai_value_known",
        ".kai.kai_value_reaches",
        ".kai.kai_feature_known",
        ".vclusters.vcluster_version_known",
        ".vclusters.vcluster_version_supported",
        ".vclusters.vcluster_kubernetes",
        ".vclusters.vcluster_values",
        ".vclusters.vcluster_isolation",
        ".vclusters.vcluster_flags",
        ".vclusters.vcluster_upgrade",
        ".vclusters.vcluster_access",
        ".vclusters.vcluster_store",
        ".vclusters.vcluster_resources",
        ".vclusters.vcluster_volume",
        ".kai.gpu_one_sharer",
        ".kai.gpu_sharing_mode",
        ".vclusters.vcluster_kubernetes_known",
        ".vclusters.vcluster_node_pool",
    )
)
BY_NAME: Final = {name_of(rule): rule for rule in RULES}


def check(clusters: Iterable[DeclaredCluster], only: Iterable[Rule] = RULES) -> list[Problem]:
    """All problems, mandatory ones first, then by path, rule and text."""
    every = list(clusters)
    return _in_order({problem for rule in only for problem in problems_in(rule, every)})


def problems_in(rule: Rule, clusters: Iterable[DeclaredCluster]) -> list[Problem]:
    """The problems of one rule, in the same order."""
    return _in_order({problem for cluster in clusters for problem in problems_of(rule, cluster)})


def _in_order(problems: set[Problem]) -> list[Problem]:
    return sorted(
        problems, key=lambda p: (p.level is Level.ADVISORY, p.path, p.rule, p.subject, p.message)
    )
