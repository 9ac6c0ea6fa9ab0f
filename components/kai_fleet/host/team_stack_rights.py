"""What a team stack's credentials may do on the host.

Rights in its namespace, for its release and what that leaves. There it may write neither what
bounds it nor a role: the platform gives the vCluster its rights, so the account holds none of them
only to pass them on. It makes nothing that has no namespace, except its queues on a host with a
KAI: RBAC cannot bound their names, so an admission policy does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kai_fleet.guards.policies import Object, binding, policy

if TYPE_CHECKING:
    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict

ACCOUNTS: Final = "kai-fleet-team-stacks"  # the namespace of the accounts
IN_NAMESPACE: Final = "kai-fleet-team-stack"  # the rights inside the team's namespace

READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch", "update", "delete")
_ALL: Final = ("create", *_CHANGE, *READ)
_RBAC: Final = "rbac.authorization.k8s.io"
_QUEUES: Final = "scheduling.run.ai"


def rule(group: str, resources: str, verbs: Sequence[str], *names: str) -> PolicyRuleArgsDict:
    """A rule of RBAC; `resources` are words."""
    found: PolicyRuleArgsDict = {
        "api_groups": [group],
        "resources": resources.split(),
        "verbs": list(verbs),
    }
    if names:
        found["resource_names"] = list(names)
    return found


def on_host(team: str, *, host_mode: bool) -> list[PolicyRuleArgsDict]:
    """Outside the team's namespace: nodes to look at, and in host mode the team's queues."""
    found = [rule("", "namespaces", ("get",), f"team-{team}"), rule("", "nodes", READ)]
    if host_mode:
        # Queues have no namespace; which ones, the bounds say.
        found.append(rule(_QUEUES, "queues", _ALL))
    return found


def in_namespace() -> list[PolicyRuleArgsDict]:
    """Inside the team's namespace: what vCluster's chart makes there, and what it leaves behind.

    What bounds the namespace is read only: quotas, limit ranges and network policies. Roles that
    charts of releases before this one made, Helm deletes in its name.
    """
    return [
        # Helm's records are Secrets; the guard says who writes those.
        rule("", "configmaps secrets services serviceaccounts", _ALL),
        rule("apps", "statefulsets deployments", _ALL),
        rule("policy", "poddisruptionbudgets", _ALL),
        rule("networking.k8s.io", "ingresses", _ALL),
        rule("", "pods persistentvolumeclaims", ("delete", *READ)),
        rule(_RBAC, "roles rolebindings", ("delete", *READ)),
        rule("", "pods/log events endpoints resourcequotas limitranges", READ),
        rule("apps", "replicasets", READ),
        rule("networking.k8s.io", "networkpolicies", READ),
    ]


def queue_guard(team: str, parent_queue: str, foreign: Sequence[str] = ()) -> tuple[Object, Object]:
    """The policy that bounds the queues of the team's account, and its binding for every queue of
    the host. Queues have no namespace, whose annotations could have the bounds.

    `foreign` are queues and teams whose names only begin like the team's.
    """
    bounds = {"team": team, "parentQueue": parent_queue, "foreignQueues": ",".join(sorted(foreign))}
    found = policy("team-stack-queues", "", {key: it for key, it in bounds.items() if it})
    found["metadata"]["name"] = called = f"{IN_NAMESPACE}-{team}"
    account = f"system:serviceaccount:{ACCOUNTS}:{team}"
    for condition in found["spec"]["matchConditions"]:
        condition["expression"] = condition["expression"].replace("ACCOUNT", account)
    return found, binding(called, called)
