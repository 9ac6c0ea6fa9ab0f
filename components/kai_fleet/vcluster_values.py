"""Chart values of one vCluster release, from VirtualClusterArgs, by mode and version."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pulumi

from kai_fleet.inputs import joined, resolved, toleration_spec, toleration_text, without_none
from kai_fleet.options import values_at
from kai_fleet.releases import VclusterRelease
from kai_fleet.releases.chart_values import document, merged, nested
from kai_fleet.values import value_at
from kai_fleet.vcluster_stores import CLAIM, ETCD, KUBERNETES, REPLICAS, RESOURCES, SWITCHES

_SET: Final = "controlPlane.statefulSet"
_DNS: Final = "controlPlane.coredns"
_ADVANCED: Final = "controlPlane.advanced"
# The control plane, and its etcd where a team has one of its own.
_STATEFUL: Final = (_SET, f"{ETCD}.statefulSet")
_WORKLOADS: Final = (*_STATEFUL, f"{_DNS}.deployment")
_SERVICES: Final = ("controlPlane.service", f"{_ADVANCED}.headlessService", f"{_DNS}.service")
_ACCOUNTS: Final = (f"{_ADVANCED}.serviceAccount", f"{_ADVANCED}.workloadServiceAccount")
AUTHORITY: Final = "ca.crt"  # key of the ConfigMap with the issuer's CA
# Defaults of OidcArgs, written out: for claim `email` the API server's default is no prefix.
OIDC: Final = {
    "username_claim": "sub",
    "username_prefix": "oidc:",
    "groups_claim": "groups",
    "groups_prefix": "oidc:",
}
Values = dict[str, Any]


def vcluster_values(
    name: str, args: Mapping[str, Any], namespace: pulumi.Input[str], release: VclusterRelease
) -> Values:
    """Chart values of that version for VirtualClusterArgs; their `values` are merged last."""
    tolerations, access = args.get("tolerations", ()), args.get("access", {})
    mode, node_pool = args.get("mode", "virtual"), dict(args.get("node_pool", {}))
    notes = {key: pairs for key in ("labels", "annotations") if (pairs := dict(args.get(key, {})))}
    names = [joined("", [f"{name}.", namespace, ".svc", end]) for end in ("", ".cluster.local")]
    names += [access["host"]] if "host" in access else []
    pull = [{"name": secret} for secret in args.get("image_pull_secrets", ())]
    layers, fixed = ["every", mode], document("vcluster-values")
    layers += [] if args.get("licensed") else ["open source"]
    layers += [] if args.get("isolation") == "off" else ["isolated"]
    selector: Any = {"labels": node_pool} if node_pool else None
    if mode == "virtual":
        selector = selector or {"all": True}
    by_key = {
        # A context name that is unique among several teams' kubeconfigs.
        "exportKubeConfig.context": joined("", [namespace, f"-{name}"]),
        release.virtual_scheduler_key: True if mode == "virtual" else None,
        # Becomes the node selector of the synced pods; a scheduler inside sees these nodes (V1).
        "sync.fromHost.nodes.selector": selector,
        # On nodes of the platform or of the team, never of another team (T8).
        **_each(_STATEFUL, "scheduling.nodeSelector", dict(args.get("control_pool", {}))),
        # Pods get labels only: the guards admit annotations of few domains. ServiceAccounts get
        # neither: clouds grant IAM roles by their annotations.
        **_each((*_SERVICES, *_WORKLOADS), "", notes),
        **_each(_WORKLOADS, "pods.labels", notes.get("labels")),
        **_scheduled("tolerations", [*map(toleration_spec, tolerations)]),
        **_scheduled("affinity", args.get("affinity")),
        # Added to every synced pod. A scheduler inside then sees nodes without these taints.
        "sync.toHost.pods.enforceTolerations": [*map(toleration_text, tolerations)],
        # On the host's ServiceAccounts, so that they also reach synced pods that name none: KAI's
        # operands, to which its charts before v0.14 do not pass them.
        **_each(_ACCOUNTS, "imagePullSecrets", pull),
        # Names in the certificate of the API server.
        "controlPlane.proxy.extraSANs": names,
    }
    more = (access_values(access), control_plane(args), args.get("values", {}))
    values = merged(*(fixed[layer] for layer in layers), values_at(by_key), *more)
    return _with_oidc(values, name, args["oidc"]) if "oidc" in args else values


def _with_oidc(values: Values, name: str, oidc: Mapping[str, Any]) -> Values:
    """The values with the provider's flags, volume and mount in front of their lists."""
    volume, folder = "kai-fleet-oidc", "/etc/kai-fleet/oidc"
    options = {"issuer-url": oidc["issuer"], "client-id": oidc["client_id"]}
    options |= {key.replace("_", "-"): oidc.get(key, unset) for key, unset in OIDC.items()}
    lists = dict[str, Any]()
    if "ca" in oidc:
        options["ca-file"] = f"{folder}/{AUTHORITY}"
        source, persistence = {"name": authority_name(name, oidc["ca"])}, f"{_SET}.persistence"
        mount = {"name": volume, "mountPath": folder, "readOnly": True}
        lists[f"{persistence}.addVolumes"] = [{"name": volume, "configMap": source}]
        lists[f"{persistence}.addVolumeMounts"] = [mount]
    lists["controlPlane.distro.k8s.apiServer.extraArgs"] = [
        joined("", [f"--oidc-{option}=", value]) for option, value in options.items()
    ]
    more = (nested(key, [*own, *(value_at(values, key) or ())]) for key, own in lists.items())
    return merged(values, *more)


def authority_name(name: str, ca: pulumi.Input[str]) -> pulumi.Input[str]:
    """Name of the ConfigMap with the issuer's CA, with a hash of it: a new CA gives a new name, and
    so a new pod that reads it.
    """
    return resolved(lambda pem: f"{name}-oidc-{hashlib.sha256(pem.encode()).hexdigest()[:8]}", ca)


def access_values(access: Mapping[str, Any]) -> Values:
    """Values for the API's Service, and the Ingress or TLSRoute in front of it."""
    kind, service = access.get("type", "LoadBalancer"), "controlPlane.service"
    annotations = access.get("annotations")
    fronts = {"Ingress": "controlPlane.ingress", "Gateway": "controlPlane.tlsRoute"}
    if (front := fronts.get(kind)) is None:
        ranges = access.get("load_balancer_source_ranges")
        return values_at(
            {
                f"{service}.spec.type": kind,
                f"{service}.spec.loadBalancerClass": access.get("load_balancer_class"),
                f"{service}.spec.loadBalancerSourceRanges": ranges,
                f"{service}.annotations": annotations,
                f"{service}.httpsNodePort": access.get("port") if kind == "NodePort" else None,
            }
        )
    of_kind = {f"{front}.spec.ingressClassName": access.get("class_name")}
    if kind == "Gateway":
        of_kind = {f"{front}.parentRefs": [resolved(_parent, access["gateway"])]}
    return values_at(
        {
            f"{service}.spec.type": "ClusterIP",
            f"{front}.enabled": True,
            f"{front}.host": access["host"],
            f"{front}.annotations": annotations,
            **of_kind,
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
