"""`fleet-probe vcluster grow|wait|clean-up`, for one vCluster.

grow: larger volumes for its store, before the release. wait: print its server and its identity once
its API answers. clean-up: delete what Helm leaves in its namespace when the release is uninstalled,
without waiting.
"""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import NoReturn

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, complaint
from kai_fleet.cluster.kube.identity import SYSTEM, uid_of
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes.reasons import Keys, key, pool_key, reasons, refusals, selector
from kai_fleet.cluster.probes.wait import (
    HostFailedError,
    NotReadyError,
    cluster,
    control_plane,
    open_vcluster,
    require_release,
    say,
    until_ready,
    variable,
)
from kai_fleet.cluster.store_use import size_of
from kai_fleet.cluster.tenant_kubeconfig import address_of
from kai_fleet.names import TEAM_LABEL, USED_LABEL
from kai_fleet.releases import ETCD_RESOURCES
from kai_fleet.values import get
from kai_fleet.wording import listed
from kai_usage.quantities import parse_quantity
from kai_usage.scheduling import claims_of

_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_VOLUMES = "/api/v1/persistentvolumes"
# A control plane that is Ready has written its Secret long before.
_SECRET_SECONDS = 60.0
# A host's API server that restarts answers again long before.
_HOST_SECONDS = 60.0
_VERSION = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+")
_INSIDE_SECONDS = 5.0  # of one request to the vCluster's API server
_ORPHANED_SECONDS = 60.0  # the garbage collector needs about one


def wait() -> None:
    """Wait for the vCluster that VCLUSTER_NAME and VCLUSTER_NAMESPACE name.

    Prints `{"server": "https://…", "uid": "…", "kubernetes": "v1.…"}` on stdout, and all else on
    stderr. `uid` is that of the namespace `kube-system`: a new vCluster has another. Warns if no
    Ready node has the labels in VCLUSTER_NODE_POOL. VCLUSTER_ACCESS and VCLUSTER_HOST say how it is
    reached: see `address_of`.

    Raises:
        NotReadyError: VCLUSTER_REFUSAL says why it cannot be ready; a variable is not set;
            VCLUSTER_TIMEOUT seconds are over; or waiting longer cannot help, and the message says
            what does.
        HostFailedError: The host's API server has failed for a minute.
        UnusableKubeconfigError: The host's kubeconfig cannot be used.
        One of MALFORMED: The Service, or a pod or node, is malformed.
    """
    refusal = os.environ.get("VCLUSTER_REFUSAL")
    if refusal:
        raise NotReadyError(refusal)
    probe = _Wait()
    until_ready(
        probe.host,
        f"vCluster {probe.name}",
        probe.missing,
        float(variable("VCLUSTER_TIMEOUT")),
        f"kubectl {probe.option} get pods and"
        f" kubectl {probe.option} logs -l app=vcluster,release={probe.name}",
        probe.reasons,
    )
    probe.warn_without_nodes()
    print(json.dumps(probe.result))


class _Wait:
    """The wait for the vCluster of the environment's variables, asked for by its host's API.

    Attributes:
        host: The cluster in which the vCluster runs.
        name: That of the vCluster, which is that of its Helm release and team.
        namespace: Where it runs.
        access: How it is reached, as `address_of` takes it.
        access_host: The host name or address of it, if the stack file has one.
        pool_selector: A selector of the team's nodes; None and "" if it may use all nodes.
        result: What `missing` has found, to be printed; complete once that finds nothing missing.
            `kubernetes` is absent if the control plane's image does not say it.
    """

    def __init__(self) -> None:
        """Raises NotReadyError and UnusableKubeconfigError as `wait` does."""
        self.host = cluster()
        self.name = variable("VCLUSTER_NAME")
        self.namespace = variable("VCLUSTER_NAMESPACE")
        self.access = variable("VCLUSTER_ACCESS")
        self.access_host = os.environ.get("VCLUSTER_HOST") or None
        self.pool_selector = os.environ.get("VCLUSTER_NODE_POOL")
        self.result = dict[str, str]()
        self.option = f"-n {self.namespace}"
        self._path = f"/api/v1/namespaces/{self.namespace}"
        self._begun = time.monotonic()
        self._host_answered = self._begun

    def missing(self) -> list[str]:
        """What the vCluster still lacks, a phrase each; adds what it finds to `result`.

        Raises:
            NotReadyError: Its Service, control plane or Secret is gone for good, its Secret was
                forged, or its namespace `kube-system` has no UID.
            HostFailedError: The host's API server has failed for a minute.
            KubeError: The host or the vCluster does not answer, or refuses.
            One of MALFORMED: The Service is malformed.
        """
        address = address_of(self._service(), self.access, self.access_host)
        if address is None:
            setting = key(self.name, "vcluster")
            return [
                f"an address for Service {self.name} of type {self.access},"
                f" or another access.type at {setting}"
            ]
        secret = self.host.find(f"{self._path}/secrets/vc-{self.name}")
        if secret is None:
            self._require_no_late_secret()
            return [f"Secret vc-{self.name}"]
        server = f"https://{address}"
        self.result["server"] = server
        self.result["uid"] = self._uid(secret, server)
        return self._not_restarted()

    def _service(self) -> Object:
        """The vCluster's Service, which its Helm release created before this wait.

        Raises NotReadyError if it or the control plane is gone, HostFailedError, KubeError.
        """
        try:
            service = self.host.find(f"{self._path}/services/{self.name}")
            if service is None:
                self._refuse_absent("Service")
            if self._workload() is None:
                self._refuse_absent("Control plane")
        except KubeError as error:
            if time.monotonic() - self._host_answered > _HOST_SECONDS:
                raise HostFailedError(
                    f"the host's API server failed for {_HOST_SECONDS:.0f} s: {complaint(error)}"
                ) from None
            raise
        self._host_answered = time.monotonic()
        return service

    def _refuse_absent(self, what: str) -> NoReturn:
        """Raise NotReadyError: a part is gone, with its Helm release or without it.

        `what` is its kind, which begins the message. Raises KubeError as `require_release` does.
        """
        part = f"{what} {self.name}"
        require_release(self.host, part, self.namespace, self.name)
        repair = f"helm {self.option} get manifest {self.name} | kubectl {self.option} apply -f -"
        raise NotReadyError(
            f"{part} of namespace {self.namespace} is gone, and release {self.name} stands."
            f" Make it again with: {repair}"
        )

    def _workload(self) -> str | None:
        """What kubectl calls the control plane's workload; None if it is gone. Raises KubeError."""
        return control_plane(self.host, self.name, self.namespace)

    def _pods(self) -> list[KubeObject]:
        """The pods of the control plane and of its etcd. Raises KubeError."""
        labels = f"app in (vcluster,vcluster-etcd),release={self.name}"
        pods = self.host.list(f"{self._path}/pods", labelSelector=labels)
        return [KubeObject(pod) for pod in pods]

    def _require_no_late_secret(self) -> None:
        """Raise NotReadyError if the control plane is Ready, and no Secret is there after a minute.

        The minute begins with this wait; all pods of the control plane have to be Ready. Raises
        KubeError.
        """
        pods = self._pods()
        is_ready = bool(pods) and all(pod.is_true("Ready") for pod in pods)
        if not is_ready or time.monotonic() - self._begun <= _SECRET_SECONDS:
            return
        restart = f"kubectl {self.option} rollout restart {self._workload()} {self.name}"
        raise NotReadyError(
            f"Secret vc-{self.name} of namespace {self.namespace} is not there, and the control"
            f" plane runs. Have it written anew: {restart}"
        )

    def _uid(self, secret: Object, server: str) -> str:
        """The vCluster's UID, as its own API server says. Raises NotReadyError, KubeError."""
        inside = open_vcluster(
            self.host, self.namespace, self.name, secret, server, seconds=_INSIDE_SECONDS
        )
        uid = uid_of(inside)
        if not uid:
            raise NotReadyError(f"its namespace {SYSTEM} has no UID")
        return uid

    def _not_restarted(self) -> list[str]:
        """A phrase if the control plane is still restarting. Adds its version to `result`.

        Only for a single replica: its old pod may still answer. Of several, one always answers.
        Raises KubeError.
        """
        workload = self._workload()
        path = f"/apis/apps/v1/namespaces/{self.namespace}/{workload}s/{self.name}"
        plane = KubeObject(self.host.find(path) or {})
        version = _kubernetes(plane)
        if version:
            self.result["kubernetes"] = version
        if plane.spec.get("replicas") == 1 and not plane.rolled_out:
            return [f"{workload} {self.name}, which restarts"]
        return []

    def reasons(self) -> list[str]:
        """Why pods of the control plane are not Ready, a phrase each.

        If no pod has a known reason: why Kubernetes refuses to create pods. Raises NotReadyError if
        an object that the user has to create is absent, KubeError.
        """
        unready = [pod for pod in self._pods() if not pod.is_true("Ready")]
        phrases = _unbound(self.host, self._path, unready, key(self.name, "vcluster.storageClass"))
        phrases += reasons(
            self.host,
            unready,
            Keys(key(self.name), self._pool_key(unready), key(self.name, "vcluster.resources")),
            memory_key=self._memory_key,
        )
        return phrases or refusals(self.host, self.namespace)

    def _pool_key(self, pods: list[KubeObject]) -> str:
        """The key of the labels that the pods' nodes have to have.

        The team's, if a pod selects exactly the team's nodes, with labels in the order of
        `pool_selector`; else the control plane's own. Raises NotReadyError.
        """
        for pod in pods:
            labels = pod.spec.get("nodeSelector") or {}
            if selector(labels) == self.pool_selector:
                return pool_key(self.name)
        return pool_key(self.name, "vcluster.")

    def _memory_key(self, pod: KubeObject) -> str:
        """The key of the memory limit of a pod: of the etcd, or of the control plane."""
        if pod.labels.get("app") == "vcluster-etcd":
            return key(self.name, f"vcluster.values.{ETCD_RESOURCES}")
        return key(self.name, "vcluster.resources")

    def warn_without_nodes(self) -> None:
        """Warn on stderr if no Ready node has the team's labels. A pool may scale from zero.

        Without a warning if all nodes are the team's, or if the host does not list them.
        """
        if not self.pool_selector:
            return
        with suppress(KubeError):
            nodes = self.host.list("/api/v1/nodes", labelSelector=self.pool_selector)
            if not any(KubeObject(node).is_true("Ready") for node in nodes):
                say(
                    f"warning: no Ready node has the labels {self.pool_selector}: every pod of"
                    f" {self.name}, its DNS among them, stays Pending until one comes"
                )


def _kubernetes(plane: KubeObject) -> str | None:
    """The version of Kubernetes that a control plane runs, such as `v1.33.4`.

    It is the tag of the init container `kubernetes`; None without one, or for another tag.
    """
    containers = get(plane.spec, "template", "spec", "initContainers") or ()
    for container in containers:
        if container.get("name") == "kubernetes":
            tag = str(container.get("image") or "").rpartition(":")[2]
            return tag if _VERSION.fullmatch(tag) else None
    return None


def _unbound(api: Api, path: str, pods: list[KubeObject], setting: str) -> list[str]:
    """What the first Pending claim without a StorageClass lacks, as one phrase; else nothing.

    Args:
        api: The host.
        path: The path of the namespace in the API.
        pods: Pods of the control plane.
        setting: The key of its StorageClass, for messages.

    Raises:
        NotReadyError: A Pending claim names a StorageClass that does not exist.
        UnreachableError: The host does not answer; what it refuses counts as nothing.
    """
    with suppress(RefusedError):  # the account of a team's own stack may not look
        for name in chain.from_iterable(map(claims_of, pods)):
            claim = KubeObject(api.find(f"{path}/persistentvolumeclaims/{name}") or {})
            if claim.phase != "Pending":
                continue
            class_name = claim.spec.get("storageClassName")
            if not class_name:
                return [f"a volume for claim {name}: make a StorageClass the default one"]
            _require_class(api, str(class_name), name, setting)
    return []


def _require_class(api: Api, class_name: str, claim: str, setting: str) -> None:
    """Raise NotReadyError if neither a StorageClass nor a volume has this class's name.

    Raises KubeError.
    """
    classes = [item["metadata"]["name"] for item in api.list(_CLASSES)]
    volume_classes = [item["spec"].get("storageClassName") for item in api.list(_VOLUMES)]
    if class_name in classes or class_name in volume_classes:
        return
    raise NotReadyError(
        f"StorageClass {class_name}, which claim {claim} names, is not there (there are:"
        f" {listed(classes) or 'none'}). Make it, as {setting} names it, and run the update again"
    )


def grow() -> None:
    """Have each claim of PODS_CLAIMS request at least PODS_SIZE, then their StatefulSet, too.

    Kubernetes lets claims grow, but changes no volume template of a StatefulSet. One whose template
    requests less is deleted without its pods: the release, which follows, creates it around them.
    Claims that do not exist yet are left to it. After an interruption it goes on when it runs
    again.

    Raises:
        NotReadyError: The host does not let a claim grow, and the StatefulSet is as it was; or that
            does not go; or a variable is not set.
        KubeError: The host does not answer, or does not let them be read.
        One of MALFORMED: A claim or the StatefulSet is malformed.
    """
    api = cluster()
    namespace = variable("PODS_NAMESPACE")
    claims = variable("PODS_CLAIMS").split(",")
    for name in claims:
        _grow_claim(api, f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
    workload = claims[0].removeprefix("data-").rpartition("-")[0]
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/{workload}"
    stateful_set = KubeObject(api.find(path) or {})
    for template in map(KubeObject, stateful_set.spec.get("volumeClaimTemplates") or ()):
        if template.name == "data" and _is_small(template):
            api.delete(path, propagationPolicy="Orphan")
            until_ready(
                api,
                f"the deletion of StatefulSet {workload} without its pods",
                lambda: ["the garbage collector"] if api.find(path) else [],
                _ORPHANED_SECONDS,
                f"kubectl -n {namespace} get statefulset {workload} -o yaml",
            )


def _grow_claim(api: Api, path: str) -> None:
    """Have a claim request PODS_SIZE; one that is absent, or requests as much, is left as it is.

    Raises as `grow` does. The host refuses it if its StorageClass lets no volume grow.
    """
    claim = api.find(path)
    if claim is None or not _is_small(KubeObject(claim)):
        return
    size = variable("PODS_SIZE")
    try:
        api.patch(path, {"spec": {"resources": {"requests": {"storage": size}}}})
    except RefusedError as error:
        raise NotReadyError(
            f"the store of vCluster {variable('PODS_VCLUSTER')} does not grow to {size}:"
            f" {complaint(error)}. Write the size before at vcluster.size, or have the StorageClass"
            " allow it (allowVolumeExpansion: true)"
        ) from None


def _is_small(claim: KubeObject) -> bool:
    """Whether a claim, or a template of claims, requests less than PODS_SIZE."""
    return size_of(claim) < parse_quantity(variable("PODS_SIZE"))


def clean_up() -> None:
    """Delete what the vCluster PODS_VCLUSTER leaves in its namespace PODS_NAMESPACE.

    Without pods Kubernetes deletes a namespace at once, else after half of a grace period. In a
    namespace that stays, an old volume would bring the old state back. Pods and volumes of others
    stay, unless the platform made the namespace for the team: then all pods and claims go. Returns
    without waiting until the objects are gone. A KubeError is only a warning on stderr, and what is
    left is not deleted. Raises NotReadyError if a variable is not set, or as `cluster` does.
    """
    namespace = variable("PODS_NAMESPACE")
    try:
        api = cluster()
        for path in _left_behind(api, namespace, variable("PODS_VCLUSTER")):
            api.delete(path)
    except KubeError as error:
        say(f"warning: pods of {namespace} are left to Kubernetes ({complaint(error)})")


def _left_behind(api: Api, namespace: str, team: str) -> Iterator[str]:
    """The paths of the objects to delete. Raises KubeError if a list is refused."""
    space = f"/api/v1/namespaces/{namespace}"
    synced = f"vcluster.loft.sh/managed-by={team}"
    holding_selectors = [synced, f"app in (vcluster,vcluster-etcd),release={team}"]
    if _is_of_team_alone(api, space, team):
        holding_selectors = [""]
    for plural in ("pods", "persistentvolumeclaims"):
        for labels in holding_selectors:
            yield from _paths(api, f"{space}/{plural}", labels)
    # In host mode these have no owners, so they are not deleted with the vCluster.
    for plural in ("services", "configmaps", "secrets"):
        yield from _paths(api, f"{space}/{plural}", synced)
    yield f"{space}/secrets/vc-{team}"
    yield f"{space}/secrets/{team}-certs"


def _is_of_team_alone(api: Api, space: str, team: str) -> bool:
    """Whether the platform created the namespace for the team, so that all in it is the team's.

    False if this account may not read the namespace. Raises UnreachableError.
    """
    with suppress(RefusedError):
        labels = KubeObject(api.get(space)).labels
        return labels.get(TEAM_LABEL) == team and USED_LABEL not in labels
    return False


def _paths(api: Api, collection: str, labels: str) -> Iterator[str]:
    """The paths of a collection's objects with these labels, a selector; all for "".

    Raises KubeError.
    """
    for item in api.list(collection, labelSelector=labels):
        yield f"{collection}/{item['metadata']['name']}"
