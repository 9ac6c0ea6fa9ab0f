"""What a team stack's credentials may do on the host: RBAC rules, and the bounds RBAC cannot set.

RBAC cannot bound the name of what is created, so for those kinds an admission policy does. Nobody
may write a role that holds more than himself: what vCluster's own roles hold is therefore part of
the rights, in place of `escalate`, which would have no bound at all.
"""

from __future__ import annotations

from typing import Any, Final

from components.queue_guard_rules import text
from policies.model import GUARD

ACCOUNTS: Final = "kai-fleet-team-stacks"  # the namespace of the accounts, and the shared role
IN_NAMESPACE: Final = "kai-fleet-team-stack"  # the rights inside the team's namespace

Rule = dict[str, Any]
_READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("patch", "update", "delete")
_ALL: Final = ("create", *_CHANGE, *_READ)
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_QUEUES: Final = "scheduling.run.ai"


def _rule(groups: str, resources: str, verbs: tuple[str, ...], *names: str) -> Rule:
    found: Rule = {
        "api_groups": groups.split("|"),
        "resources": resources.split(),
        "verbs": list(verbs),
    }
    return found | ({"resource_names": list(names)} if names else {})


def cluster_role(team: str) -> str:
    """The name of the cluster role that the team's vCluster chart makes."""
    return f"vc-{team}-v-team-{team}"[:63].rstrip("-")


def account(team: str) -> str:
    """The user name of the team's service account."""
    return f"system:serviceaccount:{ACCOUNTS}:{team}"


def on_host(team: str, *, host_mode: bool) -> list[Rule]:
    """Outside the team's namespace: its own objects by name, and what its vCluster reads."""
    role = cluster_role(team)
    found = [
        _rule("", "namespaces", ("create",)),
        _rule("", "namespaces", (*_READ, *_CHANGE), f"team-{team}"),
        _rule(_RBAC, "clusterroles clusterrolebindings", ("create",)),
        _rule(_RBAC, "clusterroles clusterrolebindings", (*_READ, *_CHANGE), role),
        # How the team's stack gets the rights in the namespace that it has just made.
        _rule(_RBAC, "rolebindings", ("create",)),
        _rule(_RBAC, "rolebindings", (*_READ, *_CHANGE), IN_NAMESPACE),
        _rule(_RBAC, "clusterroles", ("bind",), IN_NAMESPACE),
        # What the role of a vCluster holds: its scheduler sees the nodes and what runs on them.
        _rule("", "nodes nodes/status pods", _READ),
        _rule("node.k8s.io", "runtimeclasses", _READ),
        _rule("storage.k8s.io", "storageclasses csinodes csidrivers csistoragecapacities", _READ),
    ]
    if host_mode:
        guards = "validatingadmissionpolicies validatingadmissionpolicybindings"
        found += [
            _rule("scheduling.k8s.io", "priorityclasses", _ALL),
            _rule(_QUEUES, "queues", _ALL),
            _rule(_ADMISSION, guards, ("create",)),
            _rule(_ADMISSION, guards, (*_READ, *_CHANGE), f"{GUARD}{team}"),
        ]
    return found


def in_namespace() -> list[Rule]:
    """Inside the team's namespace: its release, and what vCluster's role there holds."""
    kept = (
        "configmaps secrets services pods pods/attach pods/portforward pods/exec"
        " persistentvolumeclaims serviceaccounts endpoints resourcequotas limitranges"
    )
    return [
        _rule("", kept, _ALL),
        _rule("", "pods/status pods/ephemeralcontainers pods/resize", ("patch", "update")),
        _rule("", "pods/log", _READ),
        _rule("|events.k8s.io", "events", _ALL),
        _rule("apps", "statefulsets deployments replicasets", _ALL),
        _rule("policy", "poddisruptionbudgets", _ALL),
        _rule("discovery.k8s.io", "endpointslices", _ALL),
        _rule("coordination.k8s.io", "leases", _ALL),
        _rule("networking.k8s.io", "ingresses networkpolicies", _ALL),
        _rule(_RBAC, "roles rolebindings", _ALL),
    ]


def watched() -> list[dict[str, Any]]:
    """The kinds that the bounds look at, for an admission policy."""
    named = [
        ("", "v1", "namespaces", ("CREATE", "UPDATE")),
        ("", "v1", "resourcequotas", ("CREATE", "UPDATE", "DELETE")),
        (_RBAC, "v1", "rolebindings", ("CREATE", "UPDATE")),
        (_RBAC, "v1", "clusterroles", ("CREATE", "UPDATE")),
        (_RBAC, "v1", "clusterrolebindings", ("CREATE", "UPDATE")),
        (_QUEUES, "v2", "queues", ("CREATE", "UPDATE", "DELETE")),
    ]
    return [
        {
            "api_groups": [group],
            "api_versions": [version],
            "resources": [resource],
            "operations": list(operations),
        }
        for group, version, resource, operations in named
    ]


def bounds(
    team: str, *, gpus: int, gpu_resource: str, parent_queue: str | None
) -> list[dict[str, Any]]:
    """What the team's account may make, as an admission policy's validations."""
    namespace, role, key = f"team-{team}", cluster_role(team), f"requests.{gpu_resource}"
    name = "(object != null ? object : oldObject).metadata.name"
    asked = f"quantity(object.spec.hard[{text(key)}])"
    parent = "object.spec.?parentQueue.orValue('')"
    own_queue = (
        f"{name} == {text(team)} || {name}.startsWith({text(f'{team}-')})"
        f" ? (object == null || {parent} == {text(parent_queue or '')}"
        f" || {parent} == {text(team)} || {parent}.startsWith({text(f'{team}-')})) : false"
    )
    # Without a scope: one that counts some pods only bounds nothing.
    quota = (
        "request.operation == 'DELETE' ? false : (object.metadata.name != 'gpus'"
        f" || ({text(key)} in object.spec.?hard.orValue({{}})"
        f" && {asked}.compareTo(quantity({text(str(gpus))})) <= 0"
        " && size(object.spec.?scopes.orValue([])) == 0 && !has(object.spec.scopeSelector)))"
    )
    found = [
        ("namespaces", f"object.metadata.name == {text(namespace)}", f"only {namespace}"),
        ("rolebindings", f"request.namespace == {text(namespace)}", f"only in {namespace}"),
        ("clusterroles", f"object.metadata.name == {text(role)}", f"only {role}"),
        ("clusterrolebindings", f"object.metadata.name == {text(role)}", f"only {role}"),
        ("resourcequotas", quota, f"gpus with at most {gpus} {gpu_resource}, and not removed"),
        (
            "queues",
            own_queue,
            f"only queues named {team} or {team}-…, below {parent_queue or 'none'} or each other",
        ),
    ]
    return [
        {
            "expression": f"request.resource.resource != {text(kind)} || ({expression})",
            "message": f"the stack of team {team} may write of {kind}: {what}; the platform's"
            f" kai-fleet:teamStacks.{team} says so",
            "reason": "Forbidden",
        }
        for kind, expression, what in found
    ]
