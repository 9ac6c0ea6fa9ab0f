"""Chart values of a vCluster's release.

The values follow from VirtualClusterArgs, the scheduling mode and the version of vCluster.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pulumi import Input, RunError

from kai_fleet.declaring.inputs import Labels, joined, resolved, toleration_spec, toleration_text
from kai_fleet.releases import VclusterRelease
from kai_fleet.releases.chart_stores import EMBEDDED, kubernetes_of
from kai_fleet.releases.chart_values import merged, nested, values_of
from kai_fleet.values import pairs, value_at

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.vcluster.arguments import OidcArgs, StoreArgs, VirtualClusterArgs

HIGH = "high"  # of argument `availability`
MEMBERS = 3  # control plane pods and etcd members of high availability
# Key of the ConfigMap with the issuer's CA.
AUTHORITY = "ca.crt"
# Of users and groups: for claim `email` the API server adds none by itself.
PREFIX = "oidc:"
_GATEWAY = re.compile(r"(?P<namespace>[^/]+)/(?P<name>[^/]+)")
_OIDC_VOLUME = "kai-fleet-oidc"
_OIDC_FOLDER = "/etc/kai-fleet/oidc"
# Keys of chart values.
_PERSISTENCE = "controlPlane.statefulSet.persistence"
_API_SERVER_FLAGS = "controlPlane.distro.k8s.apiServer.extraArgs"
Values = dict[str, Any]


def vcluster_values(name: str, args: VirtualClusterArgs, namespace: Input[str]) -> Values:
    """Chart values for the arguments, with `values` of the arguments over all.

    What `oidc` adds to a list comes in front of the list in `values`. `namespace` stands for that
    of `args`, which is not read. Raises as `argument_values` does, and KeyError for a toleration
    without a key.
    """
    mode = args.get("mode", "virtual")
    tolerations = args.get("tolerations", [])
    notes = {
        "labels": args.get("labels"),
        "annotations": args.get("annotations"),
    }
    computed = {
        "nodes": _synced_nodes(mode, args.get("node_pool")),
        "kubeconfig_context": context_name(name, namespace),
        "names": _certificate_names(name, args, namespace),
        "notes": {key: dict(texts) for key, texts in notes.items() if texts},
        "pull_secrets": [{"name": secret} for secret in args.get("image_pull_secrets", [])],
        "tolerations": [toleration_spec(toleration) for toleration in tolerations],
        "enforced_tolerations": [toleration_text(toleration) for toleration in tolerations],
    }
    values = merged(
        values_of("vcluster", _layers(mode, args), {**args, **computed}),
        argument_values(name, args),
    )
    if "oidc" in args:
        return _with_oidc(values, name, args["oidc"])
    return values


def _layers(mode: str, args: VirtualClusterArgs) -> list[str]:
    """Layers of chart-values.yaml, the later ones over the earlier ones.

    `mode` stands for that of `args`, which may lack it.
    """
    layers = ["every", mode]
    if not args.get("licensed"):
        layers.append("open source")
    if args.get("isolation") != "off":
        layers.append("isolated")
    return layers


def _synced_nodes(mode: str, node_pool: Labels | None) -> Values | None:
    """The selector of the host's nodes to sync: the pool's, all in mode `virtual`, else None.

    None leaves the chart's default.
    """
    if node_pool:
        return {"labels": dict(node_pool)}
    if mode == "virtual":
        return {"all": True}
    return None


def _certificate_names(
    name: str, args: VirtualClusterArgs, namespace: Input[str]
) -> list[Input[str]]:
    """Names of the API server for its certificate, beside those that vCluster adds.

    They are those of its Service in `namespace`, and `access.host` if it is given.
    """
    service = joined("", [f"{name}.", namespace, ".svc"])
    names = [service, joined("", [service, ".cluster.local"])]
    host = args.get("access", {}).get("host")
    if host is not None:
        names.append(host)
    return names


def context_name(name: str, namespace: Input[str]) -> Input[str]:
    """The context in a vCluster's kubeconfig: unique among the kubeconfigs of several teams."""
    return joined("", [namespace, f"-{name}"])


def argument_values(name: str, args: VirtualClusterArgs) -> Values:
    """Chart values for access, control plane and store, with `values` of the arguments over all.

    `name` is the vCluster's. One replica is left to the chart.

    Raises:
        pulumi.RunError: `access.gateway` is not NAMESPACE/NAME; for an Output an error of that.
        KeyError: chart-values.yaml has no such type of access or store.
    """
    access = args.get("access", {})
    computed: Values = {}
    if args.get("availability") == HIGH:
        args = _with_members(args)
        parts = control_plane_labels(name)
        computed["spread"] = {part: _spread(labels) for part, labels in parts.items()}
    replicas = args.get("replicas")
    computed["replicas"] = None if replicas == 1 else replicas
    if "gateway" in access:
        computed["gateways"] = [resolved(partial(_parent_ref, name), access["gateway"])]
    layers = [
        access.get("type", "LoadBalancer"),
        "control plane",
        args.get("store", {}).get("type", EMBEDDED),
    ]
    values = values_of("vcluster", layers, {**args, **computed})
    return merged(values, args.get("values", {}))


def _with_members(args: VirtualClusterArgs) -> VirtualClusterArgs:
    """The arguments with MEMBERS control plane pods in place of one, and etcd in place of SQLite.

    The etcd has as many members, unless `store` says how many.
    """
    store: StoreArgs = {"replicas": MEMBERS, **args.get("store", {})}
    if store.get("type", EMBEDDED) == EMBEDDED:
        store["type"] = "etcd"
    replicas = args.get("replicas", 1)
    return {**args, "replicas": MEMBERS if replicas == 1 else replicas, "store": store}


def control_plane_labels(name: str) -> dict[str, dict[str, str]]:
    """The labels by which the chart selects pods: of the `control_plane` and of its `etcd`."""
    return {
        "control_plane": {"app": "vcluster", "release": name},
        "etcd": {"app": "vcluster-etcd", "release": name},
    }


def _spread(labels: Mapping[str, str]) -> list[dict[str, object]]:
    """Constraints: a node for each pod with these labels, and zones as evenly as there is room."""
    constraint = {"maxSkew": 1, "labelSelector": {"matchLabels": labels}}
    node = {
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
    }
    zone = {
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
    }
    return [{**constraint, **node}, {**constraint, **zone}]


def images(values: object, release: VclusterRelease) -> dict[str, str]:
    """The images of the control plane and of its Kubernetes by chart values without Outputs.

    They are arguments of VirtualClusterBackup. What values leave out is as in the chart.
    """
    registry = value_at(values, "controlPlane.advanced.defaultImageRegistry") or "ghcr.io"
    image = pairs(value_at(values, "controlPlane.statefulSet.image"))
    program = image.get("repository", "loft-sh/vcluster-pro")
    kubernetes = kubernetes_of(values) or release.kubernetes
    return {
        "vcluster_image": f"{registry}/{program}:{image.get('tag', release.chart_version)}",
        "kubernetes_image": f"{registry}/loft-sh/kubernetes:{kubernetes}",
    }


def _parent_ref(vcluster: str, gateway: str) -> dict[str, str]:
    """NAMESPACE/NAME of a Gateway as an entry of a route's `parentRefs`.

    Raises pulumi.RunError, which names the vCluster, for another text.
    """
    match = _GATEWAY.fullmatch(gateway)
    if match is None:
        cause = f"VirtualCluster {vcluster}: access.gateway is {gateway!r}"
        raise RunError(f"{cause}; write NAMESPACE/NAME of the Gateway")
    return match.groupdict()


def _with_oidc(values: Values, name: str, oidc: OidcArgs) -> Values:
    """The values with the identity provider's flags in front of the API server's own.

    With `ca` a volume and a mount of its ConfigMap are in front of their lists, too. `name` is the
    vCluster's.
    """
    flags: dict[str, Input[str]] = {
        "issuer-url": oidc["issuer"],
        "client-id": oidc["client_id"],
        "username-claim": oidc.get("username_claim", "sub"),
        "username-prefix": PREFIX,
        "groups-claim": oidc.get("groups_claim", "groups"),
        "groups-prefix": PREFIX,
    }
    if "ca" in oidc:
        flags["ca-file"] = f"{_OIDC_FOLDER}/{AUTHORITY}"
        config_map = {"name": authority_name(name, oidc["ca"])}
        volume = {
            "name": _OIDC_VOLUME,
            "configMap": config_map,
        }
        mount = {
            "name": _OIDC_VOLUME,
            "mountPath": _OIDC_FOLDER,
            "readOnly": True,
        }
        values = _with_first(values, f"{_PERSISTENCE}.addVolumes", [volume])
        values = _with_first(values, f"{_PERSISTENCE}.addVolumeMounts", [mount])
    arguments = [joined("", [f"--oidc-{flag}=", value]) for flag, value in flags.items()]
    return _with_first(values, _API_SERVER_FLAGS, arguments)


def _with_first(values: Values, key: str, items: Sequence[object]) -> Values:
    """The values with these items in front of the list at the dotted key, which may be absent."""
    present = value_at(values, key) or ()
    return merged(values, nested(key, [*items, *present]))


def authority_name(name: str, ca: Input[str]) -> Input[str]:
    """Name of the ConfigMap with the issuer's CA; `name` is the vCluster's.

    It has a hash of the CA: a new CA gives a new name, and so a new pod that reads it.
    """
    return joined("-", [name, "oidc", resolved(digest, ca)])


def digest(text: str) -> str:
    """Eight characters that change with a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]
