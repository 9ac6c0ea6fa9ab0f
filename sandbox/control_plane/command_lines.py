"""The command lines of a small Kubernetes control plane: the host's, or one vCluster's."""

import datetime
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from sandbox.control_plane.certificates import ORGANIZATION, Authority
from sandbox.control_plane.etcd import Etcd
from sandbox.control_plane.kube_api import AdminApi
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import LEAN, ONE_OF_MANY, ServerProcess

# Each process, and the flags that it has in every control plane.
FLAGS: Final = yaml.safe_load(Path(__file__).with_name("flags.yaml").read_text(encoding="utf-8"))
# How long a pod takes to start, in seconds; at once where unset. For comparisons in which the time
# that real pods take counts: a script waits for one team after the other.
POD_SECONDS: Final = "KAI_FLEET_POD_SECONDS"
POD_END_SECONDS: Final = 2.0  # with it: what a program that heeds SIGTERM takes with its node
# The controller manager's certificate. Each of its controllers has an account of its own, so that
# admission policies judge what they write, as on any cluster.
CONTROLLERS: Final = "controller-manager"
STAGES: Final = Path(__file__).with_name("kwok_stages.yaml")


@dataclass(frozen=True)
class ControlPlane:
    """One API server and what makes it a cluster.

    `name` is empty for the host. `directory` is where its certificates and kubeconfig are;
    `names` are its DNS names; `node_ports` is the range that it hands out; `api_server_args`
    replace flags of the same name, as in vCluster (MergeArgs).
    """

    name: str
    directory: Path
    address: str
    port: int
    etcd: Etcd
    names: tuple[str, ...] = ()
    node_ports: range | None = None
    api_server_args: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        """The URL of its API server."""
        return f"https://{self.address}:{self.port}"

    @property
    def etcd_prefix(self) -> str:
        """The prefix of its keys in etcd."""
        return f"/vclusters/{self.name}" if self.name else "/registry"

    @property
    def authority(self) -> Authority:
        """The issuer of its certificates."""
        return Authority(self.directory / "certs")

    @property
    def kubeconfig(self) -> Path:
        """An administrator's kubeconfig, for the parts of this control plane."""
        return self.directory / "kubeconfig"

    @property
    def _controllers_kubeconfig(self) -> Path:
        return self.directory / f"{CONTROLLERS}.kubeconfig"

    def prepare(self, context: str) -> None:
        """Write certificates, kubeconfigs and KWOK's stages; what exists and fits stays."""
        self.authority.ensure(f"kai-fleet sandbox {self.name or 'host'}")
        if self.name:
            self.authority.ensure_split()
            self.authority.client("apiserver-kubelet-client", "kubelet-client", "system:masters")
        self.authority.server("server", self._server_names())
        self.authority.client("admin", "kubernetes-admin", "system:masters")
        self.authority.client(CONTROLLERS, f"system:kube-{CONTROLLERS}", ORGANIZATION)
        self.authority.server("service-accounts", ["service-accounts"])  # signs tokens
        self._write(self.kubeconfig, self.authority.kubeconfig("admin", self.server, context))
        controllers = self.authority.kubeconfig(CONTROLLERS, self.server, context)
        self._write(self._controllers_kubeconfig, controllers)
        ensure_stages(self.directory)

    @staticmethod
    def _write(file: Path, kubeconfig: str) -> None:
        if not file.exists() or file.read_text() != kubeconfig:
            file.touch(mode=0o600)
            file.write_text(kubeconfig)

    def renew(self) -> None:
        """Drop the certificates that end within 90 days; `prepare` issues them again."""
        for name in ("admin", CONTROLLERS, "server"):
            self.authority.drop(name, datetime.timedelta(days=90))

    def drop_issued(self, names: Iterable[str]) -> None:
        """Drop these certificates; `prepare` issues them again."""
        for name in names:
            self.authority.path(name).certificate.unlink(missing_ok=True)

    def api(self) -> AdminApi:
        """An administrator's client of its API server."""
        return AdminApi.of_kubeconfig(file=str(self.kubeconfig))

    def api_server(self, tools: Mapping[str, Path]) -> ServerProcess:
        """kube-apiserver."""
        etcd = self.etcd.authority.path("client")
        server = self.authority.path("server")
        tokens = self.authority.path("service-accounts")
        flags = {
            "etcd-servers": self.etcd.server,
            "etcd-cafile": self.etcd.authority.pair.certificate,
            "etcd-certfile": etcd.certificate,
            "etcd-keyfile": etcd.key,
            "etcd-prefix": self.etcd_prefix,
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": self.port,
            "tls-cert-file": server.certificate,
            "tls-private-key-file": server.key,
            "client-ca-file": self.authority.clients.certificate,
            "service-account-key-file": tokens.certificate,
            "service-account-signing-key-file": tokens.key,
        }
        if self.name:
            # There are many vClusters with few clients each: the watch caches, one for each kind of
            # object, take more than half of the CPU time of an idle API server.
            flags["watch-cache"] = "false"
        if self.node_ports is not None:
            flags["service-node-port-range"] = f"{self.node_ports[0]}-{self.node_ports[-1]}"
        return self._part(
            "kube-apiserver", tools, flags, (self.address, self.port), self.api_server_args
        )

    def others(self, tools: Mapping[str, Path]) -> Iterable[ServerProcess]:
        """The clients of the API server: controllers, scheduler, and KWOK in place of kubelets."""
        # The kubeconfig has the address too; named here, a new one makes new processes.
        client = {"kubeconfig": self.kubeconfig, "master": self.server}
        tokens = self.authority.path("service-accounts")
        controllers = {
            "kubeconfig": self._controllers_kubeconfig,
            "master": self.server,
            "service-account-private-key-file": tokens.key,
            "root-ca-file": self.authority.pair.certificate,
        }
        yield self._part("kube-controller-manager", tools, controllers)
        yield self._part("kube-scheduler", tools, client)
        yield self._part("kwok", tools, client | {"config": stages(self.directory)})

    def part_name(self, kind: str) -> str:
        """The name of one of its processes."""
        return f"vcluster-{self.name}-{kind}" if self.name else kind

    def _part(
        self,
        kind: str,
        tools: Mapping[str, Path],
        flags: Mapping[str, object],
        listens: tuple[str, int] | None = None,
        extra: tuple[str, ...] = (),
    ) -> ServerProcess:
        name = self.part_name(kind)
        written = {argument.partition("=")[0].removeprefix("--") for argument in extra}
        listed = {
            flag: ",".join(value) if isinstance(value, list) else value
            for flag, value in {**FLAGS[kind], **flags}.items()
            if flag not in written
        }
        own = (f"--{flag}={value}" for flag, value in listed.items())
        command = (str(tools[kind]), *own, *extra)
        log = self.etcd.directory / "logs" / f"{name}.log"
        return ServerProcess(name, command, log, ONE_OF_MANY if self.name else LEAN, listens)

    def _server_names(self) -> list[str]:
        inner = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1"]
        return sorted({"localhost", "127.0.0.1", self.address, *inner, *self.names})


def host_plane(directory: Path, ports: Ports) -> ControlPlane:
    """The control plane of the host cluster of the sandbox in `directory`."""
    etcd = Etcd(directory, ports)
    return ControlPlane("", directory, "127.0.0.1", ports.api, etcd, node_ports=ports.node_ports)


def stages(directory: Path) -> Path:
    """The file of KWOK's stages for a control plane in `directory`."""
    return directory / STAGES.name if os.environ.get(POD_SECONDS) else STAGES


def ensure_stages(directory: Path) -> None:
    """Write that file where pods are to take time."""
    if not (setting := os.environ.get(POD_SECONDS)):
        return
    documents = list(yaml.safe_load_all(STAGES.read_text(encoding="utf-8")))
    delays = {"pod-running": float(setting), "pod-gone": POD_END_SECONDS}
    for stage in documents:
        if delay := delays.get(stage["metadata"]["name"]):
            stage["spec"]["delay"] = {"durationMilliseconds": int(delay * 1000)}
    stages(directory).write_text(yaml.safe_dump_all(documents), encoding="utf-8")
