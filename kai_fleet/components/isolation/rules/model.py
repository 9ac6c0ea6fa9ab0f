"""What one team may have on the host, and who besides its tenants acts in its namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kai_fleet.components.guard.queue_guard_rules import names, text

# Where the KAI is that shares GPUs among the team's pods.
KaiPlace = Literal["inside", "host", "none"]

KAI_PRIORITIES: Final = ("train", "build-preemptible", "build", "inference")
CONTROL_PLANES: Final = ("vcluster", "vcluster-etcd")
# Kubernetes' controllers have accounts of kube-system, or share the controller manager's. No tenant
# has an account among any of these.
_CONTROLLERS: Final = ("system:serviceaccounts:kube-system", "system:masters")
_MANAGER: Final = "system:kube-controller-manager"
_NODES: Final = "system:nodes"
_KAI: Final = "system:serviceaccounts:kai-scheduler"


@dataclass(frozen=True)
class HostRules:
    """What one team's pods may have on the host.

    `pool` are the labels of its nodes, `control_pool` those of its control plane's. `names_nodes`:
    its pods come with a node (a scheduler inside chose it). `shared_nodes`: other teams' pods may
    be on the same nodes. `devices` are the names of all devices that it is granted, the GPU's
    first, and `claims` whether DRA claims are. `priorities` are the classes that its pods may name,
    `runtime_classes` those that give no GPU. `queues_only`: GPUs are for pods that KAI schedules.
    `platform_images` begin the names of KAI's images. `beside_kai`: the host has a KAI, of which
    the team may use the `queues`, and those that begin with `queue_prefix` and are none of, or
    below, `foreign_queues`. `attachments`: its pods may join other networks; `endpoints`: its
    Services may name addresses that are not public.
    """

    team: str
    devices: Sequence[str]
    pool: Mapping[str, str] = field(default_factory=dict)
    control_pool: Mapping[str, str] = field(default_factory=dict)
    names_nodes: bool = False
    shared_nodes: bool = True
    kai: KaiPlace = "none"
    claims: bool = False
    priorities: Sequence[str] = ()
    runtime_classes: Sequence[str] = ()
    queues_only: bool = False
    restricted: bool = False
    platform_images: Sequence[str] = ()
    beside_kai: bool = False
    queues: Sequence[str] = ()
    queue_prefix: str | None = None
    foreign_queues: Sequence[str] = ()
    attachments: bool = False
    endpoints: bool = False


def by_controllers() -> str:
    """Whether a controller of Kubernetes asks, in CEL."""
    return (
        f"(request.userInfo.username == {text(_MANAGER)}"
        f" || request.userInfo.?groups.orValue([]).exists(g, g in {names(_CONTROLLERS)}))"
    )


def by_nodes() -> str:
    """Whether a node asks, or a controller of Kubernetes, in CEL."""
    return f"({by_controllers()} || {text(_NODES)} in request.userInfo.?groups.orValue([]))"


def by_kai() -> str:
    """Whether the host's KAI asks, or a controller of Kubernetes, in CEL."""
    return f"({by_controllers()} || {text(_KAI)} in request.userInfo.?groups.orValue([]))"


def by_tenant() -> str:
    """Whether an account of the team's namespace asks, such as its vCluster's, in CEL."""
    own = "'system:serviceaccounts:' + request.namespace"
    return f"({own} in request.userInfo.?groups.orValue([]))"
