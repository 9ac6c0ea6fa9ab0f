"""The arguments of each component, filled in from the settings of a stack.

Settings and arguments have the same names, so most of them are handed on as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, SecretStr

from kai_fleet import vcluster_values
from kai_fleet.gpu_providers import GPU_PROVIDERS
from kai_fleet.inputs import toleration_text, without_none
from kai_fleet.options import hidden
from kai_fleet.queue_specs import UNLIMITED, every_spec
from kai_fleet.queue_specs import walk as walk_args
from kai_fleet.releases import DEFAULT_VCLUSTER, DISABLED, mig, takes_external_pod_groups
from kai_fleet.releases.chart_values import merged
from kai_fleet.releases.sharing import MODES, NV_FRACTIONS, mode_in
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.access import OF_STACK, OF_TEAM, Access
from kai_fleet.settings.sections.kubernetes import Affinity
from kai_fleet.settings.sections.platform import HostKai, Shard
from kai_fleet.settings.sections.queues import Queue, Share, walk
from kai_fleet.settings.sections.teams import HostPlace, Scheduler, TeamSettings

_PLACES: Final = {"virtual": "inside", "host": "host", "default": "none"}
_OF_GUARDS: Final = (
    *("level", "priority_classes", "runtime_classes", "annotations", "volumes"),
    *("network", "bounds"),
)
_OF_PLACE: Final = ("node_pool", "tolerations", "labels", "annotations")


# What is returned is of the component's own type: the unit tests hold every key against it.
@dataclass(frozen=True)
class Arguments:
    """`host` is `kubeconfig` or `context` of the host cluster. `existing` is what others
    made there: `use_existing` of `gpu` and `kai`, and the `teams` with a namespace of others.
    """

    settings: Settings
    host: Mapping[str, Any] = field(default_factory=dict)
    existing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _teams(self) -> tuple[str, ...]:
        """Those that this stack runs, and those that it grants a stack of their own."""
        return (*self.settings.teams, *self.settings.team_stacks)

    # The host.

    def gpu_stack(self) -> Any:
        """Of the host's GpuStack, whose daemons run on every team's nodes."""
        settings = self.settings
        every = (_plain(settings.own_of(name).tolerations) for name in self._teams)
        tolerations = {str(toleration_text(each)): each for own in every for each in own}
        return _filled(
            settings.gpu,
            resource=None,
            tolerations=[*tolerations.values()],
            registries=settings.registries,
            in_kind=settings.cluster.kind is not None,
            use_existing=self.existing.get("gpu"),
        )

    def host_kai(self) -> Any:
        """Of the host's KaiScheduler, for teams in mode host."""
        settings, kai = self.settings, self.settings.kai
        assert kai is not None
        return self._kai(
            kai,
            kai,
            labels=settings.labels,
            isolation=settings.isolation.level,
            registries=settings.registries,
            use_existing=self.existing.get("kai"),
            cluster_policy_crd=not GPU_PROVIDERS[settings.gpu.provider].cluster_policy,
            **self.host,
        )

    def host_queues(self) -> Any:
        """Of the host's QueueTree: a queue of teams has no more GPUs than they have."""
        settings, limits = self.settings, dict[str, int]()
        for name in self._teams:
            _, queue = self._scheduler(name)
            if queue is not None:
                limits[queue] = limits.get(queue, 0) + settings.own_of(name).counted
        queues = _bounded(queue_args(settings.queues), limits)
        return {"queues": queues, "cluster": settings.cluster.name, **self.host}

    def monitoring(self) -> Any:
        """Of the host's FleetMonitoring."""
        settings = self.settings
        assert settings.monitoring is not None
        return _filled(
            settings.monitoring,
            certificates=None,
            gpu_resource=settings.gpu.resource,
            host_kai=settings.kai is not None,
            parent_queues=_parents(settings.queues),
        )

    def accounts(self) -> Any:
        """Of the TeamStackAccess: an account for each team with a stack of its own."""
        teams = {
            name: _filled(
                parent_queue=grant.parent_queue if self.settings.kai else None,
                foreign_queues=self._foreign_queues(name),
            )
            for name, grant in self.settings.team_stacks.items()
        }
        return {"teams": teams}

    # A team's place on the host.

    def namespace(self, name: str) -> Any:
        """Of the TeamNamespace of a team that this stack runs, or grants a stack of its own."""
        settings, own = self.settings, self.settings.own_of(name)
        scheduler, queue = self._scheduler(name)
        isolation, slices, kai = own.isolation, own.slices, settings.kai
        by_host, granted = scheduler == "host", name in settings.team_stacks
        return _filled(
            **{key: getattr(own, key) for key in _OF_PLACE},
            name=f"team-{name}",
            guards="declared",  # the program declares them before any namespace
            gpus=max(0, own.counted - int(mig.gpus_of(slices))),
            gpu_resource=settings.gpu.resource,
            slices=slices,
            devices=isolation.devices,
            device_classes=isolation.device_classes,
            control_pool=self.control_pool(name),
            foreign_pools=[] if own.node_pool else self._foreign_pools(name),
            scheduler=scheduler,
            isolation={key: getattr(isolation, key) for key in _OF_GUARDS},
            queues=[queue] if by_host and queue else [],
            queue_prefix=f"{name}-" if by_host and granted else None,
            foreign_queues=self._foreign_queues(name),
            host_kai=kai is not None,
            guard=settings.guard.mode,
            gpu_sharing=kai is not None and settings.shares_gpus(kai),
            nv_fractions=by_host and kai is not None and settings.sharing_of(kai) == NV_FRACTIONS,
            # Nothing that a team's values say: images with such names pass where others do not.
            kai_images=settings.sources.known.kai_images,
            registries=settings.registries,
            account=granted,
            monitoring=self._team_monitoring(name),
            use_existing=name in self.existing.get("teams", ()),
        ) | ({} if granted else self._rights(name))

    def _scheduler(self, name: str) -> tuple[str, str | None]:
        """Where the KAI of a team is, and its queue on the host."""
        own = self.settings.own_of(name)
        if isinstance(own, TeamSettings):
            return _PLACES[own.scheduler.mode], own.queue
        if self.settings.kai is None:  # the stack of the team chooses the mode
            return "inside", own.parent_queue
        return "host" if own.parent_queue else "none", own.parent_queue

    def _rights(self, name: str) -> Any:
        """What decides about the rights of a team's vCluster, without the address of a database."""
        args = self.vcluster(name)
        if "data_source" in args["store"]:
            args["store"] = {}
        version = args.get("version", DEFAULT_VCLUSTER)
        return {"vcluster_version": version, "vcluster_values": chart_values(args)}

    def control_pool(self, name: str) -> dict[str, str]:
        """The labels of the nodes of a team's control plane: the platform's own, or the team's."""
        own = self.settings.own_of(name)
        of_vcluster = own.vcluster.node_pool if isinstance(own, TeamSettings) else {}
        return dict(of_vcluster or self.settings.vcluster.node_pool or own.node_pool)

    def _foreign_pools(self, name: str) -> list[dict[str, str]]:
        """The pools of the platform's control planes and of other teams, each once."""
        others = [team for team in self._teams if team != name]
        pools = [self.settings.vcluster.node_pool, *map(self.control_pool, others)]
        pools += [self.settings.own_of(team).node_pool for team in others]
        labels = {tuple(sorted(pool.items())) for pool in pools if pool}
        return [dict(pool) for pool in sorted(labels)]

    def _foreign_queues(self, name: str) -> list[str]:
        """Queues and teams whose names only begin like those of a team's own queues."""
        every = {*(placed.name for placed in walk(self.settings.queues)), *self._teams}
        return sorted(other for other in every if other.startswith(f"{name}-"))

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
                args["guard"] = {
                    "mode": settings.guard.mode,
                    "outside": settings.guard.outside([*team.queues]),
                    "pod_groups": takes_external_pod_groups(team.scheduler.version or ""),
                    "gpu_sharing": settings.shares_gpus(team.scheduler),
                    "gpu_resource": settings.gpu.resource,
                }
        elif team.scheduler.mode == "host" and team.queues:
            # Below the queue that the team is granted.
            facts = settings.platform_facts
            parent, shard = facts.granted_queue(name) if facts else (None, None)
            args["host_queues"] = {
                **_filled(parent=parent, cluster=settings.cluster.name),
                "queues": queue_args(team.queues, shard),
                **self.host,
            }
        return args

    def vcluster(self, name: str) -> Any:
        """Of a team's VirtualCluster, but for the way to the host."""
        team = self.settings.teams[name]
        own = team.vcluster
        return _filled(
            own,
            **{key: getattr(team, key) for key in (*_OF_PLACE, "affinity", "registries")},
            namespace=f"team-{name}",
            mode=team.scheduler.mode,
            control_pool=self.control_pool(name),
            access=own.access or Access(),
            oidc=own.oidc and {key: value for key, value in own.oidc if key != "scopes"},
            groups=own.groups if own.oidc else {},
            isolation=team.isolation.level,
            image_pull_secrets=self._pull_secrets(name, own.image_pull_secrets),
        )

    def _pull_secrets(self, name: str, existing: Sequence[str]) -> list[str]:
        """Those that exist, and those that are made: in a team stack also by its platform."""
        facts, secrets = self.settings.platform_facts, [*existing]
        if self.settings.registries or (facts is not None and facts.registries):
            secrets.append(OF_STACK)
        if self.settings.teams[name].registries:
            secrets.append(OF_TEAM)
        return [*dict.fromkeys(secrets)]

    def kai(self, name: str) -> Any:
        """Of the KaiScheduler in a team's vCluster: its pods pull as their account on the host."""
        team = self.settings.teams[name]
        level = team.isolation.level
        return self._kai(team.scheduler, team, labels=team.labels, isolation=level)

    def _kai(self, own: HostKai | Scheduler, place: HostKai | HostPlace, **more: Any) -> Any:
        """Of a KAI whose pods are at a place."""
        written = mode_in(own.version or "", own.values)
        mode = written if written in MODES else self.settings.sharing_of(own)
        return _filled(
            own,
            mode=None,
            gpu_sharing=mode != DISABLED,
            gpu_sharing_mode=None if mode == DISABLED else mode,
            tolerations=place.tolerations,
            affinity=place.affinity,
            shards={name: _shard(shard) for name, shard in own.shards.items()},
            **more,
        )

    def queues(self, name: str) -> Any:
        """Of the QueueTree inside a team's vCluster, but for the way there."""
        team = self.settings.teams[name]
        own = {"queues": queue_args(team.queues), "gpus": team.counted}
        return own | ({"pools": team.gpus_by_pool} if team.pools else {})


def chart_values(args: Mapping[str, Any]) -> dict[str, Any]:
    """What VirtualClusterArgs and their values say together, by the keys of the chart."""
    return merged(
        vcluster_values.access_values(args["access"]),
        vcluster_values.control_plane(args),
        args["values"],
    )


def _filled(*parts: BaseModel, **own: Any) -> Any:
    """Arguments with the keys of settings, and with keys of their own in place of these; None drops
    a key. Values for a chart stay as they are written, null among them.
    """
    given = {key: value for part in parts for key, value in part} | own
    values = {"values": hidden(given.pop("values"))} if "values" in given else {}
    return _plain(given) | values


def _plain(value: Any) -> Any:
    """Settings as plain values: models as mappings without what is unset, secrets in clear."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, Affinity):
        return value.spec
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in without_none(value).items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _shard(shard: Shard) -> dict[str, Any]:
    """The keys of ShardArgs, which are those of two sections."""
    placement, runtime = shard.placement, shard.min_runtime
    of_placement = {f"{part}_placement": strategy for part, strategy in placement or ()}
    of_runtime = {f"{action}_min_runtime": time for action, time in runtime or ()}
    return {**of_placement, **of_runtime, "queue_depth": shard.queue_depth}


def _parents(tree: Mapping[str, Queue]) -> list[str]:
    """The queues with others below them."""
    return [placed.name for placed in walk(tree) if placed.queue.children]


def queue_args(tree: Mapping[str, Queue], shard: str | None = None) -> dict[str, Any]:
    """The queues by name, as they are written: a QueueTree fills in the quotas that are left out.

    `shard` serves all of them, where they hang below a queue of another tree.
    """
    served = {"shard": shard} if shard else {}
    return {name: _queue(queue) | served for name, queue in tree.items()}


def _queue(queue: Queue) -> dict[str, Any]:
    written = without_none(queue.written) | {"children": queue_args(queue.children)}
    return {
        key: value.written if isinstance(value, Share) else value for key, value in written.items()
    }


def _bounded(queues: dict[str, Any], limits: Mapping[str, int]) -> dict[str, Any]:
    """QueueArgs of the host with every quota of GPUs written out.

    `limits` are the GPUs of the teams that a queue is for: it has no more of them.
    """
    # Before anything is changed: a quota of all that is above a bounded queue stays.
    specs = every_spec(queues)
    for (name, queue), (_, spec) in zip([*walk_args(queues)], specs, strict=True):
        share = {**queue.get("gpu", {}), "quota": spec["resources"]["gpu"]["quota"]}
        if (most := limits.get(name)) is not None:
            if share["quota"] == UNLIMITED:
                share["quota"] = most
            share.setdefault("limit", max(most, share["quota"]))
        queue["gpu"] = share
    return queues
