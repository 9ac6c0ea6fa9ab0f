"""VirtualCluster: a vCluster's release, the wait until its API answers, and its kubeconfig."""

import json
from collections.abc import Mapping
from functools import partial

import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi.runtime import is_dry_run
from pulumi_command.local import Command, Logging
from pulumi_kubernetes.helm.v3 import Release

from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import (
    ClusterConnection,
    connection_of,
    kubernetes_provider,
    provider_from_args,
)
from kai_fleet.declaring.argument_check import Allowed, check
from kai_fleet.declaring.inputs import LEVELS, joined, or_last, resolved
from kai_fleet.declaring.options import child_options, component_options, depending_on
from kai_fleet.declaring.pull_secrets import registry_secrets
from kai_fleet.helm_charts.chart_args import chart_args
from kai_fleet.helm_charts.installed_chart import hold_to
from kai_fleet.isolation.policies import CLAIMS, HELD, VOLUMES_LABEL
from kai_fleet.isolation.team_namespace import TeamNamespace
from kai_fleet.names import IDENTITY, TEAM_PULL_SECRET, VIRTUAL_CLUSTER
from kai_fleet.ownership import deployed
from kai_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER_REPOSITORY, unknown_version, vcluster
from kai_fleet.releases.chart_stores import store_of
from kai_fleet.vcluster.arguments import AccessArgs
from kai_fleet.vcluster.arguments import VirtualClusterArgs as VirtualClusterArgs
from kai_fleet.vcluster.chart_values import (
    AUTHORITY,
    HIGH,
    Values,
    authority_name,
    control_plane_labels,
    digest,
    images,
    vcluster_values,
)
from kai_fleet.vcluster.kubeconfig import ROLES, KubeconfigSecret, SinceLastWait, declare_groups

_CLUSTER = "kai-fleet/cluster"  # annotation: the UID of a vCluster
ALLOWED = Allowed(
    choices={
        "mode": ("virtual", "host", "default"),
        "isolation": LEVELS,
        "availability": ("single", HIGH),
        "access.type": ("LoadBalancer", "NodePort", "ClusterIP", "Ingress", "Gateway"),
        "store.type": ("embedded", "etcd", "embeddedEtcd", "external"),
        "groups": ROLES,
    },
    # Arguments that a type of access or store requires: its address comes from them.
    needs={
        "NodePort": ("host",),
        "Ingress": ("host",),
        "Gateway": ("host", "gateway"),
        "external": ("data_source",),
    },
)


class VirtualCluster(ComponentResource):
    """A vCluster named after the component, in an existing namespace.

    The name must be unique on the host: vCluster takes pods of another vCluster with the same name
    for its own. Uninstalling the chart leaves the volume and, in host mode, all pods; the component
    deletes these after the release. In Python, declare objects inside it with the options of
    `inside`.

    Raises:
        pulumi.RunError: an argument is not one that it takes, the version is not in the release
            table, the chart is another one, `access.gateway` is not NAMESPACE/NAME, or there is no
            way to the host.
    """

    namespace: Output[str]
    """Its namespace on the host."""
    server: Output[str]
    """URL of its API server: `https://…`."""
    kubeconfig: Output[str]
    """Administrator's kubeconfig, a secret."""
    cluster: Output[str]
    """Its identity, the UID of namespace kube-system: a recreated vCluster has a new one."""
    probe_environment: Mapping[str, Input[str]]
    """Argument `probe_environment` of a KaiScheduler inside it, for other languages than Python."""

    def __init__(
        self, name: str, args: VirtualClusterArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__(VIRTUAL_CLUSTER, name, None, component_options(opts))
        self._title = f"VirtualCluster {name}"
        version_mistakes = partial(unknown_version, vcluster, args)
        check(self._title, VirtualClusterArgs, args, ALLOWED, version_mistakes)
        self._args = _with_secret_store(args)
        self._vcluster = vcluster(
            args.get("version", DEFAULT_VCLUSTER), untested=bool(args.get("untested"))
        )
        namespace = args.get("namespace", f"team-{name}")
        # That of a TeamNamespace is an Output that waits for its guards.
        self._namespace = namespace.name if isinstance(namespace, TeamNamespace) else namespace
        self._host = connection_of(self._title, args)
        provider = provider_from_args(self, f"{name}-host", args)
        first = child_options(self, opts, provider=provider)
        child = child_options(self, opts, ordered=False, provider=provider)
        self._values = vcluster_values(name, self._args, self._namespace)

        helm = self._release(name, child, dependencies=self._prerequisites(name, first))
        self._disruption_budgets(name, child)
        secret = self._kubeconfig_secret(name)
        since_last_wait = secret.since_last_wait(helm.id)
        ready = self._ready(helm, secret, since_last_wait, child)
        printed = _printed(ready, secret, since_last_wait)
        secret.warn_of_loss(printed)

        self.namespace = Output.from_input(self._namespace)
        self.server = printed["server"]
        self.cluster = printed["uid"]
        self.kubeconfig = secret.kubeconfig(self.server)
        self.probe_environment = self._probe_environment(name)
        replaced_first = child_options(self, opts, ordered=False, delete_before_replace=True)
        self.identity = self._identity(name, replaced_first)
        kept = child_options(self, opts, ordered=False, ignore_changes=["clusterIdentifier"])
        self.provider = self._provider_inside(name, kept)
        self._hold_volumes(name, depending_on(child, ready))
        declare_groups(name, args.get("groups", {}), self.inside(self))
        self.register_outputs(
            {"namespace": self._namespace, "server": self.server, "cluster": self.cluster}
        )

    def inside(self, parent: Resource | None = None) -> ResourceOptions:
        """Options for resources in the vCluster, children of `parent` if there is one.

        They are deleted with the vCluster, without a call to its API, and created again in a new
        vCluster of this name.
        """
        return ResourceOptions(parent=parent, provider=self.provider, deleted_with=self.identity)

    @property
    def backup_args(self) -> dict[str, Input[str]]:
        """The arguments of a VirtualClusterBackup that say which vCluster it is."""
        return {
            "vcluster_namespace": self._namespace,
            "vcluster_version": self._vcluster.version,
            **images(self._values, self._vcluster),
        }

    def _prerequisites(self, name: str, first: ResourceOptions) -> list[Resource]:
        """Declare what the release depends on: the clean-up, the issuer's CA, the pull Secret.

        The last two only if the arguments have `oidc.ca` and `registries`.
        """
        declared: list[Resource] = [self._clean_up(name, first)]
        oidc = self._args.get("oidc")
        if oidc and "ca" in oidc:
            authority = kubernetes.core.v1.ConfigMap(
                f"{name}-oidc",
                metadata={
                    "name": authority_name(name, oidc["ca"]),
                    "namespace": self._namespace,
                },
                data={AUTHORITY: oidc["ca"]},
                opts=first,
            )
            declared.append(authority)
        registries = self._args.get("registries")
        secrets = registry_secrets(name, TEAM_PULL_SECRET, self._namespace, registries, first)
        return [*declared, *secrets]

    def _clean_up(self, name: str, opts: ResourceOptions) -> Resource:
        """Declare the command that at its deletion, after the release's, deletes what the release
        leaves in the namespace. Before the release it lets volumes grow to a size that is written.
        """
        environment: dict[str, Input[str]] = {
            "PODS_NAMESPACE": self._namespace,
            "PODS_VCLUSTER": name,
        }
        grow = None
        claim = store_of(self._values).claim
        if "size" in claim:
            grow = probes.command("vcluster grow")
            environment["PODS_CLAIMS"] = resolved(partial(_claims, name), self._values)
            environment["PODS_SIZE"] = resolved(str, claim["size"])
        return Command(
            f"{name}-pods",
            create=grow,
            delete=probes.command("vcluster clean-up"),
            environment={**self._host.environment(), **environment},
            opts=opts,
        )

    def _release(self, name: str, child: ResourceOptions, dependencies: list[Resource]) -> Release:
        """Declare the vCluster's Helm release, called `name`, which does not wait for its objects.

        Raises pulumi.RunError as `chart_args` does. A chart that only Helm finds to be another one
        ends the run later, as `hold_to` says.
        """
        version = self._vcluster.chart_version
        helm = Release(
            f"{name}-release",
            **chart_args("vcluster", version, self._args, VCLUSTER_REPOSITORY),
            name=name,
            namespace=self._namespace,
            values=self._values,
            # No chart of the table has hooks. On upgrades Pulumi's plugin reads the second option,
            # whatever its name says; on deletion it reads neither.
            disable_webhooks=True,
            disable_crd_hooks=True,
            timeout=self._timeout_seconds,
            skip_await=True,  # the next step waits, and says for what
            opts=depending_on(child, *dependencies),
        )
        hold_to(self._title, helm, "vcluster", version)
        return helm

    def _disruption_budgets(self, name: str, opts: ResourceOptions) -> None:
        """Declare that a drain takes one pod of the control plane at a time, and one of its etcd.

        The charts have a budget of the control plane only, from v0.34.
        """
        if self._args.get("availability") != HIGH:
            return
        for part, labels in control_plane_labels(name).items():
            budget = f"{name}-{part.replace('_', '-')}"
            kubernetes.policy.v1.PodDisruptionBudget(
                budget,
                metadata={"name": budget, "namespace": self._namespace},
                spec={"max_unavailable": 1, "selector": {"match_labels": labels}},
                opts=opts,
            )

    def _kubeconfig_secret(self, name: str) -> KubeconfigSecret:
        """What reads the vCluster's Secret; nothing is read yet."""
        access = self._args.get("access", {})
        return KubeconfigSecret(
            name,
            self,
            self._host,
            self._namespace,
            self._values,
            access=access.get("type", "LoadBalancer"),
            endpoint=_endpoint(access),
        )

    @property
    def _timeout_seconds(self) -> int:
        """The seconds for Helm, and once more for the wait: `ready_timeout`."""
        return self._args.get("ready_timeout", 600)

    @property
    def _wait_environment(self) -> dict[str, Input[str]]:
        """Variables of the wait, and of probes inside: what messages name, the way to the host."""
        place = self._args.get("stack_key", self._title)
        return {"PROBE_PLACE": place, **self._host.environment()}

    def _ready(
        self,
        helm: Release,
        secret: KubeconfigSecret,
        since_last_wait: Output[SinceLastWait],
        opts: ResourceOptions,
    ) -> Command:
        """Declare the wait until the vCluster's API answers.

        Helm returns long before the API answers and vCluster writes its Secret (V11), also if other
        values restart it: the command runs again if a variable changes. The wait prints the
        server's address and identity, and fails with the refusal of `since_last_wait`.
        """
        pool_labels = [joined("=", label) for label in self._args.get("node_pool", {}).items()]
        return Command(
            f"{secret.name}-ready",
            create=probes.command("vcluster wait"),
            environment={
                **self._wait_environment,
                "VCLUSTER_NAME": secret.name,
                "VCLUSTER_NAMESPACE": self._namespace,
                "VCLUSTER_VERSION": self._vcluster.version,
                "VCLUSTER_VALUES": resolved(_digest, self._values),
                "VCLUSTER_ACCESS": secret.access,
                "VCLUSTER_HOST": secret.endpoint,
                "VCLUSTER_NODE_POOL": joined(",", pool_labels),
                "VCLUSTER_TIMEOUT": str(int(self._timeout_seconds)),
                "VCLUSTER_REFUSAL": since_last_wait.apply(lambda since: since.refusal),
            },
            triggers=[helm.id, since_last_wait.apply(lambda since: str(since.number))],
            logging=Logging.STDERR,  # stdout is the server's address and identity
            opts=opts,
        )

    def _probe_environment(self, name: str) -> Mapping[str, Input[str]]:
        """Environment variables by which probes reach the vCluster.

        `server` and `cluster` have to be set before.
        """
        return {
            **self._wait_environment,
            "PROBE_SECRET": joined("", [self._namespace, f"/vc-{name}"]),
            "PROBE_SERVER": self.server,
            "PROBE_CLUSTER": self.cluster,
        }

    def _identity(self, name: str, opts: ResourceOptions) -> Command:
        """Declare the command that stands for this vCluster and runs nothing.

        Another vCluster, even at the same address, replaces it (S1), which deletes it first, and
        with it all that is inside: the engine asks no cluster about that. Its environment has the
        vCluster's namespace and server, because a component's outputs are unknown after a run in
        which it failed.
        """
        return Command(
            f"{name}{IDENTITY}",
            environment={"VCLUSTER_NAMESPACE": self._namespace, "VCLUSTER_SERVER": self.server},
            triggers=[self.cluster],
            opts=opts,
        )

    def _hold_volumes(self, name: str, opts: ResourceOptions) -> None:
        """Declare the ServiceAccount with the claims that Kubernetes must not create a second time.

        Nothing runs as it. Once the claims have the vCluster's store, an empty one would have
        vCluster delete every pod of the team: policy `volumes` of the host reads its annotations.
        A store without a volume has none.
        """
        if not _claims(name, self._values):
            return
        of_one_vcluster = ResourceOptions(
            delete_before_replace=True,
            replace_on_changes=[f'metadata.annotations["{_CLUSTER}"]'],
        )
        kubernetes.core.v1.ServiceAccount(
            f"{name}-volumes",
            metadata={
                "name": f"{name}-volumes",
                "namespace": self._namespace,
                "labels": VOLUMES_LABEL,
                "annotations": {
                    HELD: name,
                    CLAIMS: resolved(partial(_claims, name), self._values),
                    _CLUSTER: self.cluster,
                },
            },
            automount_service_account_token=False,
            opts=ResourceOptions.merge(opts, of_one_vcluster),
        )

    def _provider_inside(self, name: str, opts: ResourceOptions) -> kubernetes.Provider:
        """Declare the provider for resources in the vCluster.

        It is never replaced: if the provider of a resource is gone because the run that replaced
        both failed halfway, the engine (v3.274) can refresh, remove or create nothing. It is not
        skipped either if the wait failed: with --continue-on-error the engine panics if it skips a
        provider that exists. So it then gets the last kubeconfig, of the output `kubeconfigs`; a
        comment if there is none.
        """
        last_kubeconfig = deployed.read().output("kubeconfigs", name)
        kubeconfig = or_last(self.kubeconfig, last_kubeconfig or f"# vCluster {name} is not ready")
        connection = ClusterConnection(kubeconfig=Output.secret(kubeconfig))
        return kubernetes_provider(name, connection, opts, cluster_identifier=name, inside=True)


def _with_secret_store(args: VirtualClusterArgs) -> VirtualClusterArgs:
    """The arguments with the URL of an external store as a secret; `store` is {} if absent."""
    store = args.get("store", {})
    if "data_source" in store:
        store = {**store, "data_source": Output.secret(store["data_source"])}
    return {**args, "store": store}


def _endpoint(access: AccessArgs) -> Input[str]:
    """HOST, or HOST:PORT of an Ingress or Gateway, by default 443; "" if the Service decides."""
    host = access.get("host", "")
    if access.get("type") not in ("Ingress", "Gateway"):
        return host
    return resolved(lambda host, port: f"{host}:{int(port)}", host, access.get("port", 443))


def _printed(
    ready: Command,
    secret: KubeconfigSecret,
    since_last_wait: Output[SinceLastWait],
) -> Output[dict[str, str]]:
    """What the wait printed: `server` and `uid` of the vCluster, and `kubernetes` if it is known.

    If a wait ended well before, a preview has what that one printed, with the UID of another
    vCluster that is there now, unless it is refused. A wait that runs again prints only in the
    update: with an unknown address the preview would show everything inside as replaced, although
    only another vCluster replaces it.
    """
    last = secret.last_printed()
    if last and is_dry_run():
        return since_last_wait.apply(lambda since: {**last, "uid": since.uid or last["uid"]})
    # Outputs of a command with a secret kubeconfig are secret; server and UID need not be.
    return Output.unsecret(ready.stdout).apply(json.loads)


def _claims(name: str, values: Values) -> str:
    """The claims of a vCluster's store with commas between them; "" for one without a volume."""
    return ",".join(store_of(values).claims(name))


def _digest(values: Values) -> str:
    """Eight characters that change with the values of a chart."""
    return digest(json.dumps(values, sort_keys=True))
