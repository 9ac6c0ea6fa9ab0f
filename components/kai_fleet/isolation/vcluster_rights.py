"""What a vCluster reads of its host: one ClusterRole per team, in place of the chart's own.

The chart's role depends on its values, which whoever installs it chooses, and lets several versions
reach into every pod of a node (`nodes/proxy`). This one is the platform's, and only reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict

_READ: Final = ["get", "list", "watch"]
_CLASSES: Final = {
    "node.k8s.io": ["runtimeclasses"],
    "storage.k8s.io": ["storageclasses", "csinodes", "csidrivers", "csistoragecapacities"],
    "scheduling.k8s.io": ["priorityclasses"],
    "networking.k8s.io": ["ingressclasses"],
    "gateway.networking.k8s.io": ["gatewayclasses"],
    "snapshot.storage.k8s.io": ["volumesnapshotclasses"],
    "resource.k8s.io": ["deviceclasses"],
}


def called(team: str) -> str:
    """The name of the role and of its binding."""
    return f"kai-fleet-vcluster-{team}"


def account(team: str) -> str:
    """The name of the vCluster's account, in the team's namespace."""
    return f"vc-{team}"


def rules(*, sees_nodes: bool) -> list[PolicyRuleArgsDict]:
    """Classes of every kind; nodes and what runs on them where a scheduler inside chooses them."""
    found: list[PolicyRuleArgsDict] = [
        {"api_groups": [group], "resources": resources, "verbs": _READ}
        for group, resources in _CLASSES.items()
    ]
    if sees_nodes:
        # Of other teams' pods it takes the sum: what is left on a node that they share.
        seen = ["pods", "nodes", "nodes/status"]
        found.append({"api_groups": [""], "resources": seen, "verbs": _READ})
    return found
