"""How much of a host a team may have: GPUs under every name, and everything else that is shared."""

from collections.abc import Mapping
from typing import Any, Final

import pulumi

from kai_fleet.guards.bounds import GPU_RESOURCE, Args, isolation, level, whole
from kai_fleet.guards.policies import SYSTEM_SCOPE
from kai_fleet.inputs import without_none
from kai_fleet.releases.keys import GPU_RESOURCES

# What the account of a team's own stack may make in etcd besides, or a vCluster that syncs it.
_OBJECTS: Final = (
    *("endpoints", "endpointslices.discovery.k8s.io", "serviceaccounts", "deployments.apps"),
    *("statefulsets.apps", "replicasets.apps", "ingresses.networking.k8s.io"),
    *("leases.coordination.k8s.io", "poddisruptionbudgets.policy"),
    *("roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"),
    *("httproutes.gateway.networking.k8s.io", "tlsroutes.gateway.networking.k8s.io"),
    *("backendtlspolicies.gateway.networking.k8s.io", "referencegrants.gateway.networking.k8s.io"),
)
_CLAIMS: Final = ("resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io")
_DEVICES: Final = "deviceclass.resource.k8s.io/devices"


def quotas(args: Args) -> dict[str, dict[str, Any]]:
    """The quotas of a team with these TeamNamespaceArgs by name: each its spec.

    Pods have a quota of their own: each creation writes every quota that counts it, and two at
    once that meet in one are refused and tried again (measured.md 47).
    """
    # A scheduler inside sees every GPU of its nodes; this is the bound that holds (V1, V7).
    granted = {args.get("gpu_resource", GPU_RESOURCE): args.get("gpus", 0)}
    granted |= args.get("slices", {})
    if level(args) == "off":
        return {"gpus": {"hard": _requests(granted)}}
    bounds: Mapping[str, Any] = isolation(args).get("bounds", {})
    objects, volumes = whole(bounds.get("objects", 5000)), whole(bounds.get("volumes", 500))
    load_balancers = whole(bounds.get("load_balancers", 10))
    classes = args.get("device_classes", {})
    # Devices by name; GPUs of another vendor and DRA claims none, unless granted.
    devices = _requests(dict.fromkeys(GPU_RESOURCES, 0) | granted | args.get("devices", {}))
    devices |= {f"{name}.{_DEVICES}": whole(count) for name, count in classes.items()}
    devices |= {f"count/{kind}": objects if classes else "0" for kind in _CLAIMS}
    # What pods take of nodes that are everybody's.
    pods = {
        "requests.cpu": bounds.get("cpu"),
        "requests.memory": bounds.get("memory"),
        "requests.ephemeral-storage": bounds.get("ephemeral_storage"),
        "pods": whole(bounds.get("pods", 2000)),
        # Those that have ended too, which fill etcd until somebody deletes them.
        "count/pods": objects,
    }
    # What else etcd, storage and the network have for everybody.
    rest = {
        "services": objects,
        "services.loadbalancers": load_balancers,
        # A controller makes a load balancer for each, mostly in a namespace of its own.
        "count/gateways.gateway.networking.k8s.io": load_balancers,
        "services.nodeports": whole(bounds.get("node_ports", 50)),
        "requests.storage": bounds.get("storage"),
        "persistentvolumeclaims": volumes,
        "count/volumesnapshots.snapshot.storage.k8s.io": volumes,
        "secrets": objects,
        "configmaps": objects,
        **{f"count/{kind}": objects for kind in _OBJECTS},
    }
    return {
        "gpus": {"hard": devices},
        "pods": {"hard": without_none(pods)},
        "objects": {"hard": without_none(rest)},
        "system-priority": {"hard": {"pods": "0"}, "scope_selector": SYSTEM_SCOPE},
    }


def _requests(counts: Mapping[str, Any]) -> dict[str, pulumi.Input[str]]:
    return {f"requests.{name}": whole(count) for name, count in counts.items()}
