"""What a team stack's credentials may do on the host.

Rights in its namespace, which hold for whoever it passes them on to; there it may write neither
what bounds it nor a role with more than it has itself. It makes nothing that has no namespace,
except its queues on a host with a KAI: RBAC cannot bound their names, so an admission policy does.
Nobody else gets that right: to pass it on takes a ClusterRoleBinding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kai_fleet.components.guard.queue_guard_rules import names, of_team, text

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


def watched() -> list[dict[str, Any]]:
    """The kinds that the bounds look at, for an admission policy."""
    return [
        {
            "api_groups": [_QUEUES],
            "api_versions": ["v2"],
            "resources": ["queues"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
        }
    ]


def bounds(team: str, parent_queue: str, foreign: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Which queues the team's account may write, as an admission policy's validations.

    `foreign` are queues and teams whose names only begin like the team's.
    """
    name = "(object != null ? object : oldObject).metadata.name"
    parent = "object.spec.?parentQueue.orValue('')"
    prefix = f"{team}-"
    own = (
        f"{name} != {text(parent_queue)} && {of_team(name, names([team]), prefix, foreign)}"
        f" && (object == null || {of_team(parent, names([parent_queue, team]), prefix, foreign)})"
    )
    return [
        {
            "expression": own,
            "message": f"the stack of team {team} may write only queues named {team} or {team}-…,"
            f" below {parent_queue} or each other; the platform's kai-fleet:teamStacks.{team}"
            " says so",
            "reason": "Forbidden",
        }
    ]
