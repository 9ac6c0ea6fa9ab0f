"""What a stack may set about the rules: the pack's configuration, as CrossGuard passes it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.releases.sources import (
    KnownSources,
    NoPlaceError,
    chart_place,
    registry_place,
)
from kai_fleet_policies.rules.charts import sources_known
from kai_fleet_policies.rules.workloads import namespace_reserved
from kubectl_fleet.declared.queues import DeclaredQueue
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.releases.keys import RESERVED
from kubectl_fleet.rules import queue_tree, workload_leaf_queue
from kubectl_fleet.rules.queue_tree import EXISTING_QUEUES

RESERVED_KEY: Final = "reservedNamespaces"
EXEMPT_KEY: Final = "exemptNamespaces"
QUEUES_KEY: Final = "queuesByNamespace"
CHARTS_KEY: Final = "charts"
IMAGES_KEY: Final = "images"

_NAMES: Final[dict[str, Any]] = {"type": "array", "items": {"type": "string"}}
_EXEMPT: Final = {
    EXEMPT_KEY: _NAMES
    | {"description": "Namespaces whose workloads this rule leaves alone.", "default": []}
}
_EXISTING: Final = {
    EXISTING_QUEUES: _NAMES
    | {"description": "Queues that another program makes, such as KAI's chart.", "default": []}
}
_OWN: Final[Mapping[str, dict[str, Any]]] = {
    namespace_reserved.NAME: {
        RESERVED_KEY: _NAMES
        | {
            "description": f"Reserved beside {', '.join(sorted(RESERVED))}.",
            "default": [],
        }
    },
    queue_tree.NAME: _EXISTING,
    workload_leaf_queue.NAME: _EXISTING
    | {
        QUEUES_KEY: {
            "type": "object",
            "additionalProperties": _NAMES,
            "description": "The only queues that pods of a namespace may name, by namespace.",
            "default": {},
        }
    },
    sources_known.NAME: {
        CHARTS_KEY: _NAMES
        | {"description": "Chart locations besides those of the release tables.", "default": []},
        IMAGES_KEY: _NAMES
        | {"description": "Image registries besides those of the release tables.", "default": []},
    },
}


def schema(rule: str) -> dict[str, dict[str, Any]]:
    """The properties that a rule takes, as JSON Schema; none for rules that look at no workload."""
    workloads = rule.startswith("workload-") or rule == namespace_reserved.NAME
    return (_EXEMPT if workloads else {}) | dict(_OWN.get(rule, {}))


@dataclass(frozen=True)
class RuleConfig:
    """One rule's configuration. Levels are not here: CrossGuard applies them itself."""

    reserved: frozenset[str] = frozenset()
    exempt: frozenset[str] = frozenset()
    queues_of: Mapping[str, Sequence[str]] | None = None
    existing: frozenset[str] = frozenset()
    sources: KnownSources | None = None

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> RuleConfig:
        """From the properties that the engine has held against `schema`."""
        return cls(
            reserved=frozenset(properties.get(RESERVED_KEY) or ()),
            exempt=frozenset(properties.get(EXEMPT_KEY) or ()),
            queues_of=dict(properties.get(QUEUES_KEY) or {}) or None,
            existing=frozenset(properties.get(EXISTING_QUEUES) or ()),
            sources=_sources(properties),
        )

    def applied(self, cluster: DeclaredCluster) -> DeclaredCluster:
        """The cluster as the rule is to see it; the same object where nothing is set."""
        if not (self.reserved or self.exempt or self.queues_of or self.sources or self.existing):
            return cluster
        elsewhere = sorted(self.existing - cluster.tree.by_name.keys())
        workloads = tuple(w for w in cluster.workloads if not self._exempts(w.namespace))
        namespaced = tuple(n for n in cluster.namespaced if not self._exempts(n.namespace))
        return replace(
            cluster,
            queues=(*cluster.queues, *map(DeclaredQueue, elsewhere)),
            workloads=workloads,
            namespaced=namespaced,
            reserved=cluster.reserved | self.reserved,
            queues_of=self.queues_of or cluster.queues_of,
            sources=self.sources or cluster.sources,
        )

    def _exempts(self, namespace: str | None) -> bool:
        # An unknown namespace may turn out not to be exempt: the rule keeps its question.
        return namespace is not UNKNOWN and (namespace or "default") in self.exempt


def _sources(properties: Mapping[str, Any]) -> KnownSources | None:
    """What is a place of these; another text names none, and allows nothing."""
    charts = [it for it in properties.get(CHARTS_KEY) or () if _names(chart_place, it)]
    images = [it for it in properties.get(IMAGES_KEY) or () if _names(registry_place, it)]
    return KnownSources(tuple(charts), tuple(images)) if charts or images else None


def _names(place: Callable[[str], Any], text: str) -> bool:
    try:
        place(text)
    except NoPlaceError:
        return False
    return True
