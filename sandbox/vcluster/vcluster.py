"""One vCluster of the sandbox: a real control plane for a StatefulSet without containers."""

import contextlib
import shutil
import threading
import time
from pathlib import Path
from typing import Final

from sandbox.control_plane import volumes
from sandbox.control_plane.command_lines import FLAGS, ControlPlane
from sandbox.control_plane.kube_api import AdminApi, KubeError, Object
from sandbox.kai import kai_operator
from sandbox.kai.binder import KaiBinder
from sandbox.vcluster.certs_secret import prepare
from sandbox.vcluster.declared import Endpoint, VclusterConfig, choose_endpoint, read
from sandbox.vcluster.host import Host, log
from sandbox.vcluster.syncer import (
    access_secret,
    may_list_pods,
    owned,
    selected,
    sync_nodes,
    sync_runtime_classes,
    warning,
)

_ROUND_SECONDS: Final = 1.5
_POD_SECONDS: Final = 10.0
# After this long everything is synced again, changed or not.
_RESYNC_SECONDS: Final = 30.0
# Two cores start two API servers at a time about as fast as many at once, with less load.
_STARTS: Final = threading.Semaphore(2)
# The claim of its StatefulSet, which stays when the release is uninstalled.
_CLAIM: Final = "/api/v1/namespaces/{}/persistentvolumeclaims/data-{}-0"


class SandboxVcluster(threading.Thread):
    """Reconciles one vCluster with its configuration and StatefulSet, of that uid."""

    def __init__(self, host: Host, namespace: str, name: str, uid: str) -> None:
        super().__init__(daemon=True, name=f"vcluster {namespace}/{name}")
        self.host, self.namespace, self.vcluster, self.uid = host, namespace, name, uid
        self.directory = folder(host.etcd.directory, namespace, name)
        self._plane: ControlPlane | None = None
        self._api: AdminApi | None = None
        self._binder: KaiBinder | None = None
        self._ready = False
        self._synced: tuple[float, object] = (0.0, None)
        self._revision = ""
        self._without_pod_since: float | None = None
        self._allowed_revision = ""
        self._published: object = None
        self._reported: set[str] = set()
        self._host_versions: object = None
        self._woken = threading.Event()
        self._over = threading.Event()

    def notice(self, host_versions: object) -> None:
        """Reconcile now if these versions of the host's objects are new."""
        if host_versions != self._host_versions:
            self._host_versions = host_versions
            self._woken.set()

    def remove(self) -> None:
        """Stop at once; what it stored goes with its claim."""
        self._over.set()
        self._woken.set()

    def run(self) -> None:
        """Reconcile until removed."""
        while not self._over.is_set():
            self._woken.clear()
            try:
                self._reconcile()
            except (KubeError, RuntimeError, OSError) as why:
                self._report("NotReady", str(why))
            # Twenty that reconcile every second and a half keep one of two cores busy.
            self._woken.wait(max(_ROUND_SECONDS, len(self.host.control_planes) / 4))
        while not self._cleaned_up():
            time.sleep(_ROUND_SECONDS)

    def _cleaned_up(self) -> bool:
        name = (self.namespace, self.vcluster)
        try:
            if self.host.api.find(_CLAIM.format(*name)) is not None:
                stop(self.host, *name)
                return name in self.host.control_planes  # the next one goes on with its volume
            clean_up(self.host, self.namespace, self.vcluster)
            if self._binder is not None:
                self._binder.leave()
        except KubeError as why:
            log(f"vCluster {self.namespace}/{self.vcluster}: not removed yet: {why}")
            return False
        self.host.endpoints.pop((self.namespace, self.vcluster), None)
        log(f"vCluster {self.namespace}/{self.vcluster}: removed")
        return True

    def _reconcile(self) -> None:
        secret = self.host.secrets.get((self.namespace, f"vc-config-{self.vcluster}"))
        service = self.host.services.get((self.namespace, self.vcluster))
        if secret is None or service is None:
            return
        config = read(secret)
        if config.problem:
            self._report("BadConfig", f"vCluster cannot start: {config.problem}")
            return
        endpoint = self._choose_endpoint(service)
        plane = ControlPlane(
            f"{self.namespace}.{self.vcluster}",
            self.directory,
            endpoint.address,
            endpoint.port,
            self.host.etcd,
            (self.vcluster, f"{self.vcluster}.{self.namespace}", *config.extra_names),
            api_server_args=self._api_server_args(config),
        )
        revision, version = self.host.started(self.namespace, self.vcluster)
        if not self._has_volume(plane):
            return
        if not self._has_pod():
            return
        if plane != self._plane or revision != self._revision:
            metadata = {"name": f"{self.vcluster}-certs", **owned(config, service)}
            if prepare(self.host.api, self.namespace, plane, metadata, version):
                stop(self.host, self.namespace, self.vcluster)  # its server has the old authority
            self._plane, self._api, self._ready = plane, plane.api(), False
            self._revision = revision
            self._binder = KaiBinder(self._api, self.host.api, self.namespace, self.vcluster)
        api, binder = self._api, self._binder
        assert api is not None and binder is not None
        self._serve(plane, api)
        if self._over.is_set():
            return
        self._report_load_balancer(service, endpoint)
        if config.scheduler and not self._may_list_pods():
            return
        self._publish(plane, config, service)
        self._sync(api, config)
        volumes.provide(api)
        kai_operator.play(api)
        binder.play()

    def _has_pod(self) -> bool:
        """Whether a pod of it runs. Without one for some seconds it is stopped.

        A pod that another one replaces at once, as in a rollout, does not stop it.
        """
        if self.host.has_pod(self.namespace, self.vcluster):
            self._without_pod_since = None
            return True
        now = time.monotonic()
        self._without_pod_since = self._without_pod_since or now
        if self._ready and now - self._without_pod_since > _POD_SECONDS:
            stop(self.host, self.namespace, self.vcluster)
            self._ready = False
        return False

    def _has_volume(self, plane: ControlPlane) -> bool:
        """Whether the volume of its store, if it has one, is there. Another one is empty."""
        uid = self.host.claim_uid(self.namespace, self.vcluster)
        remembered = self.directory / "claim"
        last = remembered.read_text() if remembered.exists() else uid
        if uid != last:
            stop(self.host, self.namespace, self.vcluster)
            self.host.etcd.delete(plane.etcd_prefix)
            self._ready = False
        if last and not uid:
            self._report("NoVolume", "the claim of its store is not there")
            return False
        if uid:
            remembered.write_text(uid)
        return True

    def _api_server_args(self, config: VclusterConfig) -> tuple[str, ...]:
        """Its own flags, with the files of mounted ConfigMaps where this machine has them."""
        arguments = config.api_server_args
        for n, (folder, name) in enumerate(sorted(config.config_maps.items())):
            mount = self.directory / "mounts" / str(n)
            mount.mkdir(parents=True, exist_ok=True)
            found = self.host.api.get(f"/api/v1/namespaces/{self.namespace}/configmaps/{name}")
            for key, text in (found.get("data") or {}).items():
                (mount / Path(key).name).write_text(text)
            arguments = tuple(flag.replace(f"={folder}/", f"={mount}/") for flag in arguments)
        return arguments

    def _serve(self, plane: ControlPlane, api: AdminApi) -> None:
        """Bring up the control plane and wait for its answer."""
        server, processes = plane.api_server(self.host.tools), self.host.processes
        if not self._ready or not processes.runs(server):
            with _STARTS:
                if self._over.is_set():
                    return
                begun = time.monotonic()
                processes.ensure(server)
                processes.wait_for(server, lambda: self._over.is_set() or api.ready(), log)
            self._ready, self._synced = True, (0.0, None)
            took = time.monotonic() - begun
            log(f"vCluster {plane.name}: API at {plane.server} after {took:.1f} s")
        if self._over.is_set():
            return
        for part in plane.others(self.host.tools):
            processes.ensure(part)

    def _choose_endpoint(self, service: Object) -> Endpoint:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        name, remembered = (self.namespace, self.vcluster), self.directory / "endpoint"
        with self.host.choice:
            taken = {used for owner, used in self.host.endpoints.items() if owner != name}
            endpoint = choose_endpoint(service, self.host.etcd.ports, taken, remembered)
            self.host.endpoints[name] = endpoint
        if endpoint.problem:
            self._report("NoAddress", endpoint.problem)
        return endpoint

    def _report_load_balancer(self, service: Object, endpoint: Endpoint) -> None:
        if service["spec"].get("type") != "LoadBalancer" or endpoint.problem:
            return
        ingress = [{"ip": endpoint.address}]
        current = service.get("status", {}).get("loadBalancer", {}).get("ingress", [])
        if [{"ip": entry.get("ip")} for entry in current] != ingress:
            self.host.api.patch(
                f"/api/v1/namespaces/{self.namespace}/services/{self.vcluster}/status",
                {"status": {"loadBalancer": {"ingress": ingress}}},
            )

    def _may_list_pods(self) -> bool:
        """Whether its account may list and watch the pods of all namespaces, asked until it may.

        vCluster waits for these before it syncs anything (controllers/resources/nodes/syncer.go).
        """
        own = self.host.control_planes.get((self.namespace, self.vcluster))
        if own is None or self._allowed_revision == self._revision:
            return own is not None
        account = own["spec"]["template"]["spec"]["serviceAccountName"]
        if not may_list_pods(self.host.api, self.namespace, account):
            self._report("NotReady", f"{account} may not list and watch pods of all namespaces")
            return False
        self._allowed_revision = self._revision
        return True

    def _publish(self, plane: ControlPlane, config: VclusterConfig, service: Object) -> None:
        """Write the Secret `vc-NAME`, as vCluster does each time that it has started.

        It does not look at it again: what somebody else writes there stays (pkg/setup).
        """
        started = (self._revision, config, service["metadata"]["uid"])
        own = self.host.control_planes.get((self.namespace, self.vcluster), {})
        if self._published == started or not own.get("status", {}).get("readyReplicas"):
            return  # it has, or its pod has not started
        secret = access_secret(plane, config, service)
        self.host.api.ensure(f"/api/v1/namespaces/{self.namespace}/secrets", secret)
        self._published = started

    def _sync(self, api: AdminApi, config: VclusterConfig) -> None:
        nodes = selected(self.host.nodes.values(), config.node_labels)
        classes = list(self.host.runtime_classes.values()) if config.runtime_classes else []
        versions = [item["metadata"]["resourceVersion"] for item in (*nodes, *classes)]
        when, what = self._synced
        if what == versions and time.monotonic() - when < _RESYNC_SECONDS:
            return
        volumes.ensure_storage_class(api)
        sync_nodes(api, nodes)
        if config.runtime_classes:
            sync_runtime_classes(api, classes)
        if not nodes and config.node_labels:
            labels = ", ".join(f"{key}={value}" for key, value in config.node_labels.items())
            self._report("NoNodes", f"no node of the host has the labels {labels}")
        self._synced = (time.monotonic(), versions)

    def _report(self, reason: str, message: str) -> None:
        """Report once: in the supervisor's log, and as an event of the StatefulSet."""
        if message in self._reported or self._over.is_set():
            return
        self._reported.add(message)
        log(f"vCluster {self.namespace}/{self.vcluster}: {message}")
        with contextlib.suppress(KubeError):
            self.host.api.post(
                f"/api/v1/namespaces/{self.namespace}/events",
                warning(self.namespace, self.vcluster, reason, message),
            )


def folder(sandbox: Path, namespace: str, name: str) -> Path:
    """Where a vCluster's certificates and kubeconfig are."""
    return sandbox / "vclusters" / f"{namespace}.{name}"


def stop(host: Host, namespace: str, name: str) -> ControlPlane:
    """Stop the processes of a vCluster."""
    directory = folder(host.etcd.directory, namespace, name)
    plane = ControlPlane(f"{namespace}.{name}", directory, "127.0.0.1", 0, host.etcd)
    host.processes.stop(map(plane.part_name, FLAGS))
    return plane


def clean_up(host: Host, namespace: str, name: str) -> None:
    """Remove everything of a vCluster. Raises KubeError when etcd does not answer."""
    plane = stop(host, namespace, name)
    host.etcd.delete(plane.etcd_prefix)
    shutil.rmtree(plane.directory, ignore_errors=True)
