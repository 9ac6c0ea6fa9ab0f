"""Chart values of one vCluster release, from VirtualClusterArgs, by mode and version."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pulumi

from kai_fleet.inputs import joined, resolved, toleration_spec, toleration_text, without_none
from kai_fleet.options import values_at
from kai_fleet.releases import VclusterRelease
from kai_fleet.releases.chart_values import merged
from kai_fleet.vcluster_oidc import with_oidc
from kai_fleet.vcluster_stores import CLAIM, ETCD, KUBERNETES, REPLICAS, RESOURCES, SWITCHES

# The chart's default image is the Pro one, which crash-loops without a licence (V5).
OSS_IMAGE: Final = {"repository": "loft-sh/vcluster-oss"}
_SET: Final = "controlPlane.statefulSet"
_DNS: Final = "controlPlane.coredns"
_ADVANCED: Final = "controlPlane.advanced"
# The control plane, and its etcd where a team has one of its own.
_STATEFUL: Final = (_SET, f"{ETCD}.statefulSet")
_SERVICES: Final = ("controlPlane.service", f"{_ADVANCED}.headlessService", f"{_DNS}.service")
_ACCOUNTS: Final = (f"{_ADVANCED}.serviceAccount", f"{_ADVANCED}.workloadServiceAccount")
Values = dict[str, Any]


def vcluster_values(
    name: str, args: Mapping[str, Any], namespace: pulumi.Input[str], release: VclusterRelease
) -> Values:
    """Chart values of that version for VirtualClusterArgs; their `values` are merged last."""
    tolerations, access = args.get("tolerations", ()), args.get("access", {})
    notes = {key: pairs for key in ("labels", "annotations") if (pairs := dict(args.get(key, {})))}
    inside, isolated = [f"{name}.", namespace, ".svc"], args.get("isolation") != "off"
    names = [joined("", inside), joined("", [*inside, ".cluster.local"])]
    names += [access["host"]] if "host" in access else []
    workloads = (*_STATEFUL, f"{_DNS}.deployment")
    by_key = values_at(
        {
            # The chart's quota and limit range (20 pods, 512Mi) break GPU work (V7).
            "policies.resourceQuota.enabled": False,
            "policies.limitRange.enabled": False,
            # Otherwise every synced node gets a Service on the host (V13).
            "networking.advanced.proxyKubelets": {"byHostname": False, "byIP": False},
            # Otherwise pods on the host have their ServiceAccount tokens in annotations (T19).
            "sync.toHost.pods.useSecretsForSATokens": True,
            # A context name that is unique among several teams' kubeconfigs.
            "exportKubeConfig.context": joined("", [namespace, f"-{name}"]),
            f"{_SET}.image": None if args.get("licensed") else dict(OSS_IMAGE),
            **_scheduling(release, args.get("mode", "virtual"), dict(args.get("node_pool", {}))),
            # TeamNamespace grants its rights: those of the chart's roles depend on the values.
            "rbac.clusterRole.enabled": False if isolated else None,
            "rbac.role.enabled": False if isolated else None,
            # The host denies such pods anyway; with this, `kubectl apply` inside fails at once.
            "policies.podSecurityStandard": "baseline" if isolated else None,
            # On nodes of the platform or of the team, never of another team (T8).
            **_each(_STATEFUL, "scheduling.nodeSelector", dict(args.get("control_pool", {}))),
            # Pods get labels only: the guards admit annotations of few domains. ServiceAccounts get
            # neither: clouds grant IAM roles by their annotations.
            **_each((*_SERVICES, *workloads), "", notes),
            **_each(workloads, "pods.labels", notes.get("labels")),
            **_scheduled("tolerations", [*map(toleration_spec, tolerations)]),
            **_scheduled("affinity", args.get("affinity")),
            # Added to every synced pod. A scheduler inside then sees nodes without these taints.
            "sync.toHost.pods.enforceTolerations": [*map(toleration_text, tolerations)],
            # On the host's ServiceAccounts, so that they also reach synced pods that name none:
            # KAI's operands, to which its charts before v0.14 do not pass them.
            **_each(
                _ACCOUNTS,
                "imagePullSecrets",
                [{"name": secret} for secret in args.get("image_pull_secrets", ())],
            ),
            # Names in the certificate of the API server.
            "controlPlane.proxy.extraSANs": names,
        }
    )
    more = (access_values(access), control_plane(args), args.get("values", {}))
    return with_oidc(merged(by_key, *more), name, args.get("oidc"))


def _scheduling(release: VclusterRelease, mode: str, node_pool: Mapping[str, Any]) -> Values:
    nodes, host = "sync.fromHost.nodes", mode == "host"
    values: Values = {
        # Fraction pods and KAI's reservation pods name the RuntimeClass nvidia (V8).
        "sync.fromHost.runtimeClasses.enabled": True,
        # Without it pods lose their priority class: KAI's train, build, inference (V8).
        "sync.fromHost.priorityClasses.enabled": True if host else None,
        # KAI's pod-grouper fails on owners that it has no right to read (V4).
        "experimental.syncSettings.setOwner": False if host else None,
        # Becomes the node selector of the synced pods.
        f"{nodes}.selector": {"labels": node_pool} if node_pool else None,
    }
    if mode == "virtual":
        # A virtual scheduler needs real nodes to choose from (V2); only the team's (V1).
        values |= {release.virtual_scheduler_key: True, f"{nodes}.enabled": True}
        values |= {} if node_pool else {f"{nodes}.selector": {"all": True}}
    return values


def access_values(access: Mapping[str, Any]) -> Values:
    """Values for the API's Service, and the Ingress or TLSRoute in front of it."""
    kind, service = access.get("type", "LoadBalancer"), "controlPlane.service"
    annotations = access.get("annotations")
    if kind not in ("Ingress", "Gateway"):
        return values_at(
            {
                f"{service}.spec.type": kind,
                f"{service}.spec.loadBalancerClass": access.get("load_balancer_class"),
                f"{service}.spec.loadBalancerSourceRanges": access.get(
                    "load_balancer_source_ranges"
                ),
                f"{service}.annotations": annotations,
                f"{service}.httpsNodePort": access.get("port") if kind == "NodePort" else None,
            }
        )
    front = "controlPlane.ingress" if kind == "Ingress" else "controlPlane.tlsRoute"
    parents = None if kind == "Ingress" else [resolved(_parent, access["gateway"])]
    return values_at(
        {
            f"{service}.spec.type": "ClusterIP",
            f"{front}.enabled": True,
            f"{front}.host": access["host"],
            f"{front}.annotations": annotations,
            f"{front}.spec.ingressClassName": None if parents else access.get("class_name"),
            f"{front}.parentRefs": parents,
        }
    )


def _parent(gateway: str) -> dict[str, str]:
    namespace, _, name = gateway.partition("/")
    return {"namespace": namespace, "name": name}


def control_plane(args: Mapping[str, Any]) -> Values:
    """Values for Kubernetes' version, replicas, store, volume and resources."""
    replicas, store = args.get("replicas", 1), args.get("store", {})
    kind, claim = store.get("type", "embedded"), "persistence.volumeClaim"
    volume = {key: args.get(key) for key in ("storage_class", "size")}
    volume |= store if kind == "etcd" else {}
    claims = {"storageClass": volume["storage_class"], "size": volume["size"]}
    resources = {
        bound: {name.replace("_", "-"): amount for name, amount in amounts.items()}
        for bound, amounts in args.get("resources", {}).items()
        if amounts
    }
    values: Values = {
        REPLICAS: None if replicas == 1 else replicas,
        RESOURCES: resources,
        KUBERNETES: args.get("kubernetes_version"),
    }
    if kind == "external":
        external = {"enabled": True, "dataSource": store["data_source"]}
        values["controlPlane.backingStore.database.external"] = external
    elif kind == "etcd":
        values |= {
            f"{ETCD}.enabled": True,
            # A quota on it requires a request of every pod; the chart's etcd has none.
            f"{ETCD}.statefulSet.resources.requests": {"ephemeral-storage": "1Gi"},
            f"{ETCD}.statefulSet.highAvailability.replicas": store.get("replicas"),
            f"{ETCD}.statefulSet.{claim}": without_none(claims),
        }
    else:
        values[CLAIM] = without_none(claims)
        values[SWITCHES["embeddedEtcd"]] = True if kind == "embeddedEtcd" else None
    return values_at(values)


def _scheduled(key: str, value: Any) -> Values:
    """A value for the pods of the control plane, its etcd and its DNS."""
    return _each(_STATEFUL, f"scheduling.{key}", value) | {f"{_DNS}.deployment.{key}": value}


def _each(sections: Iterable[str], key: str, value: Any) -> Values:
    """The same value at a key of several sections."""
    return {f"{section}.{key}".removesuffix("."): value for section in sections}
