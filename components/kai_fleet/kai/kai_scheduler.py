"""KaiScheduler: one KAI release, its prerequisites, and the wait until it is ready."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Input, Output, ProviderResource, Resource, ResourceOptions
from pulumi_command.local import Command
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.helm.v3 import Release

from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import connection_of, provider_from_args
from kai_fleet.declaring.argument_check import Allowed, check
from kai_fleet.declaring.inputs import LEVELS, resolved
from kai_fleet.declaring.options import child_options, component_options, depending_on
from kai_fleet.declaring.pull_secrets import registry_secrets
from kai_fleet.helm_charts.chart_args import chart_args
from kai_fleet.helm_charts.installed_chart import hold_to
from kai_fleet.kai.arguments import KaiSchedulerArgs as KaiSchedulerArgs
from kai_fleet.kai.chart_values import kai_objects, kai_values
from kai_fleet.kai.switching import replacing_properties
from kai_fleet.names import KAI_SCHEDULER, NAMESPACE, RELEASE, STACK_PULL_SECRET
from kai_fleet.ownership import deployed
from kai_fleet.ownership.owners import HostObject, refuse_others
from kai_fleet.releases import kai, table, unknown_version
from kai_fleet.releases.sharing import MODES
from kai_fleet.values import value_at
from kai_usage.keys import KAI_NAMESPACE, RESERVATIONS

Environment = Mapping[str, Input[str]]
# In other languages a vCluster's environment arrives as one Output.
ProbeEnvironment = Input[Mapping[str, Input[str]]]

_TOPOLOGY = "kubernetes:kai.scheduler/v1alpha1:Topology"
_INSTEAD = (
    "One KAI schedules for a whole host: leave KaiScheduler out where another program has it, and"
    " give topologies names of your own; if only the namespace was made before, write use_existing:"
    ' ["namespace"]'
)
ALLOWED = Allowed(
    choices={
        "isolation": LEVELS,
        "gpu_sharing_mode": MODES[1:],
        "use_existing": ("namespace", "clusterPolicyCrd", "priorityClasses"),
    },
    replaces={"vcluster": ("probe_environment", "kubeconfig", "context")},
)


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
        provider = provider_from_args(self, self._prefix, args)
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
        """Environment variables by which the probes reach KAI's cluster.

        In a vCluster they are the argument, in which `__init__` has put those of `vcluster`. On a
        host they follow from `kubeconfig` or `context`; raises RunError as `connection_of` does.
        """
        if self._is_inside:
            return self._args["probe_environment"]
        return connection_of(self._title, self._args).environment()

    def _refuse_wrong_cluster(self, name: str, provider: ProviderResource | None) -> None:
        """Refuse KAI for a vCluster without a provider, and `_host_objects` of others on a host.

        Whose cluster a provider reaches is not checked. `provider` is a new one for the arguments;
        if it is None, only a provider of the options counts. A host on which this stack has a
        release of KAI is not read. Raises pulumi.RunError, also as `refuse_others` does.
        """
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
        """Declare what the release depends on: its namespace, a CRD and the pull Secret.

        `use_existing` leaves out the namespace and the CRD. Only some versions need the CRD, and
        without registries there is no Secret.
        """
        existing = self._args.get("use_existing", [])
        declared = list[Resource]()
        if "namespace" not in existing:
            # Nothing in it takes long to delete. In a vCluster its tenant may block the deletion.
            soon = ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(delete="2m"))
            namespace = kubernetes.core.v1.Namespace(
                f"{self._prefix}-namespace",
                metadata={"name": KAI_NAMESPACE},
                opts=ResourceOptions.merge(first, soon),
            )
            declared.append(namespace)
        if self._kai.needs_cluster_policy_crd and "clusterPolicyCrd" not in existing:
            declared.append(self._cluster_policy_crd(first))
        registries = self._args.get("registries")
        opts = depending_on(first, *declared)
        secrets = registry_secrets(self._prefix, STACK_PULL_SECRET, KAI_NAMESPACE, registries, opts)
        return [*declared, *secrets]

    def _cluster_policy_crd(self, opts: ResourceOptions) -> Resource:
        """Declare the CRD of NVIDIA's ClusterPolicy, without which some KAI operators crash-loop.

        On a host, where KAI is in no vCluster, deleting the resource leaves the CRD in the cluster,
        and no update changes its `spec`.
        """
        if not self._is_inside:
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

    def _release(self, child: ResourceOptions, dependencies: list[Resource]) -> Release:
        """Declare KAI's Helm release, which a new version upgrades or replaces, and log which.

        Raises pulumi.RunError as `chart_args` does. A chart that only Helm finds to be another one
        ends the run later, as `hold_to` says.
        """
        name = f"{self._prefix}-release"
        installed = deployed.read().versions.get(deployed.resource_key(KAI_SCHEDULER, name))
        replacing = ResourceOptions(
            depends_on=dependencies,
            replace_on_changes=replacing_properties(self._kai, installed, self),
            delete_before_replace=True,
        )
        helm = Release(
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
        """The seconds for Helm, and once more for the wait: `ready_timeout`."""
        return int(self._args.get("ready_timeout", 300))

    def _reservation_secret(self, opts: ResourceOptions) -> None:
        """Declare the pull Secret of the pods that reserve shared GPUs, if there are registries.

        It is in the namespace that the argument `values` names for them, else in the chart's.
        """
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
        helm: Release,
        environment: Environment,
        opts: ResourceOptions,
        *,
        run: str | None = None,
        delete: str | None = None,
        rerun: Sequence[str] = (),
    ) -> Command:
        """Declare a command that runs these probes on KAI's cluster.

        `environment` has the variables beside those by which they reach it. `run`, of creation and
        update, and `delete` name the probe of that step, as in `kai wait`; None: none. The command
        is replaced with the release, and if `rerun` changes.
        """
        return Command(
            name,
            create=run and probes.command(run),
            update=run and probes.command(run),
            delete=delete and probes.command(delete),
            environment=_joined_environment(self._environment, environment),
            triggers=[helm.id, *rerun],
            opts=opts,
        )

    def _clean_up(self, helm: Release, step: ResourceOptions) -> None:
        """Declare the command whose deletion cleans up what uninstalling the release leaves.

        It is deleted before the release, also if that is replaced, because the release is its
        trigger; and it exists even if KAI never becomes ready.
        """
        config = "remove" if self._kai.has_operator else "keep"
        environment = {"KAI_CONFIG": config}
        self._probe(f"{self._prefix}-clean-up", helm, environment, step, delete="kai clean-up")

    def _ready(self, helm: Release, step: ResourceOptions) -> Command:
        """Declare the wait until KAI is ready.

        A finished release is not a ready KAI (K16): its operator creates the other parts, and the
        queue webhook refuses every Queue until they run. The wait runs again with another version,
        chart, timeout or `verify`, with a replaced release, and with one that was uninstalled by
        hand.
        """
        environment: Environment = {
            "KAI_VERSION": self._kai.version,
            "KAI_CHART": cast(Output[str], helm.version),
            "KAI_DEPLOYMENTS": ",".join(self._kai.deployments),
            "KAI_CONDITIONS": ",".join(self._kai.ready_conditions),
            "KAI_TIMEOUT": str(self._timeout_seconds),
        }
        if self._args.get("verify"):
            shared = self._args.get("gpu_sharing", True)
            environment = {**environment, "KAI_VERIFY": "share" if shared else "gang"}
        number = deployed.read().next_wait_number(KAI_SCHEDULER, self._prefix)
        return self._probe(
            f"{self._prefix}-ready",
            helm,
            environment,
            step,
            run="kai wait",
            rerun=[str(number)] if number else [],
        )

    def _shards(self, name: str, helm: Release, opts: ResourceOptions) -> None:
        """Declare the command that applies the shards and fairness, if the arguments have any.

        Its deletion takes its fields away again.
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
            run="shards apply",
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
    """The variables of `base` and, over them, `more`.

    They are one Output if `base` is one, as in other languages.
    """
    if isinstance(base, Mapping):
        return {**base, **more}
    return Output.all(base, more).apply(lambda values: {**values[0], **values[1]})


def _host_objects(name: str, args: KaiSchedulerArgs) -> list[HostObject]:
    """What deleting the stack deletes on the host: KAI's namespace, and the topologies.

    A namespace in `use_existing` is left out, and so is the CRD of a GPU operator: both stay.
    """
    objects = []
    if "namespace" not in args.get("use_existing", []):
        path = f"/api/v1/namespaces/{KAI_NAMESPACE}"
        objects.append(HostObject(NAMESPACE, f"{name}-kai-namespace", path))
    for topology in args.get("topologies", {}):
        path = f"/apis/kai.scheduler/v1alpha1/topologies/{topology}"
        objects.append(HostObject(_TOPOLOGY, f"{name}-topologies-{topology}", path))
    return objects
