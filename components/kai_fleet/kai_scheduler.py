"""KaiScheduler: one KAI release, its values by version, and the wait until it is ready."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_command as command
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apiextensions import CustomResource

from kai_fleet import deployed
from kai_fleet.argument_check import Allowed, check
from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import connection_of, provider_options
from kai_fleet.inputs import LEVELS, RegistryArgs, TolerationArgs, resolved, toleration_spec
from kai_fleet.installed_chart import hold_to
from kai_fleet.names import KAI_SCHEDULER, NAMESPACE, RELEASE
from kai_fleet.options import after, chart_args, child_of, component_options, registry_secret
from kai_fleet.owners import HostObject, refuse_others
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
from kai_fleet.releases.keys import DEFAULT_SHARD, KAI_NAMESPACE, RESERVATIONS
from kai_fleet.releases.sharing import MODES, NOT_ENFORCED, sharing_values
from kai_fleet.settings.sections.access import OF_STACK
from kai_fleet.values import value_at

_TOPOLOGY: Final = "kubernetes:kai.scheduler/v1alpha1:Topology"
_INSTEAD: Final = (
    "One KAI schedules for a whole host: leave KaiScheduler out where another program has it, and"
    " give topologies names of your own; if only the namespace was made before, write use_existing:"
    ' ["namespace"]'
)
# The first chart with labels for the namespace in which shared GPUs are held.
_LABELS_SINCE: Final = (0, 16, 7)
ALLOWED: Final = Allowed(
    choices={
        "isolation": LEVELS,
        "gpu_sharing_mode": MODES[1:],
        "use_existing": ("namespace", "clusterPolicyCrd", "priorityClasses"),
    }
)


class ShardArgs(TypedDict):
    """Nodes with a scheduler of their own: a SchedulingShard of KAI."""

    placement: NotRequired[dict[str, pulumi.Input[str]]]
    """Of pods with GPUs, `gpu`, and without, `cpu`: `binpack` or `spread`. Default: `binpack`."""
    min_runtime: NotRequired[dict[str, pulumi.Input[str]]]
    """How long a job runs before `preempt`, by its own queue, or `reclaim`: `4h`. Default: KAI's.
    """
    queue_depth: NotRequired[dict[str, pulumi.Input[float]]]
    """Most jobs of a queue that a cycle tries, by action: `allocate`, `preempt`. Default: all."""


class FairshareArgs(TypedDict):
    """Fairness over time: past usage counts when over-quota is given out. From KAI v0.10."""

    window: NotRequired[pulumi.Input[str]]
    """How far back usage counts, as h, m, s. Default: `168h`, a week."""
    window_type: NotRequired[pulumi.Input[str]]
    """`sliding`; `tumbling`, from `start` on; `cron`, by `cron`. Default: `sliding`."""
    start: NotRequired[pulumi.Input[str]]
    """tumbling: when the first window begins: `2026-01-05T00:00:00Z`. Required there."""
    cron: NotRequired[pulumi.Input[str]]
    """cron: when a window begins: `0 0 * * 1`. Required there."""
    half_life: NotRequired[pulumi.Input[str]]
    """Age at which usage counts half, as h, m, s. Default: no decay."""
    k_value: NotRequired[pulumi.Input[float]]
    """How much past usage weighs; 0 is nothing. Default: 1."""
    prometheus: NotRequired[pulumi.Input[str]]
    """URL of the Prometheus with the usage. Default: KAI runs one, by the Prometheus operator."""


class KaiSchedulerArgs(TypedDict):
    """One KAI release, with its shards, fairness and topologies."""

    version: str
    """Version of KAI, from the release table: `v0.16.8`."""
    untested: NotRequired[bool]
    """Treat a version newer than the table like the newest of its line. Default: false."""
    chart: NotRequired[str]
    """Another chart: oci://…, https://… or a path. Default: KAI's own."""
    chart_account: NotRequired[RegistryArgs]
    """Credentials to pull `chart`. Default: none."""
    values: NotRequired[dict[str, Any]]
    """Values of the chart, merged over all others. Default: none."""
    gpu_sharing: NotRequired[bool]
    """Give pods parts of a GPU. Default: true."""
    gpu_sharing_mode: NotRequired[str]
    """`NonMemoryEnforced`; `HamiCore` from v0.16, `NvFractions` from v0.18. Default: the first."""
    isolation: NotRequired[str]
    """How its own pods run: `baseline`, `restricted` or `off`. Default: `baseline`."""
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints that all of its pods tolerate. Default: none."""
    affinity: NotRequired[dict[str, Any]]
    """Affinity of all of its pods, as in a pod's spec. Default: none."""
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels of its namespaces. Default: none."""
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials to pull its images, by registry. Default: none."""
    shards: NotRequired[dict[str, ShardArgs]]
    """Shards by label `kai.scheduler/node-pool` of their nodes; from v0.10. Default: `default`."""
    fairshare: NotRequired[FairshareArgs]
    """Fairness over time. Default: past usage does not count."""
    topologies: NotRequired[dict[str, list[pulumi.Input[str]]]]
    """Node labels by name, from the widest domain to the narrowest; from v0.12. Default: none."""
    use_existing: NotRequired[list[str]]
    """What others own: `namespace`, `clusterPolicyCrd`, `priorityClasses`. Default: none."""
    ready_timeout: NotRequired[int]
    """Seconds that an update waits until KAI is ready. Default: 300."""
    probe_environment: NotRequired[dict[str, pulumi.Input[str]]]
    """That of the VirtualCluster around it. Default: of `kubeconfig` or `context`, on a host."""
    kubeconfig: NotRequired[pulumi.Input[str]]
    """Content of its cluster's kubeconfig, a secret. Default: the provider in the options."""
    context: NotRequired[str]
    """Context of your kubeconfig, in place of `kubeconfig`. Default: `kubernetes:context`."""


class KaiScheduler(pulumi.ComponentResource):
    """One KAI release, its prerequisites, the wait until it is ready, its shards and topologies.

    A new version upgrades the release in place where that is known to work; else the old release is
    deleted first: Helm can roll back no KAI version, and some upgrades collide. Queues and running
    pods stay. Let queues depend on it.

    Raises:
        pulumi.RunError: arguments that it does not take, a version that is not in the release
            table, or what it declares on a host is others' already.
    """

    namespace: pulumi.Output[str]
    """Namespace of its pods."""

    def __init__(
        self, name: str, args: KaiSchedulerArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(KAI_SCHEDULER, name, None, component_options(opts))
        component, inside = f"KaiScheduler {name}", args.get("probe_environment")
        of_version = partial(unknown_version, kai, args)
        check(component, KaiSchedulerArgs, args, ALLOWED, of_version)
        release = kai(args["version"], untested=bool(args.get("untested")))
        timeout = int(args.get("ready_timeout", 300))
        environment: Any = inside or connection_of(component, args).environment()
        component_name, name = name, f"{name}-kai"  # a VirtualCluster NAME has a NAME-release, too
        provider: Any = provider_options(self, name, args)
        if inside and not (provider or self.get_provider("kubernetes:core/v1:Namespace")):
            # Without a provider it would be created on the host.
            raise pulumi.RunError(
                f"{component}: probe_environment is that of a vCluster; write kubeconfig: the one"
                " of the same VirtualCluster"
            )
        if not inside and not deployed.read().has(RELEASE, f"{name}-release"):
            refuse_others(self, component, _on_host(name, args), _INSTEAD)
        child = child_of(self, opts, ordered=False, **provider)
        step = child_of(self, opts, ordered=False, delete_before_replace=True)
        replacing = pulumi.ResourceOptions(
            depends_on=self._before(name, args, release, child_of(self, opts, **provider)),
            replace_on_changes=self._replacing(name, release),
            delete_before_replace=True,
        )
        helm = kubernetes.helm.v3.Release(
            f"{name}-release",
            **chart_args("kai-scheduler", release.version, args, release.chart),
            name="kai-scheduler",
            namespace=KAI_NAMESPACE,
            values=kai_values(release, args),
            timeout=timeout,
            # The wait below says what is missing. Helm would only report its timeout, and after an
            # upgrade that timed out, the next one keeps the fields that were wrong.
            skip_await=True,
            opts=pulumi.ResourceOptions.merge(child, replacing),
        )
        installed = deployed.read().versions.get(deployed.named(KAI_SCHEDULER, f"{name}-release"))
        hold_to(component, helm, "kai-scheduler", release.version, installed)
        if registries := args.get("registries"):
            # The chart creates this namespace, and leaves it on uninstall.
            reservations = value_at(args.get("values", {}), "global.resourceReservation.namespace")
            reservations, secret = reservations or RESERVATIONS, f"{name}-reservation"
            registry_secret(secret, OF_STACK, reservations, registries, after(child, helm))

        def probe(
            name: str, variables: Any, opts: pulumi.ResourceOptions, *triggers: str, **verbs: str
        ) -> Any:
            if isinstance(environment, pulumi.Output):  # in programs of other languages
                known = pulumi.Output.all(environment, variables)
                every: Any = known.apply(lambda both: {**both[0], **both[1]})
            else:
                every = {**environment, **variables}
            commands: Any = {event: probes.command(verb) for event, verb in verbs.items()}
            return command.local.Command(
                name, environment=every, triggers=[helm.id, *triggers], opts=opts, **commands
            )

        # Deleting this command cleans up what uninstalling the release leaves. It is deleted before
        # the release, also when that is replaced, because the release is its trigger; and it exists
        # even if KAI never becomes ready.
        config = "remove" if release.clean_up_config else "keep"
        probe(f"{name}-clean-up", {"KAI_CONFIG": config}, step, delete="kai clean-up")
        # A finished release is not a ready KAI (K16): its operator creates the other parts, and the
        # queue webhook refuses every Queue until they run.
        desired: dict[str, Any] = {
            "KAI_VERSION": release.version,
            "KAI_CHART": helm.version,
            "KAI_DEPLOYMENTS": ",".join(release.deployments),
            "KAI_CONDITIONS": ",".join(release.ready_conditions),
            "KAI_TIMEOUT": str(timeout),
        }
        number = deployed.read().again(KAI_SCHEDULER, name)
        rerun = [str(number)] if number else []
        ready = probe(f"{name}-ready", desired, step, *rerun, create="kai wait", update="kai wait")
        if args.get("shards") or "fairshare" in args:
            # The chart creates the shard `default` and the Config; this owns single fields of them
            # by server-side apply, which Helm's upgrades and the operator leave alone. A Patch
            # resource would not be applied again after a release was replaced with its objects,
            # because no input of it changes; this command has the release as a trigger.
            objects = resolved(partial(json.dumps, sort_keys=True), kai_objects(release, args))
            applied = {"KAI_VERSION": release.version, "KAI_OBJECTS": objects}
            apply = "shards apply"
            verbs = {"create": apply, "update": apply, "delete": "shards remove"}
            probe(f"{component_name}-shards-apply", applied, after(step, ready), **verbs)
        # Workloads name a topology in the annotation kai.scheduler/topology. Its levels are
        # immutable: a new list replaces it.
        replaced: Any = {"replace_on_changes": ["spec"], "delete_before_replace": True}
        for topology, levels in args.get("topologies", {}).items():
            CustomResource(
                f"{component_name}-topologies-{topology}",
                api_version="kai.scheduler/v1alpha1",
                kind="Topology",
                metadata={"name": topology},
                spec={"levels": [{"nodeLabel": label} for label in levels]},
                opts=after(child_of(self, opts, ordered=False, **provider, **replaced), ready),
            )
        self.namespace = pulumi.Output.from_input(KAI_NAMESPACE)
        # The version is the release's; registered here, it would have the whole state written once
        # more before a switch begins.
        self.register_outputs({"version": args["version"]})

    def _before(
        self, name: str, args: KaiSchedulerArgs, release: KaiRelease, first: pulumi.ResourceOptions
    ) -> list[pulumi.Resource]:
        """Declare what the release depends on."""
        existing, before = args.get("use_existing", ()), list[pulumi.Resource]()
        metadata: Any = {"name": KAI_NAMESPACE}
        if "namespace" not in existing:
            # Nothing in it takes long to delete. In a vCluster its tenant may block the deletion.
            soon = pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(delete="2m"))
            opts = pulumi.ResourceOptions.merge(first, soon)
            before.append(
                kubernetes.core.v1.Namespace(f"{name}-namespace", metadata=metadata, opts=opts)
            )
        if release.needs_cluster_policy_crd and "clusterPolicyCrd" not in existing:
            # On a host the CRD is kept unchanged: a GPU operator may have been installed since and
            # own it, and deleting the CRD deletes its ClusterPolicy.
            kept = pulumi.ResourceOptions(retain_on_delete=True, ignore_changes=["spec"])
            inside = "probe_environment" in args
            crd = kubernetes.apiextensions.v1.CustomResourceDefinition(
                f"{name}-cluster-policy",
                metadata={"name": "clusterpolicies.nvidia.com"},
                spec=table("cluster-policy"),
                opts=first if inside else pulumi.ResourceOptions.merge(first, kept),
            )
            before.append(crd)
        if registries := args.get("registries"):
            last = after(first, *before)
            before.append(registry_secret(name, OF_STACK, KAI_NAMESPACE, registries, last))
        return before

    def _replacing(self, name: str, release: KaiRelease) -> list[str]:
        """Properties whose change replaces the release; logs whether it is upgraded or replaced."""
        before = deployed.read().versions.get(deployed.named(KAI_SCHEDULER, f"{name}-release"))
        known = KAI.get(before or "")
        if before is not None and before != release.version:
            why = why_replaced(known, release) if known else f"{before} is not in the table"
            verb = "replaced" if why else "upgraded in place"
            step = f"{before} → {release.version}: {why or 'helm upgrades it in place'}"
            grouped = release.groups_deployments and not (known and known.groups_deployments)
            more = "; a Deployment made after it is one PodGroup" if grouped else ""
            pulumi.log.info(f"KAI is {verb}: {step}. Queues and running pods stay{more}", self)
            if not why:
                return []
        # Where an upgrade recreates kai-config, so does a change of values (K12).
        other = ["values", "chart", "repositoryOpts"]
        return ["version", *other] if release.recreates_config else ["version"]


def _on_host(name: str, args: KaiSchedulerArgs) -> list[HostObject]:
    """What goes with the stack; the CRD of a GPU operator stays. `name` begins the resources'."""
    objects = []
    if "namespace" not in args.get("use_existing", ()):
        path = f"/api/v1/namespaces/{KAI_NAMESPACE}"
        objects.append(HostObject(NAMESPACE, f"{name}-namespace", path))
    for topology in args.get("topologies", {}):
        path = f"/apis/kai.scheduler/v1alpha1/topologies/{topology}"
        resource = f"{name.removesuffix('-kai')}-topologies-{topology}"
        objects.append(HostObject(_TOPOLOGY, resource, path))
    return objects


def kai_values(release: KaiRelease, args: Mapping[str, Any]) -> dict[str, Any]:
    """What the chart of that version gets for KaiSchedulerArgs; their `values` come last.

    Through v0.17 the charts share no GPUs by themselves. Without a RuntimeClass the pods that
    reserve a shared GPU see none where the container runtime's default is not NVIDIA's.
    """
    shares, mode = args.get("gpu_sharing", True), args.get("gpu_sharing_mode", NOT_ENFORCED)
    level, runtime_class = args.get("isolation", "baseline"), release.runtime_class_key
    labelled = version_key(release.version) >= _LABELS_SINCE
    computed = {
        "tolerations": [toleration_spec(each) for each in args.get("tolerations", ())],
        "pull_secrets": [{"name": OF_STACK}] if args.get("registries") else None,
        "reservation_labels": dict(args.get("labels", {})) if labelled else None,
    }
    layers = {
        "every": True,
        "hidden GPUs": level != "off" and release.hides_gpus,
        "restricted": level == "restricted",
        "prometheus": release.prometheus_values and "fairshare" in args,
        "existing priority classes": "priorityClasses" in args.get("use_existing", ()),
    }
    return merged(
        sharing_values(release.version, mode if shares else DISABLED),
        nested(runtime_class, "nvidia") if runtime_class else {},
        release.values,
        values_of("kai", (layer for layer in layers if layers[layer]), {**args, **computed}),
        args.get("values", {}),
    )


def kai_objects(release: KaiRelease, args: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The `spec` of each SchedulingShard, and of the Config where the chart has no values for it,
    by plural kind and name.
    """
    shards, fairshare = args.get("shards", {}), args.get("fairshare")
    if fairshare is None:
        return {"schedulingshards": {name: _shard(name, shard) for name, shard in shards.items()}}
    over_time = values_of("kai", ["shard over time"], fairshare)
    named = {DEFAULT_SHARD: {}, **shards}
    specs = {name: _shard(name, shard) | over_time for name, shard in named.items()}
    config = {} if release.prometheus_values else values_of("kai", ["prometheus"], args)
    return {"schedulingshards": specs} | ({"configs": {"kai-config": config}} if config else {})


def _shard(name: str, shard: Mapping[str, Any]) -> dict[str, Any]:
    # KAI takes integers; other languages send every number as a fraction.
    depth = {action: resolved(int, most) for action, most in shard.get("queue_depth", {}).items()}
    computed: dict[str, Any] = {
        "partition": None if name == DEFAULT_SHARD else name,
        "queue_depth": depth,
    }
    if shard.get("placement"):
        computed["placement"] = {"gpu": "binpack", "cpu": "binpack", **shard["placement"]}
    return values_of("kai", ["shard"], {**shard, **computed})
