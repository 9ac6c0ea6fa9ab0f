"""The bindings of one team's guards on the host, as plain objects."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from kai_fleet.guards.host_rules import HostRules
from kai_fleet.guards.policies import Object, PolicySet, binding

_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}


def node_bindings(rules: HostRules, of: PolicySet, namespace: Any) -> dict[str, Object]:
    """What keeps the team's pods off nodes of others, by the last part of the resources' names."""
    bindings = {}
    for number, selector in enumerate(foreign_nodes(rules)):
        suffix = f".{number}" if number else ""
        bindings[f"nodes-binding{suffix}"] = binding(
            f"kai-fleet-nodes-{rules.team}{suffix}",
            of.called("nodes"),
            namespace=namespace,
            # Pods of a pool are bound to it by their node selector, their control plane to its own.
            match={"resourceRules": [_PODS]} if rules.pool else None,
            # Where no such node is, there is none to keep off.
            param_ref={"selector": selector, "parameterNotFoundAction": "Allow"},
        )
    return bindings


def foreign_nodes(rules: HostRules) -> list[Object]:
    """Selectors of the nodes that are not the team's.

    Of a team with a pool whose pods name their nodes: whatever lacks any label of the pool. Of a
    team without: the pools of others. Pods of other teams are held to their pool by its labels.
    """
    if rules.pool and rules.names_nodes:
        return [_expressions(_other(key, value)) for key, value in sorted(rules.pool.items())]
    if rules.pool:
        return []
    return _pools(rules.foreign_pools)


def _other(key: str, value: str) -> Object:
    return {"key": key, "operator": "NotIn", "values": [value]}


def _pools(pools: Sequence[Mapping[str, str]]) -> list[Object]:
    """One selector for all pools that differ in the value of one label, one for each other pool."""
    values: dict[str, list[str]] = defaultdict(list)
    for pool in pools:
        if len(pool) == 1:
            [(key, value)] = pool.items()
            values[key].append(value)
    single = [
        _expressions({"key": key, "operator": "In", "values": sorted(set(among))})
        for key, among in sorted(values.items())
    ]
    several = [{"matchLabels": dict(sorted(pool.items()))} for pool in pools if len(pool) > 1]
    return [*single, *several]


def _expressions(*wanted: Object) -> Object:
    return {"matchExpressions": list(wanted)}
