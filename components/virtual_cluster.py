"""One vCluster: its namespace, its chart, and a kubeconfig that works from where Pulumi runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes

from components.charts import chart_args
from components.cluster_access import ClusterAccess
from components.cluster_secret import secret_data
from components.kubeconfig import NoKubeconfig, of_secret
from components.past import Past
from components.releases import VCLUSTER_REPOSITORY, vcluster
from components.settings.teams import Access, Mode
from components.team_stack_access import namespace_binding
from components.vcluster_values import vcluster_values

PROBE: Final = "components/probes/run vcluster"
END_PODS: Final = "components/probes/run pods"


@dataclass
class VirtualClusterArgs:
    """`host` is the cluster it runs on. The name must be unique there (V9): vCluster takes pods
    of another vCluster of the same name for its own. `ready_timeout` is in seconds. `own_stack`:
    a team stack declares it, perhaps with an account that has rights in its namespace only.
    """

    host: ClusterAccess
    version: str
    mode: Mode = "default"
    node_pool: Mapping[str, str] = field(default_factory=dict)
    access: Access = field(default_factory=Access)
    kubernetes_version: str | None = None
    chart: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    licensed: bool = False
    ready_timeout: int = 600
    past: Past = field(default_factory=Past)
    own_stack: bool = False


class VirtualCluster(pulumi.ComponentResource):
    """A vCluster named after the component, in a namespace `team-NAME` that it owns.

    Owning the namespace is what makes removal whole: the chart leaves its volume and, in host
    mode, every pod behind (V4, V10, V17). Between the two the pods are told to end: a namespace
    with pods takes Kubernetes twice as long. Declare what lives inside with `provider` and
    `deleted_with=release`: it goes with the vCluster, without asking its API (P1).
    Raises UnknownVersion.
    """

    namespace: str
    release: kubernetes.helm.v3.Release
    server: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    inside: ClusterAccess
    provider: kubernetes.Provider

    def __init__(
        self, name: str, args: VirtualClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:VirtualCluster", name, None, opts)
        version = vcluster(args.version)
        self.namespace = f"team-{name}"
        child = pulumi.ResourceOptions(parent=self)
        namespace = kubernetes.core.v1.Namespace(
            f"{name}-namespace",
            metadata={"name": self.namespace, "labels": {"kai-fleet/team": name}},
            opts=pulumi.ResourceOptions.merge(
                child, pulumi.ResourceOptions(depends_on=opts.depends_on if opts else None)
            ),
        )
        before: list[pulumi.Resource] = [namespace]
        if args.own_stack:
            before.append(namespace_binding(f"{name}-rights", name, namespace, child))
        # Nothing while the team is there; when it goes, between the release and the namespace.
        pods = command.local.Command(
            f"{name}-pods",
            delete=END_PODS,
            environment={**args.host.environment(), "PODS_NAMESPACE": self.namespace},
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=before)),
        )
        self.release = kubernetes.helm.v3.Release(
            f"{name}-release",
            **chart_args(
                "vcluster",
                version.chart_version,
                override=args.chart,
                repository=VCLUSTER_REPOSITORY,
            ),
            name=name,
            namespace=self.namespace,
            values=vcluster_values(
                version,
                name=name,
                namespace=self.namespace,
                mode=args.mode,
                node_pool=args.node_pool,
                access=args.access,
                kubernetes_version=args.kubernetes_version,
                licensed=args.licensed,
                overrides=args.values,
            ),
            timeout=args.ready_timeout,
            skip_await=True,  # the step below waits, and says for what
            opts=pulumi.ResourceOptions.merge(child, pulumi.ResourceOptions(depends_on=pods)),
        )
        # Helm returns long before the API answers and the Secret is there (V11).
        ready = command.local.Command(
            f"{name}-ready",
            create=PROBE,
            environment={
                **args.host.environment(),
                "VCLUSTER_NAME": name,
                "VCLUSTER_NAMESPACE": self.namespace,
                "VCLUSTER_VERSION": version.version,
                "VCLUSTER_ACCESS": args.access.type,
                "VCLUSTER_HOST": args.access.host or "",
                "VCLUSTER_NODE_POOL": ",".join(f"{k}={v}" for k, v in args.node_pool.items()),
                "VCLUSTER_TIMEOUT": str(args.ready_timeout),
            },
            triggers=[self.release.id, *args.past.again(f"{name}-ready", f"{name}-release")],
            logging=command.local.Logging.STDERR,  # stdout is the server's address
            opts=child,
        )
        # Where the host's kubeconfig is a secret, so is all that comes of it; an address is none.
        self.server = pulumi.Output.unsecret(ready.stdout)
        data = secret_data(args.host, self.namespace, f"vc-{name}", after=self.server, parent=self)
        self.kubeconfig = pulumi.Output.all(data, self.server).apply(
            lambda known: _kubeconfig(name, self.namespace, *known)
        )
        self.inside = ClusterAccess(f"{args.host.name}/{name}", kubeconfig=self.kubeconfig)
        self.provider = self.inside.provider(name, child)
        self.register_outputs({"namespace": self.namespace, "server": self.server})


def _kubeconfig(name: str, namespace: str, data: dict[str, str], server: str) -> str:
    try:
        return of_secret(data, server)
    except NoKubeconfig as why:
        raise pulumi.RunError(
            f"Secret vc-{name} of namespace {namespace} {why}; vCluster writes it when it starts:"
            f" kubectl -n {namespace} delete secret vc-{name}, then kubectl -n {namespace} rollout"
            f" restart statefulset {name}"
        ) from None
