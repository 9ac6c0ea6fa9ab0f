"""The arguments of each component, filled in from the settings of a stack."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet import vcluster_values
from kai_fleet.fleet.queue_arguments import host_queue_args, queue_args
from kai_fleet.inputs import without_none
from kai_fleet.options import hidden
from kai_fleet.releases import DEFAULT_VCLUSTER, DISABLED, mig, takes_external_pod_groups
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.sharing import MODES, NV_FRACTIONS, mode_in
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.access import OF_STACK, OF_TEAM, Access, Registries
from kai_fleet.settings.sections.isolation import Isolation
from kai_fleet.settings.sections.kubernetes import Toleration
from kai_fleet.settings.sections.platform import HostKai, Scheduling, Shard
from kai_fleet.settings.sections.queues import Queue, walk
from kai_fleet.settings.sections.teams import HostPlace, Scheduler, TeamSettings
from kai_fleet.settings.sections.vcluster import Store, Vcluster

_PLACES: Final = {"virtual": "inside", "host": "host", "default": "none"}


# What is returned is of the component's own type: the unit tests hold every key against it.
@dataclass(frozen=True)
class Arguments:
    """`host` is `kubeconfig` or `context` of the host cluster. `existing` is what others
    made there: `use_existing` of `gpu` and `kai`, and the `teams` with a namespace of others.
    """

    settings: Settings
    host: Mapping[str, Any] = field(default_factory=dict)
    existing: Mapping[str, Any] = field(default_factory=dict)

    # The host.

    def gpu_stack(self) -> Any:
        """Of the host's GpuStack, whose daemons run on every team's nodes."""
        settings, gpu = self.settings, self.settings.gpu
        names = (*settings.teams, *settings.team_stacks)
        every = {it.text: it for name in names for it in settings.own_of(name).tolerations}
        return _given(
            provider=gpu.provider,
            version=gpu.version,
            chart=gpu.chart,
            values=hidden(gpu.values),
            tolerations=_tolerations(every.values()),
            registries=_registries(settings.registries),
            system_priorities=gpu.system_priorities,
            in_kind=settings.cluster.kind is not None,
            use_existing=self.existing.get("gpu"),
        )

    def host_kai(self) -> Any:
        """Of the host's KaiScheduler, for teams in mode host."""
        settings, kai = self.settings, self.settings.kai
        assert kai is not None
        return {
            **self._kai(kai, kai, settings.labels, settings.isolation),
            **_given(
                registries=_registries(settings.registries), use_existing=self.existing.get("kai")
            ),
            "cluster_policy_crd": settings.gpu.provider != "operator",
            **self.host,
        }

    def host_queues(self) -> Any:
        """Of the host's QueueTree: a queue of teams has no more GPUs than they have (T13)."""
        queues = host_queue_args(self.settings.queues, self._queue_limits())
        return {"queues": queues, "cluster": self.settings.cluster.name, **self.host}

    def _queue_limits(self) -> dict[str, int]:
        settings, limits = self.settings, dict[str, int]()
        for name, queue in (
            *((name, team.queue) for name, team in settings.teams.items()),
            *((name, grant.parent_queue) for name, grant in settings.team_stacks.items()),
        ):
            if queue is not None:
                limits[queue] = limits.get(queue, 0) + settings.gpus_of(name)
        return limits

    def monitoring(self) -> Any:
        """Of the host's FleetMonitoring."""
        settings, monitoring = self.settings, self.settings.monitoring
        assert monitoring is not None
        return {
            **{key: it for key, it in monitoring if key != "certificates"},
            "gpu_resource": settings.gpu.resource,
            "host_kai": settings.kai is not None,
            "parent_queues": _parents(settings.queues),
        }

    def accounts(self) -> Any:
        """Of the TeamStackAccess: an account for each team with a stack of its own."""
        return {
            "teams": {
                name: _given(
                    parent_queue=grant.parent_queue if self.settings.kai else None,
                    foreign_queues=self._foreign_queues(name),
                )
                for name, grant in self.settings.team_stacks.items()
            }
        }

    # A team's place on the host.

    def namespace(self, name: str) -> Any:
        """Of the TeamNamespace of a team that this stack runs, or grants a stack of its own."""
        settings, has, place = (
            self.settings,
            self.settings.own_of(name),
            self.settings.own_of(name),
        )
        scheduler, queue = self._scheduler(name)
        isolation, slices, kai = place.isolation, settings.slices_of(name), settings.kai
        by_host, granted = scheduler == "host", name in settings.team_stacks
        return _given(
            name=f"team-{name}",
            guards="declared",  # the program declares them before any namespace
            gpus=max(0, settings.gpus_of(name) - int(mig.gpus_of(slices))),
            gpu_resource=settings.gpu.resource,
            slices=slices,
            devices=dict(isolation.devices),
            device_classes=dict(isolation.device_classes),
            node_pool=dict(has.node_pool),
            control_pool=self.control_pool(name),
            foreign_pools=[] if has.node_pool else self._foreign_pools(name),
            scheduler=scheduler,
            isolation=_isolation(isolation),
            tolerations=_tolerations(place.tolerations),
            queues=[queue] if by_host and queue else [],
            queue_prefix=f"{name}-" if by_host and granted else None,
            foreign_queues=self._foreign_queues(name),
            host_kai=kai is not None,
            guard=settings.guard.mode,
            gpu_sharing=kai is not None and settings.shares_gpus(kai),
            nv_fractions=by_host and kai is not None and settings.sharing_of(kai) == NV_FRACTIONS,
            # Nothing that a team's values say: images with such names pass where others do not.
            kai_images=[*settings.sources.known.kai_images],
            labels=dict(place.labels),
            annotations=dict(place.annotations),
            registries=_registries(settings.registries),
            account=granted,
            monitoring=self._team_monitoring(name),
            use_existing=name in self.existing.get("teams", ()),
            **({} if granted else self._rights(name)),
        )

    def _scheduler(self, name: str) -> tuple[str, str | None]:
        """Where the KAI of a team is, and its queue on the host."""
        has = self.settings.own_of(name)
        if isinstance(has, TeamSettings):
            return _PLACES[has.scheduler.mode], has.queue
        if self.settings.kai is None:  # the stack of the team chooses the mode
            return "inside", has.parent_queue
        return "host" if has.parent_queue else "none", has.parent_queue

    def _rights(self, name: str) -> Any:
        """What decides about the rights of a team's vCluster, without the address of a database."""
        args = self.vcluster(name)
        if "data_source" in args["store"]:
            args["store"] = {}
        return {
            "vcluster_version": args.get("version", DEFAULT_VCLUSTER),
            "vcluster_values": chart_values(args),
        }

    def control_pool(self, name: str) -> dict[str, str]:
        """The labels of the nodes of a team's control plane: the platform's own, or the team's."""
        has = self.settings.own_of(name)
        own = has.vcluster.node_pool if isinstance(has, TeamSettings) else {}
        return dict(own or self.settings.vcluster.node_pool or has.node_pool)

    def _foreign_pools(self, name: str) -> list[dict[str, str]]:
        """The pools of the platform's control planes and of other teams, each once."""
        settings = self.settings
        others = [it for it in (*settings.teams, *settings.team_stacks) if it != name]
        pools = [settings.vcluster.node_pool, *(settings.own_of(it).node_pool for it in others)]
        pools += [self.control_pool(it) for it in others]
        return [dict(pool) for pool in sorted({tuple(sorted(it.items())) for it in pools if it})]

    def _foreign_queues(self, name: str) -> list[str]:
        """Queues and teams whose names only begin like those of a team's own queues."""
        settings = self.settings
        queues = (placed.name for placed in walk(settings.queues))
        every = {*queues, *settings.teams, *settings.team_stacks}
        return sorted(it for it in every if it.startswith(f"{name}-"))

    def _team_monitoring(self, name: str) -> Any:
        monitoring, team = self.settings.monitoring, self.settings.teams.get(name)
        if monitoring is None:
            return None
        keys = ("namespace", "operator", "certificates", "interval", "labels")
        inside = team is not None and team.scheduler.mode == "virtual"
        return {
            **{key: getattr(monitoring, key) for key in keys},
            "scheduler": inside,
            "parent_queues": _parents(team.queues) if team and inside else [],
        }

    # A team.

    def team(self, name: str) -> Any:
        """Of a Team. In a team stack its namespace is the platform's."""
        settings, team = self.settings, self.settings.teams[name]
        args: dict[str, Any] = {"vcluster": {**self.vcluster(name), **self.host}}
        if settings.platform_facts is None:
            args["namespace"] = self.namespace(name)
        if team.scheduler.mode == "virtual":
            args |= {"kai": self.kai(name), "queues": self.queues(name)}
            if settings.guard.mode != "off":
                args["guard"] = self._guard(team, args["queues"]["queues"])
        elif team.scheduler.mode == "host" and team.queues:
            args["host_queues"] = self._granted_queues(name)
        return args

    def notes(self, name: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Labels and annotations of everything that is declared for a team."""
        place = self.settings.own_of(name)
        return place.labels, place.annotations

    def vcluster(self, name: str) -> Any:
        """Of a team's VirtualCluster, but for the way to the host."""
        settings, team, place = (
            self.settings,
            self.settings.teams[name],
            self.settings.own_of(name),
        )
        own = settings.teams[name].vcluster
        return _given(
            namespace=f"team-{name}",
            version=own.version,
            untested=own.untested,
            chart=own.chart,
            mode=team.scheduler.mode,
            node_pool=dict(team.node_pool),
            control_pool=self.control_pool(name),
            kubernetes_version=own.kubernetes_version,
            access=_access(own.access or Access()),
            replicas=own.replicas,
            store=_store(own.store),
            storage_class=own.storage_class,
            size=own.size,
            resources={
                kind: amounts for kind, it in own.resources if (amounts := without_none(dict(it)))
            },
            oidc=_oidc(own),
            groups=dict(own.groups) if own.oidc else {},
            isolation=place.isolation.level,
            tolerations=_tolerations(place.tolerations),
            affinity=place.affinity.spec if place.affinity else None,
            image_pull_secrets=self._pull_secrets(name, own.image_pull_secrets),
            registries=_registries(team.registries),
            labels=dict(place.labels),
            annotations=dict(place.annotations),
            licensed=own.licensed,
            values=hidden(own.values),
        )

    def _pull_secrets(self, name: str, there: Sequence[str]) -> list[str]:
        """Those that are there, and those that are made: in a team stack also by its platform."""
        facts, made = self.settings.platform_facts, list[str]()
        if self.settings.registries or (facts is not None and facts.registries):
            made.append(OF_STACK)
        if self.settings.teams[name].registries:
            made.append(OF_TEAM)
        return [*dict.fromkeys([*there, *made])]

    def kai(self, name: str) -> Any:
        """Of the KaiScheduler in a team's vCluster: its pods pull as their account on the host."""
        place = self.settings.own_of(name)
        own = self.settings.teams[name].scheduler
        return self._kai(own, place, place.labels, place.isolation)

    def _kai(
        self,
        own: HostKai | Scheduler,
        place: HostKai | HostPlace,
        labels: Mapping[str, str],
        isolation: Isolation,
    ) -> Any:
        """Of a KAI whose pods are at a place."""
        written = mode_in(own.version or "", own.values)
        mode = written if written in MODES else self.settings.sharing_of(own)
        return _given(
            version=own.version,
            untested=own.untested,
            chart=own.chart,
            values=hidden(own.values),
            gpu_sharing=mode != DISABLED,
            gpu_sharing_mode=None if mode == DISABLED else mode,
            isolation=isolation.level,
            tolerations=_tolerations(place.tolerations),
            affinity=place.affinity.spec if place.affinity else None,
            labels=dict(labels),
            **_scheduling(own),
        )

    def queues(self, name: str) -> Any:
        """Of the QueueTree inside a team's vCluster, but for the way there."""
        team = self.settings.teams[name]
        return _given(
            queues=queue_args(team.queues),
            gpus=self.settings.gpus_of(name),
            pools=team.gpus_by_pool or None,
        )

    def _granted_queues(self, name: str) -> Any:
        """Of the queues that a team stack makes below the one that its team is granted."""
        facts = self.settings.platform_facts
        parent, shard = facts.granted_queue(name) if facts else (None, None)
        queues = queue_args(self.settings.teams[name].queues, shard)
        cluster = self.settings.cluster.name
        return _given(queues=queues, parent=parent, cluster=cluster, **self.host)

    def _guard(self, team: TeamSettings, queues: Mapping[str, Any]) -> Any:
        settings, guard = self.settings, self.settings.guard
        return {
            "mode": guard.mode,
            "outside": guard.outside([*queues]),
            "pod_groups": takes_external_pod_groups(team.scheduler.version or ""),
            "gpu_sharing": settings.shares_gpus(team.scheduler),
            "gpu_resource": settings.gpu.resource,
        }


def chart_values(args: Mapping[str, Any]) -> dict[str, Any]:
    """What VirtualClusterArgs and their values say together, by the keys of the chart."""
    return merged(
        vcluster_values.access_values(args["access"]),
        vcluster_values.control_plane(args),
        args["values"],
    )


def _given(**values: Any) -> Any:
    return without_none(values)


def _parents(tree: Mapping[str, Queue]) -> list[str]:
    """The queues with others below them."""
    return [placed.name for placed in walk(tree) if placed.queue.children]


def _tolerations(tolerations: Iterable[Toleration]) -> Any:
    return [it.spec for it in tolerations]


def _registries(registries: Registries) -> Any:
    return {
        registry: {"username": own.username, "password": own.password.get_secret_value()}
        for registry, own in registries.items()
    }


def _isolation(isolation: Isolation) -> Any:
    """The fields of IsolationArgs have the names of the settings."""
    own = ("level", "priority_classes", "runtime_classes", "annotations", "volumes")
    network = isolation.network
    return {
        **{key: getattr(isolation, key) for key in own},
        "network": {key: getattr(network, key) for key in type(network).model_fields},
        "bounds": without_none(dict(isolation.bounds)),
    }


def _access(access: Access) -> Any:
    given = {key: value or None for key, value in access}
    return without_none({"class_name": given.pop("class_"), **given})


def _store(store: Store) -> Any:
    secret = store.data_source
    return without_none({**dict(store), "data_source": secret and secret.get_secret_value()})


def _oidc(vcluster: Vcluster) -> Any:
    if vcluster.oidc is None:
        return None
    return without_none({key: it for key, it in vcluster.oidc if key != "scopes"})


def _scheduling(own: Scheduling) -> Any:
    return _given(
        shards={name: _shard(shard) for name, shard in own.shards.items()} or None,
        fairshare=None if own.fairshare is None else without_none(dict(own.fairshare)),
        topologies={name: [*levels] for name, levels in own.topologies.items()} or None,
    )


def _shard(shard: Shard) -> Any:
    placement, runtime = shard.placement, shard.min_runtime
    return _given(
        gpu_placement=placement and placement.gpu,
        cpu_placement=placement and placement.cpu,
        preempt_min_runtime=runtime and runtime.preempt,
        reclaim_min_runtime=runtime and runtime.reclaim,
        queue_depth=dict(shard.queue_depth) or None,
    )
