"""`fleet-probe vcluster wait|clean-up`: around one vCluster.

wait: print its server and its identity once its API answers. clean-up: delete what the chart
leaves in the namespace, without waiting.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, complaint
from kai_fleet.cluster.kube.identity import SYSTEM, uid_of
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes.reasons import key, reasons, refusals
from kai_fleet.cluster.probes.wait import (
    HostFailedError,
    NotReadyError,
    cluster,
    control_plane,
    require_release,
    say,
    until_ready,
)
from kai_fleet.cluster.tenant_kubeconfig import (
    TenantKubeconfigError,
    address_of,
    explain,
    of_secret,
)
from kai_fleet.names import TEAM_LABEL, USED_LABEL
from kai_fleet.releases import ETCD_RESOURCES
from kai_fleet.values import get
from kai_fleet.wording import listed

_CLASSES: Final = "/apis/storage.k8s.io/v1/storageclasses"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_SECRET_SECONDS: Final = 60.0  # a control plane that is Ready has written it long before
_HOST_SECONDS: Final = 60.0  # an API server that restarts answers again long before


def wait() -> None:
    """Print `{"server": "https://…", "uid": "…", "kubernetes": "v1.…"}` on stdout, everything else
    on stderr. The last is left out where the control plane's image does not say it.

    The UID is that of the namespace `kube-system`, which Kubernetes makes once in a cluster's life:
    it stands for the vCluster. Raises NotReadyError with VCLUSTER_REFUSAL, if there is one.
    """
    name, namespace = os.environ["VCLUSTER_NAME"], os.environ["VCLUSTER_NAMESPACE"]
    access, host = os.environ["VCLUSTER_ACCESS"], os.environ.get("VCLUSTER_HOST") or None
    pool = os.environ.get("VCLUSTER_NODE_POOL")
    if refusal := os.environ.get("VCLUSTER_REFUSAL"):
        raise NotReadyError(refusal)
    api, here, at = cluster(), f"/api/v1/namespaces/{namespace}", f"-n {namespace}"
    found: dict[str, str] = {}
    begun = answered = time.monotonic()

    def service() -> Object:
        """The vCluster's Service; the release made it and the control plane before this wait."""
        nonlocal answered
        try:
            exposed = api.find(f"{here}/services/{name}")
            if exposed is None or control_plane(api, name, namespace) is None:
                part = f"{'Service' if exposed is None else 'Control plane'} {name}"
                require_release(api, part, namespace, name)
                again = f"helm {at} get manifest {name} | kubectl {at} apply -f -"
                lost = f"{part} of namespace {namespace} is gone, and release {name} stands"
                raise NotReadyError(f"{lost}. Make it again with: {again}")
        except KubeError as error:
            if time.monotonic() - answered > _HOST_SECONDS:
                failed = f"the host's API server failed for {_HOST_SECONDS:.0f} s"
                raise HostFailedError(f"{failed}: {complaint(error)}") from None
            raise
        answered = time.monotonic()
        return exposed

    def pods() -> list[KubeObject]:
        labels = f"app in (vcluster,vcluster-etcd),release={name}"
        return [KubeObject(pod) for pod in api.list(f"{here}/pods", labelSelector=labels)]

    def why() -> list[str]:
        own = [pod for pod in pods() if not pod.is_true("Ready")]
        selected = [pod.spec.get("nodeSelector") or {} for pod in own]
        # The labels of the team, where the control plane has none of its own.
        of_team = any(",".join(map("=".join, labels.items())) == pool for labels in selected)
        node_pool = key(name, "nodePool" if of_team else "vcluster.nodePool")
        found = _unbound(api, here, own, key(name, "vcluster.storageClass"))
        requests = key(name, "vcluster.resources")
        found += reasons(api, own, key(name), node_pool, requests, _memory_key(name))
        return found or refusals(api, namespace)

    def missing() -> list[str]:
        place = address_of(service(), access, host)
        if place is None:
            other = f"or another access.type at {key(name, 'vcluster')}"
            return [f"an address for Service {name} of type {access}, {other}"]
        secret = api.find(f"{here}/secrets/vc-{name}")
        if secret is None:
            own = pods()
            runs = own and all(pod.is_true("Ready") for pod in own)
            if runs and time.monotonic() - begun > _SECRET_SECONDS:
                workload = control_plane(api, name, namespace)
                raise NotReadyError(
                    f"Secret vc-{name} of namespace {namespace} is not there, and the control plane"
                    f" runs. Have it written anew: kubectl {at} rollout restart {workload} {name}"
                )
            return [f"Secret vc-{name}"]
        server = f"https://{place}"
        try:
            way_in = of_secret(secret.get("data") or {}, server, name)
        except TenantKubeconfigError as error:
            kind = control_plane(api, name, namespace) or "statefulset"
            raise NotReadyError(explain(name, namespace, error, kind)) from None
        found.update(server=server, uid=uid_of(Api.of_kubeconfig(way_in, seconds=5.0)))
        if not found["uid"]:
            raise NotReadyError(f"its namespace {SYSTEM} has no UID")
        # The pod before a change may still answer; of several, one always does.
        workload = control_plane(api, name, namespace)
        path = f"/apis/apps/v1/namespaces/{namespace}/{workload}s/{name}"
        plane = KubeObject(api.find(path) or {})
        if version := _kubernetes(plane):
            found["kubernetes"] = version
        restarts = plane.spec.get("replicas") == 1 and not plane.rolled_out
        return [f"{workload} {name}, which restarts"] if restarts else []

    until_ready(
        api,
        f"vCluster {name}",
        missing,
        float(os.environ["VCLUSTER_TIMEOUT"]),
        f"kubectl {at} get pods and kubectl {at} logs -l app=vcluster,release={name}",
        why,
    )
    with suppress(KubeError):  # no error: a pool may scale from zero
        nodes = api.list("/api/v1/nodes", labelSelector=pool) if pool else []
        if pool and not any(KubeObject(node).is_true("Ready") for node in nodes):
            say(
                f"warning: no Ready node has the labels {pool}: every pod of {name}, its DNS among"
                " them, stays Pending until one comes"
            )
    print(json.dumps(found))


def _kubernetes(plane: KubeObject) -> str | None:
    """The Kubernetes that a control plane runs, by the tag of the image that brings it."""
    containers = get(plane.spec, "template", "spec", "initContainers") or ()
    images = (each.get("image") or "" for each in containers if each.get("name") == "kubernetes")
    _, _, tag = next(images, "").rpartition(":")
    return tag if re.fullmatch(r"v[0-9]+\.[0-9]+\.[0-9]+", tag) else None


def _memory_key(name: str) -> Callable[[KubeObject], str]:
    """The key of the memory of a pod of a vCluster: of its control plane, or of its etcd."""
    by_app = {"vcluster-etcd": f"vcluster.values.{ETCD_RESOURCES}"}
    return lambda pod: key(name, by_app.get(pod.labels.get("app", ""), "vcluster.resources"))


def _unbound(api: Api, here: str, pods: list[KubeObject], key: str) -> list[str]:
    """Claims of pods without a StorageClass. Raises NotReadyError where that of `key` is absent."""
    volumes = [volume for pod in pods for volume in pod.spec.get("volumes") or []]
    sources = (volume.get("persistentVolumeClaim") for volume in volumes)
    with suppress(RefusedError):  # the account of a team's own stack may not look
        for name in (str(source["claimName"]) for source in sources if source):
            claim = KubeObject(api.find(f"{here}/persistentvolumeclaims/{name}") or {})
            if claim.phase != "Pending":
                continue
            if not (desired := claim.spec.get("storageClassName")):
                return [f"a volume for claim {name}: make a StorageClass the default one"]
            classes = [item["metadata"]["name"] for item in api.list(_CLASSES)]
            provisioned = [item["spec"].get("storageClassName") for item in api.list(_VOLUMES)]
            if desired not in (*classes, *provisioned):
                raise NotReadyError(
                    f"StorageClass {desired}, which claim {name} names, is not there (there are:"
                    f" {listed(classes) or 'none'}). Make it, as {key} names it, and run the update"
                    " again"
                )
    return []


def clean_up() -> None:
    """Delete what a vCluster leaves in its namespace: pods, volumes, Secrets.

    With the pods gone Kubernetes deletes a namespace at once, else after half of a grace period. In
    a namespace that stays a volume would bring the old state back; the pods and volumes of others
    stay. Nothing is waited for, and errors are only warnings.
    """
    namespace = os.environ["PODS_NAMESPACE"]
    try:
        api = cluster()
        for path in _left_behind(api, namespace, os.environ["PODS_VCLUSTER"]):
            api.delete(path)
    except KubeError as error:
        say(f"warning: pods of {namespace} are left to Kubernetes ({complaint(error)})")


def _left_behind(api: Api, namespace: str, team: str) -> Iterator[str]:
    space, synced = f"/api/v1/namespaces/{namespace}", f"vcluster.loft.sh/managed-by={team}"
    held = [synced, f"app in (vcluster,vcluster-etcd),release={team}"]
    with suppress(RefusedError):
        labels = KubeObject(api.get(space)).labels
        if labels.get(TEAM_LABEL) == team and USED_LABEL not in labels:
            held = [""]  # the platform made the namespace for the team: nothing is another's
    # Without owners, as in host mode, what was synced and the way in stay behind, too.
    for kind in ("pods", "persistentvolumeclaims", "services", "configmaps", "secrets"):
        may_be_of_others = kind in ("pods", "persistentvolumeclaims")
        for selector in held if may_be_of_others else [synced]:
            for item in api.list(f"{space}/{kind}", labelSelector=selector):
                yield f"{space}/{kind}/{item['metadata']['name']}"
    yield f"{space}/secrets/vc-{team}"
    yield f"{space}/secrets/{team}-certs"
