"""The policies in the YAML files beside this one, and what puts them to work in a cluster."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

import yaml

Object = dict[str, Any]
Kind = Literal[
    "devices",
    "pods",
    "traffic",
    "nodes",
    "lifecycle",
    "releases",
    "owners",
    "queues",
    "outside-queues",
    "team-stack-queues",
]

QUEUES: Final = "kai-fleet-queues-"  # begins the names of queue guards
POLICY: Final = "ValidatingAdmissionPolicy"
BINDING: Final = "ValidatingAdmissionPolicyBinding"
# What bounds a team by its own ConfigMap, whatever its mode.
OF_EVERY_TEAM: Final[tuple[Kind, ...]] = ("devices", "pods", "traffic")
# What looks at who asks, and needs nothing of a team: one binding for all of them.
OF_ALL_TEAMS: Final[tuple[Kind, ...]] = ("lifecycle", "releases")
ISOLATION_LABEL: Final = "kai-fleet/isolation"  # of a team's namespace: its level
GUARD_LABEL: Final = "kai-fleet/guard"  # of the ConfigMaps that policies read
NAME_LABEL: Final = "kubernetes.io/metadata.name"
# What a binding does with an object that the policy refuses.
DENY: Final = ("Deny",)
WARN: Final = ("Warn",)
AUDIT: Final = ("Audit", "Warn")  # it passes, and both its maker and the audit log are told


@dataclass(frozen=True)
class PolicySet:
    """One set of policies: a host's, for all of its teams, or with a `suffix` somebody's own.

    `namespace` is where the ConfigMaps with the teams' bounds are. No team can write there.
    """

    suffix: str = ""

    @property
    def namespace(self) -> str:
        """Where the parameters stand."""
        return f"kai-fleet-guards{self.suffix}"

    def called(self, kind: Kind) -> str:
        """The name of a policy in the cluster."""
        return f"kai-fleet-{kind}{self.suffix}"


@cache
def _read(kind: Kind) -> Object:
    text = (files(__package__) / f"{kind}.yaml").read_text(encoding="utf-8")
    found: Object = yaml.safe_load(text)
    return found


def policy(kind: Kind, of: PolicySet) -> Object:
    """A policy as the cluster has it."""
    found = copy.deepcopy(_read(kind))
    found["metadata"]["name"] = of.called(kind)
    return found


def parameters(name: str, namespace: str, data: Mapping[str, str]) -> Object:
    """The ConfigMap that a policy reads for one team."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {GUARD_LABEL: "bounds"}},
        "data": dict(data),
    }


def binding(
    name: str,
    policy_name: str,
    *,
    actions: tuple[str, ...] = DENY,
    namespace: Any = None,
    parameter: tuple[str, str] | None = None,
    match: Mapping[str, Any] | None = None,
    param_ref: Mapping[str, Any] | None = None,
) -> Object:
    """What puts a policy to work: in one `namespace`, or in all where None.

    `parameter` is the name and namespace of the ConfigMap, without which everything is denied.
    `match` and `param_ref` are taken as they are, for other choices.
    """
    spec: Object = {"policyName": policy_name, "validationActions": list(actions)}
    resources = dict(match or {})
    if namespace is not None:
        resources["namespaceSelector"] = {"matchLabels": {NAME_LABEL: namespace}}
    if resources:
        spec["matchResources"] = resources
    if parameter is not None:
        named, place = parameter
        spec["paramRef"] = {
            "name": named,
            "namespace": place,
            "parameterNotFoundAction": "Deny",
        }
    if param_ref is not None:
        spec["paramRef"] = dict(param_ref)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": BINDING,
        "metadata": {"name": name},
        "spec": spec,
    }


def shared_bindings(of: PolicySet, namespace: Any = None) -> dict[Kind, Object]:
    """The bindings of policies that need no parameters: in every team's namespace, or in one."""
    levels = {"key": ISOLATION_LABEL, "operator": "In", "values": ["baseline", "restricted"]}
    every = {"namespaceSelector": {"matchExpressions": [levels]}}
    return {
        kind: binding(
            of.called(kind),
            of.called(kind),
            namespace=namespace,
            match=None if namespace is not None else every,
        )
        for kind in OF_ALL_TEAMS
    }
