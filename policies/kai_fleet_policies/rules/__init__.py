"""What is allowed: rules about queues, workloads, GPUs, teams, KAI and vClusters."""

from collections.abc import Iterable, Iterator
from types import ModuleType

from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.rules import (
    backups,
    charts,
    gpus,
    kai,
    queue_shares,
    queues,
    sources,
    teams,
    vcluster_access,
    vcluster_store,
    vcluster_values,
    vclusters,
    workloads,
)
from kai_fleet_policies.rules.rule import Rule


def _rules_in(*modules: ModuleType) -> Iterator[Rule]:
    """The rules of the modules, in the order in which they are written."""
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Rule):
                yield value


RULES = tuple(
    _rules_in(
        queues,
        queue_shares,
        workloads,
        gpus,
        teams,
        kai,
        vclusters,
        vcluster_values,
        vcluster_access,
        vcluster_store,
        backups,
        charts,
        sources,
    )
)
BY_NAME = {rule.name: rule for rule in RULES}


def check(clusters: Iterable[ClusterModel], only: Iterable[Rule] = RULES) -> list[Finding]:
    """What the rules find in the clusters, each finding once; also the undecided ones.

    Mandatory findings are first, then order is by path, rule, subject and cause. The cluster in a
    vCluster is judged only if it is one of `clusters`, as in `ClusterModel.with_insides`; few rules
    look inside from the host.
    """
    judged = list(clusters)
    findings = set[Finding]()
    for rule in only:
        for cluster in judged:
            findings.update(rule.check(cluster))
    return sorted(findings, key=_order)


def _order(finding: Finding) -> tuple[bool, str, str, str, str]:
    is_warning = finding.level is Level.ADVISORY
    return is_warning, finding.path, finding.check, finding.subject, finding.cause
