"""A stack as the engine sends it to a policy pack, read once and without the SDK's proxies.

The SDK reads the whole stack anew for each policy, in two passes, and wraps it so that an unknown
value raises an error (P4). Here every value is read once, and an unknown one is UNKNOWN.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kai_fleet.provider import QUEUES
from kai_fleet.provider.values import plain
from kai_fleet_policies.adapters.declared_trees import PROVIDER
from kai_fleet_policies.adapters.from_resources import Declared
from kubectl_fleet.declared.unknown import UNKNOWN


def stack(resources: Iterable[Any], inputs: Mapping[str, Any] | None = None) -> list[Declared]:
    """What the rules read of an AnalyzeStackRequest, with their `inputs` where those are kept:
    Kubernetes resources, their providers and queue trees.

    Inputs are what was declared, and are there in every preview; outputs may not be. Sorted,
    because resources come in the order in which they happened to be made.
    """
    namespaces: dict[str, str] = {}
    declared = inputs or {}
    return [
        one(resource, declared.get(resource.urn, resource.properties), namespaces)
        for resource in sorted(resources, key=lambda resource: str(resource.urn))
        if resource.type.startswith("kubernetes:") or resource.type in (PROVIDER, QUEUES)
    ]


def one(resource: Any, properties: Any, namespaces: dict[str, str]) -> Declared:
    """One resource; `namespaces` keeps the default one of each provider between calls."""
    provider = resource.provider if resource.HasField("provider") else None
    urn = provider.urn if provider else ""
    if urn not in namespaces:
        found = struct(provider.properties).get("namespace") if provider else None
        known = found is UNKNOWN or isinstance(found, str)
        namespaces[urn] = found if known and found else "default"
    return Declared(
        urn=resource.urn,
        type=resource.type,
        name=resource.name,
        props=struct(properties),
        provider=urn,
        default_namespace=namespaces[urn],
    )


def struct(properties: Any) -> dict[str, Any]:
    """A protobuf Struct as plain values. A secret is read like its value, which no rule repeats."""
    return plain(properties, UNKNOWN)
