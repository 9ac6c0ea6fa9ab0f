"""KaiScheduler: one KAI release, its values by version, and the wait until it is ready."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NotRequired, TypeAlias, TypedDict, cast

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Input, Output, ProviderResource, Resource, ResourceOptions
from pulumi_command.local import Command
from pulumi_kubernetes.apiextensions import CustomResource

from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import connection_of, provider_options
from kai_fleet.declaring.argument_check import Allowed, check
from kai_fleet.declaring.inputs import (
    LEVELS,
    RegistryArgs,
    TolerationArgs,
    resolved,
    toleration_spec,
)
from kai_fleet.declaring.options import child_options, component_options, depending_on
from kai_fleet.declaring.pull_secrets import registry_secrets
from kai_fleet.helm_charts.chart_args import chart_args
from kai_fleet.helm_charts.installed_chart import hold_to
from kai_fleet.names import KAI_SCHEDULER, NAMESPACE, RELEASE, STACK_PULL_SECRET
from kai_fleet.ownership import deployed
from kai_fleet.ownership.owners import HostObject, refuse_others
from kai_fleet.releases import (
    DISABLED,
    KAI,
    KaiRelease,
    kai,
    table,
    unknown_version,
    version_key,
    why_replaced,
)
from kai_fleet.releases.chart_values import merged, nested, values_of
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.releases.sharing import MODES, NOT_ENFORCED, SharingMode, sharing_values
from kai_fleet.values import value_at
from kai_fleet.vcluster.virtual_cluster import VirtualCluster
from kai_usage.keys import KAI_NAMESPACE, RESERVATIONS

Values: TypeAlias = dict[str, Any]
Environment: TypeAlias = Mapping[str, Input[str]]
# In other languages a vCluster's environment arrives as one Output.
ProbeEnvironment: TypeAlias = Input[Mapping[str, Input[str]]]

_TOPOLOGY: Final = "kubernetes:kai.scheduler/v1alpha1:Topology"
_INSTEAD: Final = (
    "One KAI schedules for a whole host: leave KaiScheduler out where another program has it, and"
    " give topologies names of your own; if only the namespace was made before, write use_existing:"
    ' ["namespace"]'
)
# The first chart with labels for the namespace of the pods that reserve shared GPUs.
_RESERVATION_LABELS_SINCE: Final = (0, 16, 7)
ALLOWED: Final = Allowed(
    choices={
        "isolation": LEVELS,
        "gpu_sharing_mode": MODES[1:],
        "use_existing": ("namespace", "clusterPolicyCrd", "priorityClasses"),
    },
    replaces={"vcluster": ("probe_environment", "kubeconfig", "context")},
)


class ShardArgs(TypedDict):
    """Nodes that one of KAI's schedulers has for itself: a SchedulingShard."""

    placement: NotRequired[Mapping[str, Input[str]]]
    """How pods with GPUs (`gpu`) and without (`cpu`) are placed: `binpack` fills one node after
    another, `spread` uses all nodes evenly. Default: `binpack`.
    """
    min_runtime: NotRequired[Mapping[str, Input[str]]]
    """How long a job runs before its own queue may `preempt` it, or another queue may `reclaim` its
    resources, such as `4h`. Times of a queue take precedence. Default: KAI's.
    """
    queue_depth: NotRequired[Mapping[str, Input[float]]]
    """The most jobs of a queue that KAI tries in a cycle, by action: `allocate`, `reclaim`,
    `preempt`, `consolidation`. Default: all.
    """


class FairshareArgs(TypedDict):
    """Fairness over time: past usage counts when KAI shares out over-quota. From KAI v0.10."""

    window: NotRequired[Input[str]]
    """How far back usage counts, in hours, minutes and seconds. 168h is a week. Default: `168h`."""
    window_type: NotRequired[Input[str]]
    """`sliding`. `tumbling`: windows follow each other from `start` on. `cron`: a window begins at
    each time of `cron`. Default: `sliding`.
    """
    start: NotRequired[Input[str]]
    """tumbling: when the first window begins: `2026-01-05T00:00:00Z`. Required there."""
    cron: NotRequired[Input[str]]
    """cron: when windows begin: `0 0 * * 1`. Required there."""
    half_life: NotRequired[Input[str]]
    """Age at which usage counts half, such as `24h`. Default: all usage in the window counts fully.
    """
    k_value: NotRequired[Input[float]]
    """How much past usage weighs. 0: it does not count. Default: 1."""
    prometheus: NotRequired[Input[str]]
    """URL of the Prometheus with the usage. Default: KAI runs one, by the Prometheus operator."""


class KaiArgs(TypedDict):
    """One KAI release, with its shards, fairness and topologies."""

    version: str
    """Version of KAI, from the release table: `v0.16.8`."""
    untested: NotRequired[bool]
    """Treat a version that is newer than the release table like the newest of its line. Default:
    false.
    """
    chart: NotRequired[str]
    """Another chart: oci://…, https://… or a path. Default: KAI's own."""
    chart_account: NotRequired[RegistryArgs]
    """Credentials to pull `chart`. Default: none."""
    values: NotRequired[Mapping[str, Any]]
    """Chart values, merged over all others. Default: none."""
    gpu_sharing: NotRequired[bool]
    """Give pods parts of a GPU. Default: true."""
    gpu_sharing_mode: NotRequired[str]
    """`NonMemoryEnforced`; `HamiCore` from v0.16, `NvFractions` from v0.18. Default: the first."""
    isolation: NotRequired[str]
    """Pod Security level of KAI's pods: `baseline`, `restricted`, `off`. Default: `baseline`."""
    tolerations: NotRequired[Sequence[TolerationArgs]]
    """Taints that all pods of KAI tolerate. Default: none."""
    affinity: NotRequired[Mapping[str, Any]]
    """Affinity of all pods of KAI, as in a pod's spec. Default: none."""
    labels: NotRequired[Mapping[str, Input[str]]]
    """Labels of its namespaces. Default: none."""
    registries: NotRequired[Mapping[str, RegistryArgs]]
    """Credentials to pull its images, by registry. Default: none."""
    shards: NotRequired[Mapping[str, ShardArgs]]
    """Shards by name, which is the label `kai.scheduler/node-pool` of their nodes, from KAI v0.10.
    Default: one, `default`, with KAI's settings.
    """
    fairshare: NotRequired[FairshareArgs]
    """Fairness over time, from KAI v0.10. Default: past usage does not count."""
    topologies: NotRequired[Mapping[str, Sequence[Input[str]]]]
    """Node labels of each topology, from the widest domain to the narrowest, from KAI v0.12.
    Default: none.
    """
    use_existing: NotRequired[Sequence[str]]
    """What others own, used and not declared: `namespace`, `clusterPolicyCrd`, `priorityClasses`.
    Default: none.
    """
    ready_timeout: NotRequired[int]
    """Seconds that an update waits until KAI is ready. Default: 300."""
    probe_environment: NotRequired[Input[Mapping[str, Input[str]]]]
    """`probe_environment` of the VirtualCluster that it runs in. Default: it runs on a host."""
    kubeconfig: NotRequired[Input[str]]
    """Content of its cluster's kubeconfig, a secret. Default: the provider in the options."""
    context: NotRequired[str]
    """Context of your kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""


class KaiSchedulerArgs(KaiArgs):
    """One KAI release. Other languages have no `vcluster`."""

    vcluster: NotRequired[VirtualCluster]
    """The VirtualCluster that it runs in, in place of `probe_environment` and `kubeconfig`.
    Default: it runs on a host.
    """


class KaiScheduler(ComponentResource):
    """One KAI release, its prerequisites, the wait until it is ready, its shards and topologies.

    A new version upgrades the release in place if that is known to work. Otherwise the old release
    is deleted first: Helm can roll back no KAI version, and some upgrades collide. Queues and
    running pods stay either way. Let queues depend on this component.

    Raises:
        pulumi.RunError: an argument is not one that it takes, the version is not in the release
            table, the chart is another one, there is no way to its cluster, or an object that it
            declares on a host belongs to another program; or, in an update, the host cannot be
            read.
    """

    namespace: Output[str]
    """Namespace of its pods."""

    def __init__(
        self, name: str, args: KaiSchedulerArgs, opts: ResourceOptions | None = None
    ) -> None:
        title = f"KaiScheduler {name}"
        check(title, KaiSchedulerArgs, args, ALLOWED, partial(unknown_version, kai, args))
        vcluster = args.get("vcluster")
        if vcluster is not None:
            opts = ResourceOptions.merge(opts, vcluster.inside())
            args = {**args, "probe_environment": vcluster.probe_environment}
        super().__init__(KAI_SCHEDULER, name, None, component_options(opts))
        self._title = title
        self._args = args
        self._prefix = f"{name}-kai"  # a VirtualCluster NAME has a NAME-release, too
        self._kai = kai(args["version"], untested=bool(args.get("untested")))
        self._is_inside = bool(args.get("probe_environment"))
        self._environment = self._probe_environment()
        provider = provider_options(self, self._prefix, args).get("provider")
        self._refuse_wrong_cluster(name, provider)
        first = child_options(self, opts, provider=provider)
        child = child_options(self, opts, ordered=False, provider=provider)
        step = child_options(self, opts, ordered=False, delete_before_replace=True)

        helm = self._release(child, dependencies=self._prerequisites(first))
        self._reservation_secret(depending_on(child, helm))
        self._clean_up(helm, step)
        ready = self._ready(helm, step)
        self._shards(name, helm, depending_on(step, ready))
        self._topologies(name, depending_on(child, ready))
        self.namespace = Output.from_input(KAI_NAMESPACE)
        # The version is the release's; registered here, it would have the complete state written
        # once more before a switch begins.
        self.register_outputs({"version": args["version"]})

    def _probe_environment(self) -> ProbeEnvironment:
        """Environment variables by which the probes reach KAI's cluster."""
        if self._is_inside:
            return self._args["probe_environment"]
        return connection_of(self._title, self._args).environment()

    def _refuse_wrong_cluster(self, name: str, provider: ProviderResource | None) -> None:
        """Refuse KAI for a vCluster without the vCluster's provider, and a second KAI on a host."""
        if self._is_inside:
            if provider is None and self.get_provider(NAMESPACE) is None:
                # Without a provider it would be created on the host.
                raise pulumi.RunError(
                    f"{self._title}: probe_environment is that of a vCluster; write kubeconfig: the"
                    " one of the same VirtualCluster"
                )
            return
        if not deployed.read().has(RELEASE, f"{self._prefix}-release"):
            refuse_others(self, self._title, _host_objects(name, self._args), _INSTEAD)

    def _prerequisites(self, first: ResourceOptions) -> list[Resource]:
        """Declare what the release depends on: its namespace, a CRD and the pull Secret."""
        existing = self._args.get("use_existing", [])
        declared = list[Resource]()
        if "namespace" not in existing:
            declared.append(self._namespace(first))
        if self._kai.needs_cluster_policy_crd and "clusterPolicyCrd" not in existing:
            declared.append(self._cluster_policy_crd(first))
        registries = self._args.get("registries")
        opts = depending_on(first, *declared)
        secrets = registry_secrets(self._prefix, STACK_PULL_SECRET, KAI_NAMESPACE, registries, opts)
        return [*declared, *secrets]

    def _namespace(self, opts: ResourceOptions) -> Resource:
        # Nothing in it takes long to delete. In a vCluster its tenant may block the deletion.
        timeouts = pulumi.CustomTimeouts(delete="2m")
        soon = ResourceOptions(custom_timeouts=timeouts)
        return kubernetes.core.v1.Namespace(
            f"{self._prefix}-namespace",
            metadata={"name": KAI_NAMESPACE},
            opts=ResourceOptions.merge(opts, soon),
        )

    def _cluster_policy_crd(self, opts: ResourceOptions) -> Resource:
        if "probe_environment" not in self._args:
            # On a host the CRD is kept unchanged: a GPU operator may have been installed since and
            # own it, and deleting the CRD deletes its ClusterPolicy.
            kept = ResourceOptions(retain_on_delete=True, ignore_changes=["spec"])
            opts = ResourceOptions.merge(opts, kept)
        return kubernetes.apiextensions.v1.CustomResourceDefinition(
            f"{self._prefix}-cluster-policy",
            metadata={"name": "clusterpolicies.nvidia.com"},
            spec=table("cluster-policy"),
            opts=opts,
        )

    def _release(
        self, child: ResourceOptions, dependencies: list[Resource]
    ) -> kubernetes.helm.v3.Release:
        """Declare KAI's Helm release, which a new version upgrades or replaces."""
        name = f"{self._prefix}-release"
        installed = deployed.read().versions.get(deployed.resource_key(KAI_SCHEDULER, name))
        replacing = ResourceOptions(
            depends_on=dependencies,
            replace_on_changes=self._replacing_properties(installed),
            delete_before_replace=True,
        )
        helm = kubernetes.helm.v3.Release(
            name,
            **chart_args("kai-scheduler", self._kai.version, self._args, self._kai.chart),
            name="kai-scheduler",
            namespace=KAI_NAMESPACE,
            values=kai_values(self._kai, self._args),
            timeout=self._timeout_seconds,
            # The wait below says what is missing. Helm would only report its timeout, and after an
            # upgrade that timed out, the next one keeps the fields that were wrong.
            skip_await=True,
            opts=ResourceOptions.merge(child, replacing),
        )
        hold_to(self._title, helm, "kai-scheduler", self._kai.version, installed)
        return helm

    @property
    def _timeout_seconds(self) -> int:
        return int(self._args.get("ready_timeout", 300))

    def _replacing_properties(self, installed: str | None) -> list[str]:
        """Properties of the release whose change replaces it.

        Log, if the version changes, whether the release is upgraded in place or replaced, and why.
        `installed` is the version that the stack has.
        """
        if installed is not None and installed != self._kai.version:
            why = self._log_switch(installed)
            if not why:
                return []
        if not self._kai.recreates_config:
            return ["version"]
        # Where an upgrade recreates kai-config, so does a change of values (K12).
        return ["version", "values", "chart", "repositoryOpts"]

    def _log_switch(self, installed: str) -> str:
        """Log how the release gets to its new version; return why it is replaced, "" if not."""
        version = self._kai
        before = KAI.get(installed)
        why = f"{installed} is not in the table"
        if before is not None:
            why = why_replaced(before, version)
        verb = "replaced" if why else "upgraded in place"
        step = f"{installed} → {version.version}: {why or 'helm upgrades it in place'}"
        more = ""
        if version.groups_deployments and not (before and before.groups_deployments):
            more = "; a Deployment made after it is one PodGroup"
        pulumi.log.info(f"KAI is {verb}: {step}. Queues and running pods stay{more}", self)
        return why

    def _reservation_secret(self, opts: ResourceOptions) -> None:
        """Declare the pull Secret of the pods that reserve shared GPUs, if there are registries."""
        # The chart creates this namespace, and leaves it on uninstall.
        values = self._args.get("values", {})
        namespace = value_at(values, "global.resourceReservation.namespace") or RESERVATIONS
        registries = self._args.get("registries")
        registry_secrets(
            f"{self._prefix}-reservation", STACK_PULL_SECRET, namespace, registries, opts
        )

    def _probe(
        self,
        name: str,
        helm: kubernetes.helm.v3.Release,
        environment: Environment,
        opts: ResourceOptions,
        *,
        create: str | None = None,
        update: str | None = None,
        delete: str | None = None,
        rerun: Sequence[str] = (),
    ) -> Command:
        """Declare a command that runs these probes with the environment.

        The command is replaced with the release, and if `rerun` changes.
        """
        return Command(
            name,
            create=create and probes.command(create),
            update=update and probes.command(update),
            delete=delete and probes.command(delete),
            environment=_joined_environment(self._environment, environment),
            triggers=[helm.id, *rerun],
            opts=opts,
        )

    def _clean_up(self, helm: kubernetes.helm.v3.Release, step: ResourceOptions) -> None:
        """Declare the command whose deletion cleans up what uninstalling the release leaves.

        It is deleted before the release, also if that is replaced, because the release is its
        trigger; and it exists even if KAI never becomes ready.
        """
        config = "remove" if self._kai.has_operator else "keep"
        environment = {"KAI_CONFIG": config}
        self._probe(f"{self._prefix}-clean-up", helm, environment, step, delete="kai clean-up")

    def _ready(self, helm: kubernetes.helm.v3.Release, step: ResourceOptions) -> Command:
        """Declare the wait until KAI is ready.

        A finished release is not a ready KAI (K16): its operator creates the other parts, and the
        queue webhook refuses every Queue until they run.
        """
        environment: Environment = {
            "KAI_VERSION": self._kai.version,
            "KAI_CHART": cast(Output[str], helm.version),
            "KAI_DEPLOYMENTS": ",".join(self._kai.deployments),
            "KAI_CONDITIONS": ",".join(self._kai.ready_conditions),
            "KAI_TIMEOUT": str(self._timeout_seconds),
        }
        number = deployed.read().next_wait_number(KAI_SCHEDULER, self._prefix)
        return self._probe(
            f"{self._prefix}-ready",
            helm,
            environment,
            step,
            create="kai wait",
            update="kai wait",
            rerun=[str(number)] if number else [],
        )

    def _shards(self, name: str, helm: kubernetes.helm.v3.Release, opts: ResourceOptions) -> None:
        """Declare the command that applies the shards and fairness, if the arguments have any.

        The chart creates the shard `default` and the Config; the command owns single fields of them
        by server-side apply, which Helm's upgrades and the operator leave alone. A Patch resource
        would not be applied again after a release was replaced with its objects, because no input
        of it changes; this command has the release as a trigger.
        """
        if not self._args.get("shards") and "fairshare" not in self._args:
            return
        objects = kai_objects(self._kai, self._args)
        environment: Environment = {
            "KAI_VERSION": self._kai.version,
            "KAI_OBJECTS": resolved(partial(json.dumps, sort_keys=True), objects),
        }
        self._probe(
            f"{name}-shards-apply",
            helm,
            environment,
            opts,
            create="shards apply",
            update="shards apply",
            delete="shards remove",
        )

    def _topologies(self, name: str, opts: ResourceOptions) -> None:
        """Declare the topologies, which workloads name in the annotation kai.scheduler/topology.

        The levels of a topology are immutable: a new list replaces it.
        """
        replaced = ResourceOptions(replace_on_changes=["spec"], delete_before_replace=True)
        for topology, labels in self._args.get("topologies", {}).items():
            CustomResource(
                f"{name}-topologies-{topology}",
                api_version="kai.scheduler/v1alpha1",
                kind="Topology",
                metadata={"name": topology},
                spec={"levels": [{"nodeLabel": label} for label in labels]},
                opts=ResourceOptions.merge(opts, replaced),
            )


def _joined_environment(base: ProbeEnvironment, more: Environment) -> ProbeEnvironment:
    """The variables of `base` and `more`; one Output if `base` is one, as in other languages."""
    if isinstance(base, Mapping):
        return {**base, **more}
    known = Output.all(base, more)
    return known.apply(lambda values: {**values[0], **values[1]})


def _host_objects(name: str, args: KaiSchedulerArgs) -> list[HostObject]:
    """Objects on the host that are deleted with the stack; the CRD of a GPU operator stays."""
    objects = []
    if "namespace" not in args.get("use_existing", []):
        path = f"/api/v1/namespaces/{KAI_NAMESPACE}"
        objects.append(HostObject(NAMESPACE, f"{name}-kai-namespace", path))
    for topology in args.get("topologies", {}):
        path = f"/apis/kai.scheduler/v1alpha1/topologies/{topology}"
        objects.append(HostObject(_TOPOLOGY, f"{name}-topologies-{topology}", path))
    return objects


def kai_values(release: KaiRelease, args: KaiSchedulerArgs) -> Values:
    """Chart values of this version for the arguments, with `values` of the arguments over all.

    Through v0.17 the charts share no GPUs by themselves. Without a RuntimeClass the pods that
    reserve a shared GPU see none if the container runtime's default is not NVIDIA's.
    """
    mode: SharingMode = DISABLED
    if args.get("gpu_sharing", True):
        mode = cast(SharingMode, args.get("gpu_sharing_mode", NOT_ENFORCED))
    runtime_class = {}
    if release.runtime_class_key:
        runtime_class = nested(release.runtime_class_key, "nvidia")
    return merged(
        sharing_values(release.version, mode),
        runtime_class,
        release.values,
        values_of("kai", _layers(release, args), {**args, **_computed(release, args)}),
        args.get("values", {}),
    )


def _computed(release: KaiRelease, args: KaiSchedulerArgs) -> Values:
    """Values that chart-values.yaml takes in addition to the arguments; it drops empty ones."""
    computed: Values = {
        "tolerations": [toleration_spec(taint) for taint in args.get("tolerations", [])],
        "pull_secrets": None,
        "reservation_labels": None,
    }
    if args.get("registries"):
        computed["pull_secrets"] = [{"name": STACK_PULL_SECRET}]
    if version_key(release.version) >= _RESERVATION_LABELS_SINCE:
        computed["reservation_labels"] = dict(args.get("labels", {}))
    return computed


def _layers(release: KaiRelease, args: KaiSchedulerArgs) -> list[str]:
    """Layers of chart-values.yaml, the later ones over the earlier ones."""
    level = args.get("isolation", "baseline")
    layers = ["every"]
    if release.hides_gpus and level != "off":
        layers.append("hidden GPUs")
    if level == "restricted":
        layers.append("restricted")
    if release.prometheus_values and "fairshare" in args:
        layers.append("prometheus")
    if "priorityClasses" in args.get("use_existing", []):
        layers.append("existing priority classes")
    return layers


def kai_objects(release: KaiRelease, args: KaiSchedulerArgs) -> dict[str, dict[str, Values]]:
    """The `spec` of each SchedulingShard, and of the Config if the chart has no values for it.

    By the resource in KAI's API (`schedulingshards`, `configs`) and the object's name.
    """
    shards = args.get("shards", {})
    specs = {name: _shard_spec(name, shard) for name, shard in shards.items()}
    fairshare = args.get("fairshare")
    if fairshare is None:
        return {"schedulingshards": specs}
    over_time = values_of("kai", ["shard over time"], fairshare)
    specs.setdefault(DEFAULT_SHARD, {})
    objects = {"schedulingshards": {name: spec | over_time for name, spec in specs.items()}}
    if not release.prometheus_values:
        config = values_of("kai", ["prometheus"], args)
        if config:
            objects["configs"] = {"kai-config": config}
    return objects


def _shard_spec(name: str, shard: ShardArgs) -> Values:
    """The `spec` of a SchedulingShard; the chart's own `default` selects nodes without a label."""
    # KAI takes integers; other languages send every number as a fraction.
    queue_depth = {
        action: resolved(int, jobs) for action, jobs in shard.get("queue_depth", {}).items()
    }
    computed: Values = {
        "partition": None if name == DEFAULT_SHARD else name,
        "queue_depth": queue_depth,
    }
    if placement := shard.get("placement"):
        computed["placement"] = {"gpu": "binpack", "cpu": "binpack", **placement}
    return values_of("kai", ["shard"], {**shard, **computed})
