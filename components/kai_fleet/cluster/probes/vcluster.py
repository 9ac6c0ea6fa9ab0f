"""`fleet-probe vcluster wait|clean-up`: around one vCluster.

wait: print its server and its identity once its API answers. clean-up: delete what the chart
leaves in the namespace, without waiting.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, complaint
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes.wait import (
    HostFailedError,
    NotReadyError,
    cluster,
    control_plane_kind,
    say,
    until_ready,
    unusable,
)
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, address_of, of_secret
from kai_fleet.names import TEAM_LABEL, USED_LABEL
from kai_fleet.wording import plain

_UID: Final = re.compile(r"[0-9a-zA-Z-]{1,64}")
_SECRET_SECONDS: Final = 60.0  # a control plane that is Ready has written it long before
_HOST_SECONDS: Final = 60.0  # an API server that restarts answers again long before


def wait() -> None:
    """Print `{"server": "https://…", "uid": "…"}` on stdout, everything else on stderr.

    The UID is that of the namespace `kube-system`, which Kubernetes makes once in a cluster's life:
    it stands for the vCluster.
    """
    name, namespace = os.environ["VCLUSTER_NAME"], os.environ["VCLUSTER_NAMESPACE"]
    access, host = os.environ["VCLUSTER_ACCESS"], os.environ.get("VCLUSTER_HOST") or None
    api, here = cluster(), f"/api/v1/namespaces/{namespace}"
    found: dict[str, str] = {}
    begun = answered = time.monotonic()

    def service() -> Object | None:
        """The vCluster's Service, which its release had made before this wait began."""
        nonlocal answered
        try:
            exposed = api.find(f"{here}/services/{name}")
        except KubeError as error:
            if time.monotonic() - answered > _HOST_SECONDS:
                failed = f"the host's API server failed for {_HOST_SECONDS:.0f} s"
                raise HostFailedError(f"{failed}: {complaint(error)}") from None
            raise
        answered = time.monotonic()
        if exposed is None and answered - begun > _HOST_SECONDS:
            raise NotReadyError(
                f"Service {name} of namespace {namespace} is gone, as after somebody uninstalled"
                f" release {name}"
            )
        return exposed

    def missing() -> list[str]:
        exposed = service()
        place = exposed and address_of(exposed, access, host)
        if place is None:
            return [f"an address for Service {name} of type {access}"]
        secret = api.find(f"{here}/secrets/vc-{name}")
        if secret is None:
            pods = api.list(f"{here}/pods", labelSelector=f"app=vcluster,release={name}")
            own = [KubeObject(pod) for pod in pods]
            runs = own and all(pod.is_true("Ready") for pod in own)
            if runs and time.monotonic() - begun > _SECRET_SECONDS:
                workload = control_plane_kind(api, name, namespace)
                raise NotReadyError(
                    f"Secret vc-{name} of namespace {namespace} is not there, and the control plane"
                    f" runs. Have it written anew: kubectl -n {namespace} rollout restart"
                    f" {workload} {name}"
                )
            unscheduled = [pod for pod in own if pod.unscheduled]
            return [f"Secret vc-{name}"] + [
                f"pod {pod.name} has no node ({plain(pod.unscheduled, 300)})" for pod in unscheduled
            ]
        server = f"https://{place}"
        try:
            way_in = of_secret(secret.get("data") or {}, server, name)
        except TenantKubeconfigError as error:
            raise unusable(api, name, namespace, error) from None
        # The API server is the tenant's: its answer is not trusted.
        system = Api.of_kubeconfig(way_in, seconds=5.0).get("/api/v1/namespaces/kube-system")
        found.update(server=server, uid=str(system["metadata"]["uid"]))
        if not _UID.fullmatch(found["uid"]):
            raise NotReadyError("its namespace kube-system has no UID")
        return []

    until_ready(
        f"vCluster {name}",
        missing,
        float(os.environ["VCLUSTER_TIMEOUT"]),
        f"kubectl -n {namespace} get pods and kubectl -n {namespace} logs -l"
        f" app=vcluster,release={name}",
    )
    _warn_if_no_node(api, name)
    print(json.dumps(found))


def _warn_if_no_node(api: Api, name: str) -> None:
    """Warn of a pool without a Ready node. It is no error: it may scale from zero."""
    pool = os.environ.get("VCLUSTER_NODE_POOL")
    with suppress(KubeError):
        nodes = api.list("/api/v1/nodes", labelSelector=pool) if pool else []
        if pool and not any(KubeObject(node).is_true("Ready") for node in nodes):
            say(
                f"warning: no Ready node has the labels {pool}: every pod of {name}, its DNS among"
                " them, stays Pending until one comes"
            )


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
