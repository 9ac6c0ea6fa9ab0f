"""The sandbox's supervisor: a vCluster for every control plane of vCluster's chart there.

Run by `sandbox.lifecycle` as `python -m sandbox.vcluster.supervisor DIRECTORY`, one for a sandbox.
Started again, it finds the control planes that run and goes on with them.
"""

import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

from sandbox import directory as directories
from sandbox.control_plane import volumes
from sandbox.control_plane.command_lines import host_plane
from sandbox.control_plane.kube_api import KubeError
from sandbox.control_plane.ports import Ports
from sandbox.kai import kai_operator
from sandbox.kai.binder import KaiBinder
from sandbox.vcluster.host import Host, Name, log
from sandbox.vcluster.vcluster import SandboxVcluster, clean_up

_POLL_SECONDS: Final = 0.5
_ROUND_SECONDS: Final = 1.5


class Supervisor:
    """Starts and stops vClusters; runs KAI's stand-ins and the provisioner on the host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._vclusters: dict[Name, SandboxVcluster] = {}

    def run(self, directory: Path) -> None:
        """Run until the process is ended."""
        threading.Thread(target=self._run_host, daemon=True, name="host").start()
        began = False
        while True:
            try:
                self._host.read()
                if not began:
                    self._remove_forgotten(directory)
                    log("watching for vClusters")
                    (directory / "supervisor-ready").touch()
                    began = True
                self._reconcile()
            except KubeError as why:
                log(f"host: {why}")
            time.sleep(_POLL_SECONDS)

    def _reconcile(self) -> None:
        """Start and remove vClusters to match the host's StatefulSets and Deployments."""
        planes = self._host.control_planes
        uids = {name: plane["metadata"]["uid"] for name, plane in planes.items()}
        for name, vcluster in list(self._vclusters.items()):
            if not vcluster.is_alive():
                del self._vclusters[name]  # removed, and cleaned up after
            elif uids.get(name) != vcluster.uid:
                vcluster.remove()
            else:
                vcluster.notice(self._host.versions(name[0]))
        for name in uids.keys() - self._vclusters:
            log(f"vCluster {'/'.join(name)}: starting")
            self._vclusters[name] = SandboxVcluster(self._host, *name, uids[name])
            self._vclusters[name].start()

    def _remove_forgotten(self, directory: Path) -> None:
        """Clean up after vClusters that went while no supervisor ran."""
        for folder in (directory / "vclusters").iterdir():
            namespace, _, name = folder.name.partition(".")
            if (namespace, name) not in self._host.control_planes:
                clean_up(self._host, namespace, name)

    def _run_host(self) -> None:
        api = self._host.api
        binder = KaiBinder(api)
        while True:
            try:
                volumes.provide(api)
                kai_operator.play(api)
                binder.play()
            except KubeError as why:
                log(f"host: {why}")
            time.sleep(_ROUND_SECONDS)


def main() -> None:
    """Supervise the sandbox in the directory that is the only argument."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    directory = Path(sys.argv[1])
    state = directories.read_state(directory)
    if state is None:
        sys.exit(f"{directory} holds no started sandbox")
    plane = host_plane(directory, Ports(state.base_port))
    Supervisor(Host(plane, state.tool_paths())).run(directory)


if __name__ == "__main__":
    main()
