"""What accounts may do on a host: that of a vCluster, and that of a team stack.

A vCluster's rights are in place of those of its chart, which depend on values and version: who
installs it has to hold all that it gives, and several versions reach into every pod of a node
(`nodes/proxy`). These are the platform's. On the host the account only reads. Each right in the
namespace is there because the source of that version uses it, and docs/isolation.md says of each
what bounds it. `tests/unit/test_vcluster_role.py` holds it against each version's chart.
"""

from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi_kubernetes.rbac import v1 as rbac

from kai_fleet.guards.bounds import Args
from kai_fleet.guards.policies import content
from kai_fleet.inputs import resolved
from kai_fleet.options import after
from kai_fleet.releases import version_key
from kai_fleet.values import value_at

Rule = dict[str, Any]
VCLUSTER: Final = "kai-fleet-vcluster"  # a vCluster's Role and its binding
GROUP: Final = "rbac.authorization.k8s.io"
_NEWEST: Final = 1_000
_CONDITIONS: Final = ("since", "when", "unasked", "unless")


def vcluster_on_host(args: Args) -> list[Rule]:
    """Classes of every kind; nodes and what runs on them where a scheduler inside chooses them."""
    rules, inside = content("rights"), args.get("scheduler", "inside") == "inside"
    return [*rules["vcluster_on_host"], *(rules["vcluster_with_scheduler"] if inside else ())]


def vcluster_in_namespace(team: str, args: Args) -> pulumi.Input[list[Rule]]:
    """The rules of its Role. Without a version and values, as of a team with a stack of its own,
    they are those of every version, and of what it may sync without the platform's word.
    """
    return resolved(_in_namespace, team, args.get("vcluster_version"), args.get("vcluster_values"))


def team_stack_on_host(team: str, *, host_mode: bool) -> list[Rule]:
    """Outside the team's namespace: nodes to look at, and in host mode the team's queues."""
    rules = content("rights")
    every = [*rules["team_stack_on_host"], *(rules["team_stack_queues"] if host_mode else ())]
    return [_named(rule, team) for rule in every]


def _in_namespace(team: str, version: str | None, values: Mapping[str, Any] | None) -> list[Rule]:
    minor = _NEWEST if version is None else version_key(version)[1]
    if version is not None:
        values = values or {}
    rules = []
    for rule in content("rights")["vcluster_in_namespace"]:
        granted = "when" not in rule or any(_on(value_at(values, key)) for key in rule["when"])
        granted |= values is None and rule.get("unasked", False)
        switched_off = value_at(values, rule.get("unless", "")) is False
        if granted and not switched_off and minor >= rule.get("since", 0):
            rules.append(_named(rule, team))
    return rules


def _named(rule: Rule, team: str) -> Rule:
    """A rule as RBAC has it, for a team's objects."""
    names = [name.replace("TEAM", team) for name in rule.get("resource_names", ())]
    given = {key: value for key, value in rule.items() if key not in _CONDITIONS}
    return {**given, "resource_names": names} if names else given


def _on(value: Any) -> bool:
    """Whether a switch is on, or there are several of what is counted."""
    return value is True or value == "true" or (isinstance(value, int) and value > 1)


def declare_role(
    name: str,
    metadata: Mapping[str, Any],
    rules: Any,
    subject: rbac.SubjectArgsDict,
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """A role and the binding that gives it to a subject; `name` begins those of the resources.

    They are of the namespace in `metadata`, else of the whole cluster.
    """
    kind: Any = rbac.Role if "namespace" in metadata else rbac.ClusterRole
    bind: Any = rbac.RoleBinding if "namespace" in metadata else rbac.ClusterRoleBinding
    role = kind(f"{name}-role", metadata=metadata, rules=rules, opts=opts)
    reference = role_ref(kind.__name__, metadata["name"])
    binding = bind(
        f"{name}-binding",
        metadata=metadata,
        role_ref=reference,
        subjects=[subject],
        opts=after(opts, role),
    )
    return [role, binding]


def role_ref(kind: str, name: pulumi.Input[str]) -> rbac.RoleRefArgsDict:
    """What a binding names."""
    return {"api_group": GROUP, "kind": kind, "name": name}


def service_account(name: str, namespace: pulumi.Input[str]) -> rbac.SubjectArgsDict:
    """A service account as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
