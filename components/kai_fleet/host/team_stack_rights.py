"""What a team stack's credentials may do on the host.

Rights in its namespace, for its release and what that leaves. There it may write neither what
bounds it nor a role: the platform gives the vCluster its rights, so the account holds none of them
only to pass them on. It makes nothing that has no namespace, except its queues on a host with a
KAI: RBAC cannot bound their names, so an admission policy does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kai_fleet.guards.policies import (
    Object,
    PolicySet,
    as_annotations,
    binding,
    policy,
)

if TYPE_CHECKING:
    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict

ACCOUNTS: Final = "kai-fleet-team-stacks"  # the namespace of the accounts
IN_NAMESPACE: Final = "kai-fleet-team-stack"  # the rights inside the team's namespace

_READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch", "update", "delete")
_ALL: Final = ("create", *_CHANGE, *_READ)
_RBAC: Final = "rbac.authorization.k8s.io"
_QUEUES: Final = "scheduling.run.ai"


def _rule(groups: str, resources: str, verbs: tuple[str, ...], *names: str) -> PolicyRuleArgsDict:
    rule: PolicyRuleArgsDict = {
        "api_groups": groups.split("|"),
        "resources": resources.split(),
        "verbs": list(verbs),
    }
    if names:
        rule["resource_names"] = list(names)
    return rule


def account(team: str) -> str:
    """The user name of the team's service account."""
    return f"system:serviceaccount:{ACCOUNTS}:{team}"


def on_host(team: str, *, host_mode: bool) -> list[PolicyRuleArgsDict]:
    """Outside the team's namespace: nodes to look at, and in host mode the team's queues."""
    found = [
        _rule("", "namespaces", ("get",), f"team-{team}"),
        _rule("", "nodes", _READ),
    ]
    if host_mode:
        # Queues have no namespace; which ones, the bounds say.
        found.append(_rule(_QUEUES, "queues", _ALL))
    return found


def in_namespace() -> list[PolicyRuleArgsDict]:
    """Inside the team's namespace: what vCluster's chart makes there, and what it leaves behind.

    What bounds the namespace is read only: quotas, limit ranges and network policies. Roles that
    charts of releases before this one made, Helm deletes in its name.
    """
    return [
        # Helm's records are Secrets; the guard says who writes those.
        _rule("", "configmaps secrets services serviceaccounts", _ALL),
        _rule("apps", "statefulsets deployments", _ALL),
        _rule("policy", "poddisruptionbudgets", _ALL),
        _rule("networking.k8s.io", "ingresses", _ALL),
        _rule("", "pods persistentvolumeclaims", ("delete", *_READ)),
        _rule(_RBAC, "roles rolebindings", ("delete", *_READ)),
        _rule("", "pods/log events endpoints resourcequotas limitranges", _READ),
        _rule("apps", "replicasets", _READ),
        _rule("networking.k8s.io", "networkpolicies", _READ),
    ]


def queue_bounds(team: str, parent_queue: str, foreign: Sequence[str] = ()) -> dict[str, str]:
    """Which queues the team's account may write, for the policy that bounds them.

    `foreign` are queues and teams whose names only begin like the team's.
    """
    found = {"team": team, "parentQueue": parent_queue, "foreignQueues": ",".join(sorted(foreign))}
    return {key: value for key, value in found.items() if value}


def queue_policy(team: str, bounds: Mapping[str, str]) -> Object:
    """The policy that bounds the queues of the team's account. They have no namespace, whose
    annotations could have the bounds.
    """
    found = policy("team-stack-queues", PolicySet(), as_annotations(bounds))
    found["metadata"]["name"] = f"{IN_NAMESPACE}-{team}"
    for condition in found["spec"]["matchConditions"]:
        condition["expression"] = condition["expression"].replace("ACCOUNT", account(team))
    return found


def queue_binding(team: str) -> Object:
    """What puts that policy to work, for every queue of the host."""
    return binding(f"{IN_NAMESPACE}-{team}", f"{IN_NAMESPACE}-{team}")
