"""Chart values of one vCluster release, from VirtualClusterArgs, by mode and version; and the
backing store that chart values configure.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi

from kai_fleet.inputs import joined, resolved, toleration_spec, toleration_text
from kai_fleet.releases import VclusterRelease
from kai_fleet.releases.chart_values import merged, nested, values_of
from kai_fleet.values import pairs, value_at

AUTHORITY: Final = "ca.crt"  # key of the ConfigMap with the issuer's CA
PREFIX: Final = "oidc:"  # of users and groups: for claim `email` the API server has none by default
CLAIM: Final = "controlPlane.statefulSet.persistence.volumeClaim"
ETCD: Final = "controlPlane.backingStore.etcd.deploy"
REPLICAS: Final = "controlPlane.statefulSet.highAvailability.replicas"
EMBEDDED: Final = "embedded"
# In the order in which vCluster checks them (BackingStoreType in its config/config.go).
SWITCHES: Final = {
    "embeddedEtcd": "controlPlane.backingStore.etcd.embedded.enabled",
    "externalEtcd": "controlPlane.backingStore.etcd.external.enabled",
    "etcd": f"{ETCD}.enabled",
    EMBEDDED: "controlPlane.backingStore.database.embedded.enabled",
    "external": "controlPlane.backingStore.database.external.enabled",
}
# Types with their state on the control plane's volume: the chart makes a StatefulSet.
_ON_ITS_VOLUME: Final = (EMBEDDED, "embeddedEtcd")
# Of the image with Kubernetes; the first, which vCluster calls deprecated, wins in its chart.
KUBERNETES: Final = ("controlPlane.distro.k8s.version", "controlPlane.distro.k8s.image.tag")
Values = dict[str, Any]


def vcluster_values(
    name: str, args: Mapping[str, Any], namespace: pulumi.Input[str], release: VclusterRelease
) -> Values:
    """Chart values of that version for VirtualClusterArgs; their `values` are merged last."""
    mode, tolerations = args.get("mode", "virtual"), args.get("tolerations", ())
    pool, host, virtual = args.get("node_pool"), value_at(args, "access.host"), mode == "virtual"
    names = [joined("", [f"{name}.", namespace, ".svc", end]) for end in ("", ".cluster.local")]
    computed = {
        "nodes": {"labels": dict(pool)} if pool else {"all": True} if virtual else None,
        "kubeconfig_context": context_name(name, namespace),
        "names": [*names, host] if host is not None else names,
        "notes": {key: dict(args[key]) for key in ("labels", "annotations") if args.get(key)},
        "pull_secrets": [{"name": secret} for secret in args.get("image_pull_secrets", ())],
        "tolerations": [*map(toleration_spec, tolerations)],
        "enforced_tolerations": [*map(toleration_text, tolerations)],
    }
    layers = ["every", mode, *([] if args.get("licensed") else ["open source"])]
    layers += [] if args.get("isolation") == "off" else ["isolated"]
    values = merged(
        values_of("vcluster", layers, {**args, **computed}),
        nested(release.virtual_scheduler_key, True) if virtual else {},
        argument_values(args),
    )
    return _with_oidc(values, name, args["oidc"]) if "oidc" in args else values


def context_name(name: str, namespace: pulumi.Input[str]) -> pulumi.Input[str]:
    """The context in the kubeconfig of a vCluster: unique among those of several teams."""
    return joined("", [namespace, f"-{name}"])


def argument_values(args: Mapping[str, Any]) -> Values:
    """Chart values for access, control plane and store, with `values` of the arguments."""
    access, store = args.get("access", {}), args.get("store", {})
    kind, replicas = store.get("type", "embedded"), args.get("replicas")
    computed = {"replicas": None if replicas == 1 else replicas}
    if "gateway" in access:
        keys, path = ("namespace", "name"), access["gateway"]
        parent = resolved(lambda path: dict(zip(keys, path.split("/"), strict=False)), path)
        computed["gateways"] = [parent]
    layers = (access.get("type", "LoadBalancer"), "control plane", kind)
    return merged(values_of("vcluster", layers, {**args, **computed}), args.get("values", {}))


def _with_oidc(values: Values, name: str, oidc: Mapping[str, Any]) -> Values:
    """The values with the provider's flags, volume and mount in front of their lists."""
    volume, folder = "kai-fleet-oidc", "/etc/kai-fleet/oidc"
    options = {
        "issuer-url": oidc["issuer"],
        "client-id": oidc["client_id"],
        "username-claim": oidc.get("username_claim", "sub"),
        "username-prefix": PREFIX,
        "groups-claim": oidc.get("groups_claim", "groups"),
        "groups-prefix": PREFIX,
    }
    lists = dict[str, Any]()
    if "ca" in oidc:
        options["ca-file"] = f"{folder}/{AUTHORITY}"
        source, persistence = {"name": authority_name(name, oidc["ca"])}, CLAIM.rpartition(".")[0]
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


def kubernetes_of(values: Any) -> Any:
    """The version of Kubernetes that chart values name; None where they leave it to the chart."""
    named = (value_at(values, key) for key in KUBERNETES)
    return next(filter(None, named), None)


@dataclass(frozen=True)
class ChartStore:
    """The backing store of one release: its type as in a stack file, or `externalEtcd`; the number
    of etcd members; and `storageClass` and `size` of its volume claim, where set.
    """

    type: str = EMBEDDED
    members: int = 1
    claim: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def workload(self) -> str:
        """Kind of the control plane for kubectl: without a volume it is a Deployment."""
        return "statefulset" if self.type in _ON_ITS_VOLUME else "deployment"


def store_of(values: Any) -> ChartStore:
    """The backing store that chart values configure."""
    switched = (kind for kind, key in SWITCHES.items() if value_at(values, key) in (True, "true"))
    kind = next(switched, EMBEDDED)
    of_etcd, members, key = f"{ETCD}.statefulSet", None, CLAIM
    if kind == "etcd":
        members = value_at(values, f"{of_etcd}.highAvailability.replicas")
        key = f"{of_etcd}.persistence.volumeClaim"
    claim = pairs(value_at(values, key)) if kind in (*_ON_ITS_VOLUME, "etcd") else {}
    return ChartStore(
        kind,
        int(members) if isinstance(members, int | float) else 1,  # outputs have no integers
        {key: claim[key] for key in ("storageClass", "size") if key in claim},
    )
