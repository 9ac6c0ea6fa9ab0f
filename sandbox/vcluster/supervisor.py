"""The sandbox's supervisor: a vCluster for every StatefulSet of vCluster's chart on the host.

Run by `sandbox.lifecycle` as `python -m sandbox.vcluster.supervisor DIRECTORY`, one for a sandbox.
Started again, it finds the control planes that run and goes on with them.
"""

from __future__ import annotations

import datetime
import signal
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

from sandbox import directory as directories
from sandbox.control_plane import volumes
from sandbox.control_plane.command_lines import ControlPlane, host_plane
from sandbox.control_plane.kube_api import KubeError, Object, Watch
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import Processes
from sandbox.kai import kai_operator
from sandbox.kai.binder import KaiBinder
from sandbox.nodes.fake_nodes import NODES
from sandbox.vcluster.syncer import RUNTIME_CLASSES
from sandbox.vcluster.vcluster import Host, Vcluster, clean_up

ROUND_SECONDS: Final = 1.5
SELECTOR: Final = "app=vcluster"
EVERYWHERE: Final = ""  # the namespace of what has none: nodes, runtime classes


class Supervisor:
    """Starts and stops vClusters, and plays KAI's operator and the provisioner on the host."""

    def __init__(self, directory: Path, plane: ControlPlane, tools: dict[str, Path]) -> None:
        self.directory = directory
        self.api = plane.api()
        self._woken = threading.Event()
        self._vclusters: dict[tuple[str, str], Vcluster] = {}
        self._stateful_sets = self._watch("/apis/apps/v1/statefulsets", SELECTOR)
        self._services = self._watch("/api/v1/services", SELECTOR)
        self._secrets = self._watch("/api/v1/secrets", SELECTOR)
        self._nodes = self._watch(NODES)
        self._classes = self._watch(RUNTIME_CLASSES)
        self._host = Host(
            api=self.api,
            etcd=plane.etcd,
            processes=Processes(directory),
            tools=tools,
            say=_log,
            secret=lambda space, name: self._secrets.objects().get((space, name)),
            service=lambda space, name: self._services.objects().get((space, name)),
            nodes=lambda: list(self._nodes.objects().values()),
            runtime_classes=lambda: list(self._classes.objects().values()),
            running=self._running,
            started=self._started,
            taken=self._taken,
            vclusters=lambda: len(self._vclusters),
        )

    def _watch(self, path: str, selector: str = "") -> Watch:
        watch = Watch(self.api, path, self._woken.set, selector)
        watch.start()
        return watch

    def run(self) -> None:
        """Look after everything until the process is ended."""
        for watch in (self._stateful_sets, self._services, self._secrets, self._nodes):
            watch.synced.wait()
        self._classes.synced.wait()
        threading.Thread(target=self._look_after_host, daemon=True, name="host").start()
        self._remove_forgotten()
        _log("watching for vClusters")
        (self.directory / "supervisor-ready").touch()
        while True:
            self._follow()
            self._woken.wait(ROUND_SECONDS)
            self._woken.clear()

    def _follow(self) -> None:
        """Have exactly the vClusters whose StatefulSets there are."""
        wanted = {_vcluster(item) for item in self._stateful_sets.objects().values()}
        versions = self._versions()
        for key, vcluster in list(self._vclusters.items()):
            if not vcluster.is_alive():
                del self._vclusters[key]  # removed, and cleaned up after
            elif key not in wanted:
                vcluster.remove()
            else:
                vcluster.see((versions[EVERYWHERE], versions[key[0]]))
        for key in wanted - set(self._vclusters):
            _log(f"vCluster {'/'.join(key)}: starting")
            self._vclusters[key] = Vcluster(self._host, *key)
            self._vclusters[key].start()

    def _versions(self) -> defaultdict[str, list[str]]:
        """By namespace, the versions of what vClusters are made of."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        in_namespaces = (self._stateful_sets, self._services, self._secrets)
        for watch in (*in_namespaces, self._nodes, self._classes):
            for (namespace, _), item in watch.objects().items():
                found[namespace].append(item["metadata"]["resourceVersion"])
        return found

    def _remove_forgotten(self) -> None:
        """Clean up after vClusters that went while no supervisor ran."""
        wanted = {_vcluster(item) for item in self._stateful_sets.objects().values()}
        for folder in (self.directory / "vclusters").iterdir():
            namespace, _, name = folder.name.partition(".")
            if (namespace, name) not in wanted:
                clean_up(self._host.etcd, self._host.processes, namespace, name)

    def _look_after_host(self) -> None:
        binder = KaiBinder(self.api)
        while True:
            try:
                volumes.provide(self.api)
                kai_operator.play(self.api)
                binder.play()
            except KubeError as why:
                _log(f"host: {why}")
            time.sleep(ROUND_SECONDS)

    def _running(self, namespace: str, name: str) -> bool:
        """Whether the pod of a vCluster is ready."""
        found = self._stateful_sets.objects().get((namespace, name), {})
        return bool(found.get("status", {}).get("readyReplicas"))

    def _started(self, namespace: str, name: str) -> tuple[str, str]:
        """The revision of a vCluster's pod, once it is the one that is wanted, and its version."""
        found = self._stateful_sets.objects().get((namespace, name), {})
        chart = found.get("metadata", {}).get("labels", {}).get("chart", "")
        revision = found.get("status", {}).get("currentRevision", "")
        return revision, f"v{chart.removeprefix('vcluster-')}"

    def _taken(self) -> set[str]:
        endpoints = [vcluster.endpoint for vcluster in list(self._vclusters.values())]
        return {endpoint.key for endpoint in endpoints if endpoint is not None}


def _vcluster(stateful_set: Object) -> tuple[str, str]:
    metadata = stateful_set["metadata"]
    return metadata["namespace"], metadata["name"]


def _log(text: str) -> None:
    now = datetime.datetime.now().strftime("%H:%M:%S")
    print(f"{now} {text}", flush=True)


def main() -> None:
    """Supervise the sandbox in the directory that is the only argument."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    directory = Path(sys.argv[1])
    state = directories.read_state(directory)
    if state is None:
        sys.exit(f"{directory} holds no started sandbox")
    ports = Ports(state.base_port)
    Supervisor(directory, host_plane(directory, ports), state.tool_paths()).run()


if __name__ == "__main__":
    main()
