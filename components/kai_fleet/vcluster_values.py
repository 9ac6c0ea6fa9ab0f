"""The values of one vCluster release, by scheduling mode and version."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pulumi

from kai_fleet.inputs import joined, resolved, toleration_spec, toleration_text, without_none
from kai_fleet.releases import VclusterRelease
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.vcluster_oidc import with_oidc

# The chart's default image is the Pro one, which crash-loops without a licence (V5).
OSS_IMAGE: Final = {"repository": "loft-sh/vcluster-oss"}
_SET: Final = "controlPlane.statefulSet"
_STORES: Final = "controlPlane.backingStore"
_ETCD: Final = f"{_STORES}.etcd.deploy"
_DNS: Final = "controlPlane.coredns"
# The control plane, and its etcd where a team has one of its own.
_STATEFUL: Final = (_SET, f"{_ETCD}.statefulSet")


def vcluster_values(
    name: str, args: Mapping[str, Any], namespace: pulumi.Input[str], release: VclusterRelease
) -> dict[str, Any]:
    """What the chart of that version gets for VirtualClusterArgs; their `values` come last."""
    tolerations = args.get("tolerations", ())
    own = merged(
        _always(name, namespace),
        {} if args.get("licensed") else nested(f"{_SET}.image", dict(OSS_IMAGE)),
        _scheduling(release, args.get("mode", "virtual"), dict(args.get("node_pool", {}))),
        _isolated(args.get("isolation", "baseline")),
        # The control plane on the platform's own nodes, or the team's, never another team's (T8).
        _at(_ends(".scheduling.nodeSelector"), dict(args.get("control_pool", {}))),
        _noted(dict(args.get("labels", {})), dict(args.get("annotations", {}))),
        _scheduled("tolerations", [*map(toleration_spec, tolerations)]),
        _scheduled("affinity", args.get("affinity", {})),
        # Of every pod that it syncs. It then shows its own scheduler nodes without these taints.
        _at(["sync.toHost.pods.enforceTolerations"], [*map(toleration_text, tolerations)]),
        _pulling(args.get("image_pull_secrets", ())),
        control_plane(args),
        _reachable(name, namespace, args.get("access", {})),
        _at(["controlPlane.distro.k8s.image.tag"], args.get("kubernetes_version")),
        args.get("values", {}),
    )
    return with_oidc(own, name, args.get("oidc"))


def _always(name: str, namespace: pulumi.Input[str]) -> dict[str, Any]:
    return {
        # The chart's quota and limit range (20 pods, 512Mi) break GPU work (V7).
        "policies": {"resourceQuota": {"enabled": False}, "limitRange": {"enabled": False}},
        # Otherwise every synced node gets a Service on the host (V13).
        "networking": {"advanced": {"proxyKubelets": {"byHostname": False, "byIP": False}}},
        # Otherwise each pod on the host has the tokens of its account in annotations (T19).
        "sync": {"toHost": {"pods": {"useSecretsForSATokens": True}}},
        # The name of the context, for whoever merges several teams' kubeconfigs.
        "exportKubeConfig": {"context": joined("", [namespace, f"-{name}"])},
    }


def _scheduling(release: VclusterRelease, mode: str, node_pool: dict[str, Any]) -> dict[str, Any]:
    labels: dict[str, Any] = {"labels": node_pool} if node_pool else {}
    # Fraction pods and KAI's reservation pods name the RuntimeClass nvidia (V8).
    sync: dict[str, Any] = {"runtimeClasses": {"enabled": True}}
    if mode == "virtual":
        # A virtual scheduler needs real nodes to choose from (V2); only the team's (V1).
        sync["nodes"] = {"enabled": True, "selector": labels or {"all": True}}
        return merged({"sync": {"fromHost": sync}}, nested(release.virtual_scheduler_key, True))
    if labels:
        sync["nodes"] = {"selector": labels}  # becomes the node selector of the synced pods
    if mode == "host":
        # Without it the priority class is stripped, and KAI sees no train, build, inference (V8).
        sync["priorityClasses"] = {"enabled": True}
        # KAI's pod-grouper must not follow owners that it may not read (V4).
        return {"sync": {"fromHost": sync}, "experimental": {"syncSettings": {"setOwner": False}}}
    return {"sync": {"fromHost": sync}}


def _isolated(level: str) -> dict[str, Any]:
    if level == "off":
        return {}
    return {
        # Its rights are the platform's: what the chart's own roles grant depends on the values.
        "rbac": {"clusterRole": {"enabled": False}, "role": {"enabled": False}},
        # The host denies such pods in any case; with this, `kubectl apply` inside says so.
        "policies": {"podSecurityStandard": "baseline"},
    }


def _pulling(secrets: Iterable[pulumi.Input[str]]) -> dict[str, Any]:
    """The Secrets of the accounts of the control plane and of all synced pods.

    A pod inside names none, so Kubernetes gives it those of its account on the host: in this way
    they reach KAI's operands as well, which its charts before v0.14 forget.
    """
    accounts = ("serviceAccount", "workloadServiceAccount")
    named = [{"name": name} for name in secrets]
    keys = (f"controlPlane.advanced.{account}.imagePullSecrets" for account in accounts)
    return _at(keys, named)


def _noted(labels: dict[str, Any], annotations: dict[str, Any]) -> dict[str, Any]:
    """The labels and annotations of what the chart makes.

    Pods have the labels alone: of annotations the guards let few domains through. Accounts have
    neither: by annotations there clouds give their rights to whoever runs as one.
    """
    notes = {"labels": labels, "annotations": annotations}
    services = ("controlPlane.service", "controlPlane.advanced.headlessService", f"{_DNS}.service")
    workloads = (*_STATEFUL, f"{_DNS}.deployment")
    return merged(
        _at((*services, *workloads), {kind: noted for kind, noted in notes.items() if noted}),
        _at((f"{workload}.pods.labels" for workload in workloads), labels),
    )


def _reachable(
    name: str, namespace: pulumi.Input[str], access: Mapping[str, Any]
) -> dict[str, Any]:
    """The Service, and every name the API's certificate must answer to."""
    inside = [f"{name}.", namespace, ".svc"]
    names = [joined("", inside), joined("", [*inside, ".cluster.local"])]
    if "host" in access:
        names.append(access["host"])
    return merged(access_values(access), nested("controlPlane.proxy.extraSANs", names))


def access_values(access: Mapping[str, Any]) -> dict[str, Any]:
    """The Service of the API, and the Ingress or TLSRoute that leads a host name to it."""
    kind = access.get("type", "LoadBalancer")
    noted = without_none({"annotations": access.get("annotations") or None})
    if kind in ("Ingress", "Gateway"):
        led: dict[str, Any] = {"enabled": True, "host": access["host"], **noted}
        if kind == "Ingress":
            own = {"ingressClassName": access["class_name"]} if "class_name" in access else {}
            front = {"ingress": {**led, **({"spec": own} if own else {})}}
        else:
            front = {"tlsRoute": {**led, "parentRefs": [resolved(_parent, access["gateway"])]}}
        return {"controlPlane": {"service": {"spec": {"type": "ClusterIP"}}, **front}}
    ranges = access.get("load_balancer_source_ranges")
    of_balancer = {
        "loadBalancerClass": access.get("load_balancer_class"),
        "loadBalancerSourceRanges": ranges or None,
    }
    service = {"spec": {"type": kind, **without_none(of_balancer)}, **noted}
    if kind == "NodePort":
        service |= without_none({"httpsNodePort": access.get("port")})
    return {"controlPlane": {"service": service}}


def _parent(gateway: str) -> dict[str, str]:
    namespace, _, name = gateway.partition("/")
    return {"namespace": namespace, "name": name}


def control_plane(args: Mapping[str, Any]) -> dict[str, Any]:
    """Replicas, store, volume and resources."""
    replicas, parts = args.get("replicas", 1), args.get("resources", {})
    resources = {kind: _amounts(amounts) for kind, amounts in parts.items() if amounts}
    return merged(
        {} if replicas == 1 else nested(f"{_SET}.highAvailability.replicas", replicas),
        _store(args.get("store", {}), {key: args.get(key) for key in ("storage_class", "size")}),
        _at([f"{_SET}.resources"], resources),
    )


def _amounts(amounts: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): amount for name, amount in amounts.items()}


def _store(store: Mapping[str, Any], volume: Mapping[str, Any]) -> dict[str, Any]:
    kind = store.get("type", "embedded")
    if kind == "external":
        external = {"enabled": True, "dataSource": store["data_source"]}
        return nested(f"{_STORES}.database.external", external)
    if kind == "etcd":
        members = without_none({"replicas": store.get("replicas")})
        stateful = {
            # Where a quota counts it, every pod has to say it, and the chart's etcd does not.
            "resources": {"requests": {"ephemeral-storage": "1Gi"}},
            **({"highAvailability": members} if members else {}),
            **_at(["persistence.volumeClaim"], _claim({**volume, **store})),
        }
        return nested(_ETCD, {"enabled": True, "statefulSet": stateful})
    own = _at([f"{_SET}.persistence.volumeClaim"], _claim(volume))
    embedded = kind == "embeddedEtcd"
    return merged(own, nested(f"{_STORES}.etcd.embedded.enabled", True)) if embedded else own


def _claim(volume: Mapping[str, Any]) -> dict[str, Any]:
    keys = {"storageClass": volume.get("storage_class"), "size": volume.get("size")}
    return without_none(keys)


def _ends(end: str) -> list[str]:
    return [f"{workload}{end}" for workload in _STATEFUL]


def _scheduled(key: str, value: Any) -> dict[str, Any]:
    """The control plane, its etcd where it has one, and its DNS."""
    return _at([*_ends(f".scheduling.{key}"), f"{_DNS}.deployment.{key}"], value)


def _at(keys: Iterable[str], value: Any) -> dict[str, Any]:
    """The same value at several keys of the chart; none where it is empty."""
    return {} if value in (None, {}, [], "") else merged(*(nested(key, value) for key in keys))
