"""The rules as policies of Pulumi: what the engine is told of each, and what a stack may set."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from google.protobuf import json_format
from pulumi.runtime import proto

from kai_fleet.finding import Level
from kai_fleet.releases.keys import RESERVED
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.queues import DeclaredQueue
from kai_fleet_policies.rules import RULES
from kai_fleet_policies.rules.queues import EXISTING_QUEUES
from kai_fleet_policies.rules.rule import Rule

UNDECIDED: Final = "undecided"
RESERVED_KEY: Final = "reservedNamespaces"
EXEMPT_KEY: Final = "exemptNamespaces"
# What a stack may set, each a list of names: of which rules, and what it means.
_PROPERTIES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    EXEMPT_KEY: (
        ("workload-", "namespace-reserved"),
        "Namespaces whose workloads this rule leaves alone.",
    ),
    RESERVED_KEY: (("namespace-reserved",), f"Reserved beside {', '.join(sorted(RESERVED))}."),
    EXISTING_QUEUES: (
        ("queue-tree", "workload-leaf-queue"),
        "Queues that another program makes, such as KAI's chart.",
    ),
}


def schema(rule: str) -> dict[str, dict[str, Any]]:
    """The properties that a rule takes, as JSON Schema."""
    names = {"type": "array", "items": {"type": "string"}, "default": []}
    return {
        key: {**names, "description": description}
        for key, (rules, description) in _PROPERTIES.items()
        if rule.startswith(rules)
    }


def configured(cluster: Cluster, properties: Mapping[str, Any]) -> Cluster:
    """The cluster as a rule is to see it; the same object where nothing is set.

    `properties` are of the rule's `schema`: the engine has held them against it.
    """
    if not any(properties.values()):
        return cluster
    exempt = frozenset(properties.get(EXEMPT_KEY) or ())

    def judged(namespace: str | None) -> bool:
        # An unknown namespace may turn out not to be exempt: the rule keeps its question.
        return namespace is UNKNOWN or (namespace or "default") not in exempt

    return replace(
        _with_queues(cluster, properties.get(EXISTING_QUEUES) or ()),
        workloads=tuple(w for w in cluster.workloads if judged(w.namespace)),
        objects=tuple(n for n in cluster.objects if judged(n.namespace)),
        reserved=cluster.reserved.union(properties.get(RESERVED_KEY) or ()),
    )


def _with_queues(cluster: Cluster, existing: Iterable[str]) -> Cluster:
    """The cluster with queues that another program makes, and so the one that schedules it."""
    host = cluster.scheduled_by
    more = sorted(set(existing) - cluster.tree.by_name.keys())
    return replace(
        cluster,
        queues=(*cluster.queues, *map(DeclaredQueue, more)),
        scheduled_by=host and _with_queues(host, existing),
    )


def _policy(rule: Rule) -> Any:
    """The protocol's own record of a policy."""
    info = proto.PolicyInfo(
        name=rule.name,
        description=rule.why,
        enforcementLevel=getattr(proto, rule.level.name),
        policy_type=proto.POLICY_TYPE_STACK,
        severity=getattr(proto, f"POLICY_SEVERITY_{rule.severity.upper()}"),
        remediation_steps=rule.about,
    )
    if properties := schema(rule.name):
        json_format.ParseDict(properties, info.configSchema.properties)
    return info


_OPEN_QUESTIONS: Final = Rule(
    UNDECIDED,
    Level.ADVISORY,
    "low",
    "Nothing to do: the rules are asked again during the update.",
    "Some values are known only during the update; these rules decide then.",
    lambda cluster: iter(()),
)
# A policy for each rule, and last the one for what is not decided yet.
POLICIES: Final = tuple(map(_policy, (*RULES, _OPEN_QUESTIONS)))
