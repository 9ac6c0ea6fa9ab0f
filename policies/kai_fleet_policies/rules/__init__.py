"""What is allowed: rules about queues, workloads, GPUs, teams, KAI and vClusters."""

from collections.abc import Iterable
from typing import Final

from kai_fleet.finding import Finding, Level
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.rules import (
    charts,
    gpus,
    kai,
    queues,
    sources,
    teams,
    vclusters,
    workloads,
)
from kai_fleet_policies.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = tuple(
    rule
    for module in (queues, workloads, gpus, teams, kai, vclusters, charts, sources)
    for rule in vars(module).values()
    if isinstance(rule, Rule)
)
BY_NAME: Final = {rule.name: rule for rule in RULES}


def check(clusters: Iterable[Cluster], only: Iterable[Rule] = RULES) -> list[Finding]:
    """Each finding once, mandatory ones first, then by path, rule and text."""
    every = list(clusters)
    return sorted(
        {finding for rule in only for cluster in every for finding in rule.check(cluster)},
        key=lambda one: (one.level is Level.ADVISORY, one.path, one.check, one.subject, one.cause),
    )
