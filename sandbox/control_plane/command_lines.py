"""The command lines of a small Kubernetes control plane: the host's, or one vCluster's."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sandbox.control_plane import pod_stages
from sandbox.control_plane.certificates import Authority, Pair
from sandbox.control_plane.etcd import Etcd
from sandbox.control_plane.kube_api import Api
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import LEAN, ONE_OF_MANY, Part

# What the program's resources and the charts need; the rest costs memory and watches.
CONTROLLERS: Final = (
    "clusterrole-aggregation-controller",
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
    "validatingadmissionpolicy-status-controller",
)
# Each waits for a controller that is not among those: the taint that the node lifecycle
# controller lifts, the finalizer that the volume protection controllers remove.
_ADMISSION_OFF: Final = "TaintNodesByCondition,StorageObjectInUseProtection"


@dataclass(frozen=True)
class ControlPlane:
    """One API server and what makes it a cluster.

    `name` is empty for the host. `directory` is where its certificates and kubeconfig are;
    `names` are what clients call it besides its address; `node_ports` is what it hands out.
    """

    name: str
    directory: Path
    address: str
    port: int
    etcd: Etcd
    names: tuple[str, ...] = ()
    node_ports: range | None = None

    @property
    def server(self) -> str:
        """The address on which it listens."""
        return f"https://{self.address}:{self.port}"

    @property
    def etcd_prefix(self) -> str:
        """Where its keys are."""
        return f"/vclusters/{self.name}" if self.name else "/registry"

    @property
    def authority(self) -> Authority:
        """What its certificates come from."""
        return Authority(self.directory / "certs")

    @property
    def kubeconfig(self) -> Path:
        """An administrator's, for the parts of this control plane."""
        return self.directory / "kubeconfig"

    @property
    def admin(self) -> Pair:
        """The administrator's certificate."""
        return self.authority.path("admin")

    def prepare(self, context: str) -> None:
        """Make certificates, the kubeconfig and KWOK's stages; what is there and fits stays."""
        self.authority.ensure(f"kai-fleet sandbox {self.name or 'host'}")
        self.authority.server("server", self._server_names())
        self.authority.client("admin", "kubernetes-admin", "system:masters")
        self.authority.server("service-accounts", ["service-accounts"])  # signs tokens
        text = self.kubeconfig_text(context, self.server)
        if not self.kubeconfig.exists() or self.kubeconfig.read_text() != text:
            self.kubeconfig.touch(mode=0o600)
            self.kubeconfig.write_text(text)
        pod_stages.ensure(self.directory)

    def renew(self) -> None:
        """Drop the certificates that end within 90 days; `prepare` makes them anew."""
        for name in ("admin", "server"):
            self.authority.drop(name, datetime.timedelta(days=90))

    def api(self) -> Api:
        """A client of it."""
        return Api.of_context(str(self.kubeconfig), None)

    def kubeconfig_text(self, context: str, server: str) -> str:
        """A kubeconfig of the administrator's that holds everything it needs."""
        return self.authority.kubeconfig("admin", server, context)

    def api_server(self, tools: Mapping[str, Path]) -> Part:
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
            "etcd-count-metric-poll-period": "0",
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": self.port,
            # An address on loopback is not one that Endpoints may hold.
            "endpoint-reconciler-type": "none",
            "tls-cert-file": server.certificate,
            "tls-private-key-file": server.key,
            "client-ca-file": self.authority.pair.certificate,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": tokens.certificate,
            "service-account-signing-key-file": tokens.key,
            "service-cluster-ip-range": "10.96.0.0/16",
            "authorization-mode": "RBAC",
            "disable-admission-plugins": _ADMISSION_OFF,
            "allow-privileged": "true",
            "enable-priority-and-fairness": "false",
            "feature-gates": "APIServerIdentity=false",
            "profiling": "false",
        }
        if self.name:
            # Few ask a vCluster, and there are many: the cache in front of etcd, of which each kind
            # of object has one, is more than half of the time that an idle API server takes.
            flags["watch-cache"] = "false"
        if self.node_ports is not None:
            flags["service-node-port-range"] = f"{self.node_ports[0]}-{self.node_ports[-1]}"
        part = self._part("kube-apiserver", tools, flags)
        return replace(part, listens=(self.address, self.port))

    def others(self, tools: Mapping[str, Path]) -> Iterable[Part]:
        """What needs the API server: controllers, scheduler, and KWOK in place of kubelets."""
        # The kubeconfig has the address too; named here, a new one makes new processes.
        client = {"kubeconfig": self.kubeconfig, "master": self.server}
        common = client | {
            "leader-elect": "false",
            "secure-port": "0",
            "kube-api-qps": "200",
            "kube-api-burst": "400",
            "profiling": "false",
        }
        yield self._part(
            "kube-controller-manager",
            tools,
            common
            | {
                "controllers": ",".join(CONTROLLERS),
                "service-account-private-key-file": self.authority.path("service-accounts").key,
                "root-ca-file": self.authority.pair.certificate,
            },
        )
        yield self._part("kube-scheduler", tools, common)
        yield self._part(
            "kwok",
            tools,
            client
            | {
                "config": pod_stages.played(self.directory),
                "manage-all-nodes": "true",
                "node-ip": "127.0.0.1",
                "node-lease-duration-seconds": "0",  # nothing looks at them
            },
        )

    def part_names(self) -> list[str]:
        """Every process of it."""
        kinds = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
        return [self._part_name(kind) for kind in kinds]

    def _part(
        self,
        kind: str,
        tools: Mapping[str, Path],
        flags: Mapping[str, object],
    ) -> Part:
        name = self._part_name(kind)
        return Part(
            name,
            (str(tools[kind]), *(f"--{flag}={value}" for flag, value in flags.items())),
            self.etcd.directory / "logs" / f"{name}.log",
            ONE_OF_MANY if self.name else LEAN,
        )

    def _part_name(self, kind: str) -> str:
        return f"vcluster-{self.name}-{kind}" if self.name else kind

    def _server_names(self) -> list[str]:
        inner = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1"]
        return sorted({"localhost", "127.0.0.1", self.address, *inner, *self.names})


def host_plane(directory: Path, ports: Ports) -> ControlPlane:
    """The control plane of the host cluster of the sandbox in `directory`."""
    return ControlPlane(
        name="",
        directory=directory,
        address="127.0.0.1",
        port=ports.api,
        etcd=Etcd(directory, ports),
        node_ports=ports.node_ports,
    )
