"""VirtualCluster: a vCluster's release, the wait until its API answers, and its kubeconfig."""

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes
from pulumi.runtime import is_dry_run

from kai_fleet import deployed
from kai_fleet.argument_check import Allowed, check
from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import (
    ClusterConnection,
    connection_of,
    kubernetes_provider,
    provider_options,
)
from kai_fleet.inputs import LEVELS, RegistryArgs, TolerationArgs, joined, or_last, resolved
from kai_fleet.installed_chart import hold_to
from kai_fleet.names import IDENTITY, VIRTUAL_CLUSTER
from kai_fleet.options import after, chart_args, child_of, component_options, registry_secret
from kai_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER_REPOSITORY, unknown_version, vcluster
from kai_fleet.settings.sections.access import OF_TEAM
from kai_fleet.vcluster_kubeconfig import ROLES, KubeconfigSecret, declare_groups
from kai_fleet.vcluster_values import AUTHORITY, authority_name, vcluster_values

ALLOWED: Final = Allowed(
    choices={
        "mode": ("virtual", "host", "default"),
        "isolation": LEVELS,
        "access.type": ("LoadBalancer", "NodePort", "ClusterIP", "Ingress", "Gateway"),
        "store.type": ("embedded", "etcd", "embeddedEtcd", "external"),
        "groups": ROLES,
    },
    # Arguments that a type of access or store requires, because its address comes from them.
    needs={
        "NodePort": ("host",),
        "Ingress": ("host",),
        "Gateway": ("host", "gateway"),
        "external": ("data_source",),
    },
)


class AccessArgs(TypedDict):
    """How the vCluster's API is reached from where Pulumi runs."""

    type: NotRequired[str]
    """`LoadBalancer`, `NodePort`, `ClusterIP`, `Ingress` or `Gateway`. Default: `LoadBalancer`."""
    host: NotRequired[pulumi.Input[str]]
    """Host name or address of the API; NodePort: of a node. Default: the load balancer's."""
    port: NotRequired[pulumi.Input[float]]
    """NodePort: the node port; else the controller's port. Default: a free node port; 443."""
    class_name: NotRequired[pulumi.Input[str]]
    """Ingress: its IngressClass. Default: the cluster's default class."""
    gateway: NotRequired[pulumi.Input[str]]
    """Gateway: NAMESPACE/NAME of one with a TLS listener in mode Passthrough. Required there."""
    load_balancer_class: NotRequired[pulumi.Input[str]]
    """LoadBalancer: its loadBalancerClass. Default: the cluster's default."""
    load_balancer_source_ranges: NotRequired[list[pulumi.Input[str]]]
    """LoadBalancer: networks (CIDRs) that may reach it. Default: every address."""
    annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the API's Service, Ingress or TLSRoute. Default: none."""


class StoreArgs(TypedDict):
    """The backing store of a vCluster. Its type cannot be changed later."""

    type: NotRequired[str]
    """`embedded` (SQLite), `etcd`; with a licence `embeddedEtcd`, `external`. Default: `embedded`.
    """
    replicas: NotRequired[pulumi.Input[float]]
    """etcd: number of members, odd. Default: 1."""
    data_source: NotRequired[pulumi.Input[str]]
    """external: URL with password, kept as a secret: `postgres://…`. Required there."""


class OidcArgs(TypedDict):
    """An OpenID Connect provider whose tokens the vCluster's API server accepts."""

    issuer: pulumi.Input[str]
    """Issuer URL, as in claim `iss` of its tokens: `https://id.example.com`."""
    client_id: pulumi.Input[str]
    """Client ID, as in claim `aud` of its tokens: `kubernetes`."""
    username_claim: NotRequired[pulumi.Input[str]]
    """Claim with the user name, which gets the prefix `oidc:`. Default: `sub`."""
    groups_claim: NotRequired[pulumi.Input[str]]
    """Claim with the groups, which get the prefix `oidc:`. Default: `groups`."""
    ca: NotRequired[pulumi.Input[str]]
    """Certificate authority of the issuer, PEM. Default: public authorities."""


class VirtualClusterArgs(TypedDict):
    """A vCluster in an existing namespace."""

    namespace: NotRequired[pulumi.Input[str]]
    """Its namespace: `name` of a TeamNamespace. Default: `team-` and the component's name."""
    version: NotRequired[str]
    """Version of vCluster, from the release table: `v0.36.1`. Default: the newest tested one."""
    untested: NotRequired[bool]
    """Treat a version newer than the table like the newest of its line. Default: false."""
    chart: NotRequired[str]
    """Another chart: oci://…, https://… or a path. Default: vCluster's own."""
    chart_account: NotRequired[RegistryArgs]
    """Credentials to pull `chart`. Default: none."""
    mode: NotRequired[str]
    """Scheduler: `virtual`, inside it; `host`, the host's KAI; `default`. Default: `virtual`."""
    node_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the host nodes that it syncs and uses. Default: every node."""
    control_pool: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the nodes for its control plane. Default: every node."""
    kubernetes_version: NotRequired[pulumi.Input[str]]
    """Kubernetes inside: `v1.34.4`. Default: that of the version's chart."""
    access: NotRequired[AccessArgs]
    """How its API is reached. Default: by a LoadBalancer Service."""
    replicas: NotRequired[pulumi.Input[float]]
    """Number of pods of its control plane; more than 1 needs another store. Default: 1."""
    store: NotRequired[StoreArgs]
    """Its backing store. Default: SQLite on its volume."""
    storage_class: NotRequired[pulumi.Input[str]]
    """StorageClass of its volume, or of each etcd's; immutable. Default: the cluster's default."""
    size: NotRequired[pulumi.Input[str]]
    """Size of its volume, or of each etcd's: `20Gi`; immutable. Default: `5Gi`, the chart's."""
    resources: NotRequired[dict[str, dict[str, pulumi.Input[str]]]]
    """`requests` and `limits` of its control plane, as in a pod's spec. Default: the chart's."""
    oidc: NotRequired[OidcArgs]
    """Identity provider whose users log in. Default: none."""
    groups: NotRequired[dict[str, str]]
    """Role of each of its groups in namespace `default`: `view`, `edit`, `admin`. Default: none."""
    isolation: NotRequired[str]
    """That of its TeamNamespace: `baseline`, `restricted` or `off`. Default: `baseline`."""
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints that its control plane and all synced pods tolerate. Default: none."""
    affinity: NotRequired[dict[str, Any]]
    """Affinity of its control plane and DNS, as in a pod's spec. Default: none."""
    image_pull_secrets: NotRequired[list[pulumi.Input[str]]]
    """Image pull Secrets in the namespace, for its own and all synced pods. Default: none."""
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials by registry, for Secret `kai-fleet-team-registries`. Default: none."""
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of the objects of its chart. Default: none."""
    annotations: NotRequired[dict[str, pulumi.Input[str]]]
    """Annotations of the chart's objects, without pods and ServiceAccounts. Default: none."""
    licensed: NotRequired[bool]
    """Use the Pro image, which needs a vCluster licence. Default: false, the open source image."""
    values: NotRequired[dict[str, Any]]
    """Values of the chart, merged over all others. Default: none."""
    ready_timeout: NotRequired[int]
    """Seconds that an update waits until its API answers. Default: 600."""
    stack_key: NotRequired[str]
    """Key of a stack file that messages name: `kai-fleet:teams.ml`. Default: the component."""
    kubeconfig: NotRequired[pulumi.Input[str]]
    """Content of the host's kubeconfig, kept as a secret. Default: the provider in the options."""
    context: NotRequired[str]
    """Context of your kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""


class VirtualCluster(pulumi.ComponentResource):
    """A vCluster named after the component, in an existing namespace.

    The name must be unique on the host: vCluster takes pods of another vCluster of the same name
    for its own. Uninstalling the chart leaves the volume and, in host mode, every pod; these are
    deleted after the release. In Python, declare objects inside with the options of `inside`.

    Raises:
        pulumi.RunError: arguments that it does not take, or a version that is not in the release
            table.
    """

    namespace: pulumi.Output[str]
    """Its namespace on the host."""
    server: pulumi.Output[str]
    """URL of its API server: `https://…`."""
    kubeconfig: pulumi.Output[str]
    """Administrator's kubeconfig, a secret."""
    cluster: pulumi.Output[str]
    """Its identity, the UID of namespace kube-system: a recreated vCluster has a new one."""
    probe_environment: pulumi.Output[dict[str, str]]
    """Argument `probe_environment` of a KaiScheduler inside it."""

    def __init__(
        self, name: str, args: VirtualClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(VIRTUAL_CLUSTER, name, None, component_options(opts))
        component, version = f"VirtualCluster {name}", args.get("version", DEFAULT_VCLUSTER)
        of_version = partial(unknown_version, vcluster, args)
        check(component, VirtualClusterArgs, args, ALLOWED, of_version)
        release = vcluster(version, untested=bool(args.get("untested")))
        namespace, timeout = args.get("namespace", f"team-{name}"), args.get("ready_timeout", 600)
        self.namespace = pulumi.Output.from_input(namespace)
        host = connection_of(component, args)
        on_host: Any = provider_options(self, f"{name}-host", args)
        first = child_of(self, opts, **on_host)
        child = child_of(self, opts, ordered=False, **on_host)
        store, oidc, access = args.get("store", {}), args.get("oidc"), args.get("access", {})
        if "data_source" in store:
            store = {**store, "data_source": pulumi.Output.secret(store["data_source"])}
        values = vcluster_values(name, {**args, "store": store}, namespace, release)
        # At deletion, after the release: deletes what the release leaves in the namespace.
        clean_up: pulumi.Resource = command.local.Command(
            f"{name}-pods",
            delete=probes.command("vcluster clean-up"),
            environment={**host.environment(), "PODS_NAMESPACE": namespace, "PODS_VCLUSTER": name},
            opts=first,
        )
        before = [clean_up]
        if oidc and "ca" in oidc:
            trusted = kubernetes.core.v1.ConfigMap(
                f"{name}-oidc",
                metadata={"name": authority_name(name, oidc["ca"]), "namespace": namespace},
                data={AUTHORITY: oidc["ca"]},
                opts=first,
            )
            before.append(trusted)
        if registries := args.get("registries"):
            before.append(registry_secret(name, OF_TEAM, namespace, registries, first))
        helm = kubernetes.helm.v3.Release(
            f"{name}-release",
            **chart_args("vcluster", release.chart_version, args, VCLUSTER_REPOSITORY),
            name=name,
            namespace=namespace,
            values=values,
            # No chart of the table has hooks. On upgrades Pulumi's plugin reads the second option,
            # whatever its name says; on deletion it reads neither.
            disable_webhooks=True,
            disable_crd_hooks=True,
            timeout=timeout,
            skip_await=True,  # the step below waits, and says for what
            opts=after(child, *before),
        )
        hold_to(component, helm, "vcluster", release.chart_version)
        endpoint, port = access.get("host", ""), access.get("port", 443)
        access_type = access.get("type", "LoadBalancer")
        if access_type in ("Ingress", "Gateway"):
            endpoint = resolved(lambda host, port: f"{host}:{int(port)}", endpoint, port)
        secret = KubeconfigSecret(name, self, host, namespace, values, access_type, endpoint)
        found = secret.found(helm.id)
        pool = [joined("=", label) for label in args.get("node_pool", {}).items()]
        place: Any = {"PROBE_PLACE": args.get("stack_key", component), **host.environment()}
        # Helm returns long before the API answers and vCluster writes its Secret (V11), also where
        # other values restart it.
        ready = command.local.Command(
            f"{name}-ready",
            create=probes.command("vcluster wait"),
            environment={
                **place,
                "VCLUSTER_NAME": name,
                "VCLUSTER_NAMESPACE": namespace,
                "VCLUSTER_VERSION": release.version,
                "VCLUSTER_VALUES": resolved(_digest, values),
                "VCLUSTER_ACCESS": access_type,
                "VCLUSTER_HOST": endpoint,
                "VCLUSTER_NODE_POOL": joined(",", pool),
                "VCLUSTER_TIMEOUT": str(int(timeout)),
                "VCLUSTER_REFUSAL": found.apply(lambda found: found.refusal),
            },
            triggers=[helm.id, found.apply(lambda found: str(found.number))],
            logging=command.local.Logging.STDERR,  # stdout is the server's address and identity
            opts=child,
        )
        printed: pulumi.Output[str] = ready.stdout
        # Outputs of a command with a secret kubeconfig are secret; server and UID need not be.
        known = pulumi.Output.unsecret(printed).apply(json.loads)
        last = secret.last()
        if last and is_dry_run():
            # A wait that runs again prints only in the update. With an unknown address the preview
            # would show everything inside as replaced, which is so only for another vCluster.
            known = found.apply(lambda found: {**last, "uid": found.uid or last["uid"]})
        secret.warn_of_loss(known)
        self.server, self.cluster = known["server"], known["uid"]
        self.kubeconfig = secret.kubeconfig(self.server)
        environment: Any = {
            **place,
            "PROBE_SECRET": joined("", [namespace, f"/vc-{name}"]),
            "PROBE_SERVER": self.server,
            "PROBE_CLUSTER": self.cluster,
        }
        # Plain keys with an Output each: programs in other languages get it as one Output.
        self.probe_environment = environment
        # Stands for this vCluster. Another one, even at the same address, replaces it (S1), which
        # deletes it first, and with it all that is inside: the engine asks no cluster about that.
        deleted_first = child_of(self, opts, ordered=False, delete_before_replace=True)
        # Its place is here, too: outputs of a component are unknown after a run that failed in it.
        self.identity = command.local.Command(
            f"{name}{IDENTITY}",
            environment={"VCLUSTER_NAMESPACE": namespace, "VCLUSTER_SERVER": self.server},
            triggers=[self.cluster],
            opts=deleted_first,
        )
        # Never replaced: of a resource whose provider is gone the engine (v3.274) can refresh,
        # remove or create nothing, where the run that replaced them failed in its middle.
        always = child_of(self, opts, ordered=False, ignore_changes=["clusterIdentifier"])
        # Nor skipped where the wait failed: with --continue-on-error the engine (v3.274) panics
        # where it skips a provider that exists.
        last_kubeconfig = deployed.read().output("kubeconfigs", name)
        usable = or_last(self.kubeconfig, last_kubeconfig or f"# vCluster {name} is not ready")
        self.provider = kubernetes_provider(
            name,
            ClusterConnection(kubeconfig=pulumi.Output.secret(usable)),
            always,
            cluster_identifier=name,
            inside=True,
        )
        declare_groups(name, args.get("groups", {}), self.inside(self))
        self.register_outputs(
            {"namespace": namespace, "server": self.server, "cluster": self.cluster}
        )

    def inside(self, parent: pulumi.Resource) -> pulumi.ResourceOptions:
        """Options for resources inside, children of `parent`: deleted with the vCluster, without a
        call to its API, and created again in a new vCluster of this name.
        """
        return pulumi.ResourceOptions(
            parent=parent, provider=self.provider, deleted_with=self.identity
        )


def _digest(values: Mapping[str, Any]) -> str:
    """Eight characters that change with the values of a chart."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]
