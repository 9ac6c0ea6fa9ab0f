"""What a team stack's credentials may do on the host.

Rights in its namespace, which hold for whoever it passes them on to; there it may write neither
what bounds it nor a role with more than it has itself. It makes nothing that has no namespace,
except its queues on a host with a KAI: RBAC cannot bound their names, so an admission policy does.
Nobody else gets that right: to pass it on takes a ClusterRoleBinding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kai_fleet.components.guards.policies import Object, PolicySet, binding

ACCOUNTS: Final = "kai-fleet-team-stacks"  # the namespace of the accounts
IN_NAMESPACE: Final = "kai-fleet-team-stack"  # the rights inside the team's namespace

Rule = dict[str, Any]
_READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch", "update", "delete")
_ALL: Final = ("create", *_CHANGE, *_READ)
_RBAC: Final = "rbac.authorization.k8s.io"
_QUEUES: Final = "scheduling.run.ai"


def _rule(groups: str, resources: str, verbs: tuple[str, ...], *names: str) -> Rule:
    found: Rule = {
        "api_groups": groups.split("|"),
        "resources": resources.split(),
        "verbs": list(verbs),
    }
    return found | ({"resource_names": list(names)} if names else {})


def account(team: str) -> str:
    """The user name of the team's service account."""
    return f"system:serviceaccount:{ACCOUNTS}:{team}"


def on_host(team: str, *, host_mode: bool) -> list[Rule]:
    """Outside the team's namespace: nodes to look at, and in host mode the team's queues."""
    found = [
        _rule("", "namespaces", ("get",), f"team-{team}"),
        _rule("", "nodes", _READ),
    ]
    if host_mode:
        # Queues have no namespace; which ones, the bounds say.
        found.append(_rule(_QUEUES, "queues", _ALL))
    return found


def in_namespace() -> list[Rule]:
    """Inside the team's namespace: its release, and what vCluster's role there holds.

    What bounds the namespace is read only: quotas, limit ranges and network policies.
    """
    kept = (
        "configmaps secrets services pods pods/attach pods/portforward pods/exec"
        " persistentvolumeclaims serviceaccounts endpoints"
    )
    return [
        _rule("", kept, _ALL),
        _rule("", "pods/status pods/ephemeralcontainers pods/resize", ("patch", "update")),
        _rule("", "pods/log resourcequotas limitranges", _READ),
        _rule("|events.k8s.io", "events", _ALL),
        _rule("apps", "statefulsets deployments replicasets", _ALL),
        _rule("policy", "poddisruptionbudgets", _ALL),
        _rule("discovery.k8s.io", "endpointslices", _ALL),
        _rule("coordination.k8s.io", "leases", _ALL),
        _rule("networking.k8s.io", "ingresses", _ALL),
        _rule("networking.k8s.io", "networkpolicies", _READ),
        _rule(_RBAC, "roles rolebindings", _ALL),
    ]


def queue_parameters(team: str, parent_queue: str, foreign: Sequence[str] = ()) -> dict[str, str]:
    """Which queues the team's account may write, for the policy that bounds them.

    `foreign` are queues and teams whose names only begin like the team's.
    """
    found = {
        "team": team,
        "account": account(team),
        "parentQueue": parent_queue,
        "foreignQueues": ",".join(foreign),
    }
    return {key: value for key, value in found.items() if value}


def queue_binding(team: str, of: PolicySet) -> Object:
    """What puts that policy to work, for every queue of the host."""
    called = f"{IN_NAMESPACE}-{team}"
    return binding(called, of.called("team-stack-queues"), parameter=(called, of.namespace))
