"""The rules as policies of Pulumi: what the engine is told of each, and what a stack may set."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from google.protobuf import json_format
from pulumi.runtime import proto

from kai_fleet.finding import Level
from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.releases.keys import RESERVED
from kai_fleet.releases.sources import KnownSources, NoPlaceError, chart_place, registry_place
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.rules import RULES
from kai_fleet_policies.rules.queues import EXISTING_QUEUES
from kai_fleet_policies.rules.rule import Severity

UNDECIDED: Final = "undecided"
RESERVED_KEY: Final = "reservedNamespaces"
EXEMPT_KEY: Final = "exemptNamespaces"
QUEUES_KEY: Final = "queuesByNamespace"
CHARTS_KEY: Final = "charts"
IMAGES_KEY: Final = "images"

_NAMES: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}


def _names(description: str) -> dict[str, Any]:
    return _NAMES | {"description": description, "default": []}


_EXEMPT: Final = {EXEMPT_KEY: _names("Namespaces whose workloads this rule leaves alone.")}
_EXISTING: Final = {
    EXISTING_QUEUES: _names("Queues that another program makes, such as KAI's chart.")
}
_BY_NAMESPACE: Final = {
    "type": "object",
    "additionalProperties": _NAMES,
    "description": "The only queues that pods of a namespace may name, by namespace.",
    "default": {},
}
_OWN: Final[Mapping[str, dict[str, Any]]] = {
    "namespace-reserved": {RESERVED_KEY: _names(f"Reserved beside {', '.join(sorted(RESERVED))}.")},
    "queue-tree": _EXISTING,
    "workload-leaf-queue": _EXISTING | {QUEUES_KEY: _BY_NAMESPACE},
    "sources-known": {
        CHARTS_KEY: _names("Chart locations besides those of the release tables."),
        IMAGES_KEY: _names("Image registries besides those of the release tables."),
    },
}


def schema(rule: str) -> dict[str, dict[str, Any]]:
    """The properties that a rule takes, as JSON Schema; none for rules that look at no workload."""
    workloads = rule.startswith("workload-") or rule == "namespace-reserved"
    return (_EXEMPT if workloads else {}) | dict(_OWN.get(rule, {}))


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

    charts = _places(chart_place, properties.get(CHARTS_KEY) or ())
    images = _places(registry_place, properties.get(IMAGES_KEY) or ())
    return replace(
        _with_queues(cluster, properties.get(EXISTING_QUEUES) or ()),
        workloads=tuple(w for w in cluster.workloads if judged(w.namespace)),
        objects=tuple(n for n in cluster.objects if judged(n.namespace)),
        reserved=cluster.reserved.union(properties.get(RESERVED_KEY) or ()),
        queues_of=properties.get(QUEUES_KEY) or cluster.queues_of,
        sources=KnownSources(charts, images) if charts or images else cluster.sources,
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


def _places(read: Callable[[str], object], texts: Iterable[str]) -> tuple[str, ...]:
    """What is a place of these; another text names none, and allows nothing."""

    def is_place(text: str) -> bool:
        try:
            read(text)
        except NoPlaceError:
            return False
        return True

    return tuple(filter(is_place, texts))


def _policy(name: str, description: str, level: Level, severity: Severity, remedy: str) -> Any:
    """The protocol's own record of a policy."""
    info = proto.PolicyInfo(
        name=name,
        description=description,
        enforcementLevel=getattr(proto, level.name),
        policy_type=proto.POLICY_TYPE_STACK,
        severity=getattr(proto, f"POLICY_SEVERITY_{severity.name}"),
        remediation_steps=remedy,
    )
    if properties := schema(name):
        json_format.ParseDict(properties, info.configSchema.properties)
    return info


# A policy for each rule, and last the one for what is not decided yet.
POLICIES: Final = (
    *(_policy(rule.name, rule.why, rule.level, rule.severity, rule.remedy) for rule in RULES),
    _policy(
        UNDECIDED,
        "Some values are known only during the update; these rules decide then.",
        Level.ADVISORY,
        Severity.LOW,
        "Nothing to do: the rules are asked again during the update.",
    ),
)
