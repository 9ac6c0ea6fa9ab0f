"""How much of a host a team may have: GPUs under every name, and everything else that is shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards.host_rules import SYSTEM_SCOPE
from kai_fleet.settings.sections.isolation import Isolation

if TYPE_CHECKING:
    from pulumi_kubernetes.core.v1 import ResourceQuotaSpecArgsDict

# What the account of a team's own stack may make in etcd besides, or a vCluster that syncs it.
_OBJECTS: Final = (
    *("endpoints", "endpointslices.discovery.k8s.io", "serviceaccounts", "deployments.apps"),
    *("statefulsets.apps", "replicasets.apps", "ingresses.networking.k8s.io"),
    *("leases.coordination.k8s.io", "poddisruptionbudgets.policy"),
    *("roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"),
    *("httproutes.gateway.networking.k8s.io", "tlsroutes.gateway.networking.k8s.io"),
    *("backendtlspolicies.gateway.networking.k8s.io", "referencegrants.gateway.networking.k8s.io"),
)
_GPUS: Final = ("nvidia.com/gpu", "amd.com/gpu")


def quotas(team: DeclaredTeam) -> dict[str, ResourceQuotaSpecArgsDict]:
    """The quotas of a team's namespace by name: each its spec.

    Pods have a quota of their own: each creation writes every quota that counts it, and two at
    once that meet in one are refused and tried again (measured.md 47).
    """
    # A scheduler inside sees every GPU of its nodes; this is the bound that holds (V1, V7).
    isolation = team.isolation or Isolation()
    found: dict[str, ResourceQuotaSpecArgsDict] = {
        "gpus": {"hard": _gpu_bound(team.kinds, isolation)}
    }
    if isolation.on:
        found |= {name: {"hard": hard} for name, hard in _shared_bounds(isolation).items()}
        found["system-priority"] = {"hard": {"pods": "0"}, "scope_selector": SYSTEM_SCOPE}
    return found


def _gpu_bound(kinds: Mapping[str, int], isolation: Isolation) -> dict[str, str]:
    """The quota `gpus`: devices by name, those of another vendor and DRA claims none."""
    found = {f"requests.{name}": str(count) for name, count in kinds.items()}
    if not isolation.on:
        return found
    for other in _GPUS:
        found.setdefault(f"requests.{other}", "0")
    found |= {f"requests.{name}": str(count) for name, count in isolation.devices.items()}
    classes = isolation.device_classes
    found |= {
        f"{name}.deviceclass.resource.k8s.io/devices": str(count) for name, count in classes.items()
    }
    claims = str(isolation.bounds.objects if classes else 0)
    claimed = ("resourceclaims", "resourceclaimtemplates")
    return found | {f"count/{kind}.resource.k8s.io": claims for kind in claimed}


def _shared_bounds(isolation: Isolation) -> dict[str, dict[str, str]]:
    """What nodes and etcd have for everybody, by the name of its quota."""
    bounds = isolation.bounds
    found: dict[str, Mapping[str, object]] = {
        "pods": {
            "requests.cpu": bounds.cpu,
            "requests.memory": bounds.memory,
            "requests.ephemeral-storage": bounds.ephemeral_storage,
            "pods": bounds.pods,
            # Those that have ended too, which fill etcd until somebody deletes them.
            "count/pods": bounds.objects,
        },
        "objects": {
            "services": bounds.objects,
            "services.loadbalancers": bounds.load_balancers,
            # A controller makes a load balancer for each, mostly in a namespace of its own.
            "count/gateways.gateway.networking.k8s.io": bounds.load_balancers,
            "services.nodeports": bounds.node_ports,
            "requests.storage": bounds.storage,
            "persistentvolumeclaims": bounds.volumes,
            "count/volumesnapshots.snapshot.storage.k8s.io": bounds.volumes,
            "secrets": bounds.objects,
            "configmaps": bounds.objects,
            **{f"count/{kind}": bounds.objects for kind in _OBJECTS},
        },
    }
    return {
        name: {key: str(value) for key, value in hard.items() if value is not None}
        for name, hard in found.items()
    }
