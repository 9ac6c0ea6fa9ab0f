"""The arguments of each component, from the settings of a stack.

Settings and arguments have the same names, so most are passed on unchanged.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pydantic import BaseModel, SecretStr

from kai_fleet.inputs import resolved, toleration_text, without_none
from kai_fleet.queue_specs import UNLIMITED, every_spec
from kai_fleet.queue_specs import walk as walk_args
from kai_fleet.releases import DEFAULT_VCLUSTER, DISABLED, GPU_PROVIDERS, KAI, mig, taken_for
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet.releases.sharing import MODES, NV_FRACTIONS, mode_in
from kai_fleet.releases.sources import in_any
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.access import OF_STACK, OF_TEAM
from kai_fleet.settings.sections.platform import HostKai
from kai_fleet.settings.sections.queues import Queue, walk
from kai_fleet.settings.sections.teams import HostPlace, Scheduler, TeamSettings
from kai_fleet.vcluster_values import argument_values

_PLACES: Final = {"virtual": "inside", "host": "host", "default": "none"}
_OF_GUARDS: Final = (
    *("level", "priority_classes", "runtime_classes", "annotations", "volumes"),
    *("network", "bounds"),
)
_OF_PLACE: Final = ("node_pool", "tolerations", "labels", "annotations")


# Methods return Args of components, typed Any: unit tests check the keys against the TypedDicts.
@dataclass(frozen=True)
class Arguments:
    """Arguments for one stack. `host` is `kubeconfig` or `context` of the host cluster. `existing`
    has `use_existing` of `gpu` and of `kai`, and the `teams` whose namespace existed before.
    `refused` is that of the host's QueueTree, once it is declared.
    """

    settings: Settings
    host: Mapping[str, Any] = field(default_factory=dict)
    existing: Mapping[str, Any] = field(default_factory=dict)
    refused: pulumi.Input[dict[str, str]] | None = None

    @property
    def _teams(self) -> tuple[str, ...]:
        """Teams that this stack runs, and teams that it grants a stack of their own."""
        return (*self.settings.teams, *self.settings.team_stacks)

    # The host.

    def gpu_stack(self) -> Any:
        """GpuStackArgs; its DaemonSets tolerate the taints of every team's nodes."""
        settings = self.settings
        by_team = (_plain(settings.own_of(name).tolerations) for name in self._teams)
        tolerations = {str(toleration_text(item)): item for items in by_team for item in items}
        return _filled(
            settings.gpu,
            resource=None,
            untested=None,
            tolerations=[*tolerations.values()],
            registries=settings.registries,
            chart_account=self._chart_account(settings.gpu),
            in_kind=settings.cluster.kind is not None,
            use_existing=self.existing.get("gpu"),
        )

    def host_guards(self) -> Any:
        """HostGuardsArgs. Whether another stack has the host was asked before: guards that are
        there without being in the state are of an update that was cut off.
        """
        return {"host_kai": self.settings.kai is not None, "use_existing": False}

    def host_kai(self) -> Any:
        """KaiSchedulerArgs of the host's KAI, for teams in mode host."""
        settings, kai = self.settings, self.settings.kai
        assert kai is not None
        by_operator = GPU_PROVIDERS[settings.gpu.provider].cluster_policy
        brought = ["clusterPolicyCrd"] if by_operator else []
        return self._kai(
            kai,
            kai,
            labels=settings.labels,
            isolation=settings.isolation.level,
            registries=settings.registries,
            use_existing=[*self.existing.get("kai", ()), *brought],
            **self.host,
        )

    def host_queues(self) -> Any:
        """QueueTreeArgs of the host, with every GPU quota filled in. The GPU limit of a queue is at
        most what the teams have that use it.
        """
        settings, limits = self.settings, dict[str | None, int]()
        for name in self._teams:
            _, queue = self._scheduler(name)
            limits[queue] = limits.get(queue, 0) + settings.own_of(name).counted
        queues = _queue_args(settings.queues)
        # Computed first, so that a bounded queue does not change the sums of its ancestors.
        specs = every_spec(queues)
        for (name, args), (_, spec) in zip([*walk_args(queues)], specs, strict=True):
            share = {**args.get("gpu", {}), "quota": spec["resources"]["gpu"]["quota"]}
            if (most := limits.get(name)) is not None:
                if share["quota"] == UNLIMITED:
                    share["quota"] = most
                share.setdefault("limit", max(most, share["quota"]))
            args["gpu"] = share
        return {
            "queues": queues,
            "shared": True,
            "tenants": sorted(settings.team_stacks),
            "cluster": settings.cluster.name,
            **self.host,
        }

    def refusals_of_nobody(self) -> pulumi.Input[str]:
        """Why queues of the host that no team uses are not as declared; "" where all are."""
        used = {queue for _, queue in map(self._scheduler, self._teams)}
        return resolved(lambda refused: _lines(refused, used), self.refused or {})

    def monitoring(self) -> Any:
        """FleetMonitoringArgs of the host."""
        settings = self.settings
        return _filled(
            settings.monitoring,
            certificates=None,
            gpu_resource=settings.gpu.resource,
            host_kai=settings.kai is not None,
            parent_queues=_parents(settings.queues),
        )

    def accounts(self) -> Any:
        """Argument `teams` of TeamStackAccess: an account for each team with its own stack."""
        grants, kai = self.settings.team_stacks, self.settings.kai
        accounts = dict[str, Any]()
        for name, grant in grants.items():
            accounts[name] = {"foreign_queues": self._foreign_queues(name)}
            if kai is not None and grant.parent_queue is not None:
                accounts[name] |= self._below(name, grant.parent_queue, kai)
        return accounts

    def _below(self, team: str, granted: str, kai: HostKai) -> dict[str, Any]:
        """What a team stack's account may write below the queue that it is granted."""
        queues = {queue.name: queue for queue in walk(self.settings.queues)}
        below: dict[str, Any] = {"parent_queue": granted}
        if team in queues and team != granted:
            below["foreign_queues"] = [team, *self._foreign_queues(team)]
        queue, version = queues.get(granted), kai.version or ""
        if queue is None:
            return below
        if queue.shard not in (None, DEFAULT_SHARD):
            below["shard"] = queue.shard
        release = KAI.get(taken_for(KAI, version) or version)
        if release is not None and release.max_queue_depth is not None:
            below["levels"] = max(0, release.max_queue_depth - len(queue.above) - 1)
        return below

    # A team's namespace on the host.

    def namespace(self, name: str) -> Any:
        """TeamNamespaceArgs of a team that this stack runs, or grants a stack of its own."""
        settings, team = self.settings, self.settings.own_of(name)
        scheduler, queue = self._scheduler(name)
        isolation, slices, kai = team.isolation, team.slices, settings.kai
        by_host, granted = scheduler == "host", name in settings.team_stacks
        monitoring = settings.monitoring
        tree = team.queues if isinstance(team, TeamSettings) and scheduler == "inside" else None
        others = [other for other in self._teams if other != name]
        pools = [settings.vcluster.node_pool, *map(self.control_pool, others)]
        pools += [settings.own_of(other).node_pool for other in others]
        foreign = {tuple(sorted(pool.items())) for pool in pools if pool and not team.node_pool}
        return _filled(
            **{key: getattr(team, key) for key in _OF_PLACE},
            name=f"team-{name}",
            guards="declared",  # the program declares them before any namespace
            gpus=max(0, team.counted - int(mig.gpus_of(slices))),
            gpu_resource=settings.gpu.resource,
            slices=slices,
            devices=isolation.devices,
            device_classes=isolation.device_classes,
            control_pool=self.control_pool(name),
            foreign_pools=[dict(pool) for pool in sorted(foreign)],
            scheduler=scheduler,
            isolation={key: getattr(isolation, key) for key in _OF_GUARDS}
            | {"volume_classes": self.volume_classes(name)},
            queues=[queue] if by_host and queue else [],
            queue_refusal=self._refusal(queue) if by_host and queue else None,
            queue_prefix=f"{name}-" if by_host and granted else None,
            foreign_queues=self._foreign_queues(name),
            host_kai=kai is not None,
            guard=settings.guard.mode,
            gpu_sharing=kai is not None and settings.sharing_of(kai) != DISABLED,
            nv_fractions=by_host and kai is not None and settings.sharing_of(kai) == NV_FRACTIONS,
            # Not from a team's values: images with these names are admitted where others are not.
            kai_images=settings.known_sources.kai_images,
            registries=settings.registries,
            account=granted,
            monitoring=monitoring
            and _filled(monitoring, scheduler=tree is not None, parent_queues=_parents(tree or {})),
            use_existing=name in self.existing.get("teams", ()),
        ) | ({} if granted else self._rights(name))

    def volume_classes(self, name: str) -> list[str]:
        """Classes that a team's claims may name: those granted to it, and that of vClusters."""
        granted = self.settings.own_of(name).isolation.volume_classes
        of_all = self.settings.vcluster.storage_class
        return [*granted, of_all] if of_all else [*granted]

    def _scheduler(self, name: str) -> tuple[str, str | None]:
        """Argument `scheduler` of a team's namespace, and the team's queue on the host."""
        team = self.settings.own_of(name)
        if isinstance(team, TeamSettings):
            return _PLACES[team.scheduler.mode], team.queue
        if self.settings.kai is None:  # the stack of the team chooses the mode
            return "inside", team.parent_queue
        return "host" if team.parent_queue else "none", team.parent_queue

    def _refusal(self, queue: str) -> pulumi.Input[str] | None:
        """Why this queue of the host is not as declared; None where the tree is another stack's."""
        if self.refused is None:
            return None
        return resolved(lambda refused: refused.get(queue, ""), self.refused)

    def _rights(self, name: str) -> Any:
        """Version and values that decide a vCluster's RBAC, without the URL of its database."""
        args = self.vcluster(name)
        if "data_source" in args["store"]:
            args["store"] = {}
        version = args.get("version", DEFAULT_VCLUSTER)
        return {"vcluster_version": version, "vcluster_values": argument_values(args)}

    def control_pool(self, name: str) -> dict[str, str]:
        """Labels of the nodes for a team's control plane: its own, the platform's or the team's."""
        team = self.settings.own_of(name)
        of_vcluster = team.vcluster.node_pool if isinstance(team, TeamSettings) else {}
        return dict(of_vcluster or self.settings.vcluster.node_pool or team.node_pool)

    def _foreign_queues(self, name: str) -> list[str]:
        """Other queues and teams whose names begin with the prefix of this team's queues."""
        _, granted = self._scheduler(name)
        every = {*(placed.name for placed in walk(self.settings.queues)), *self._teams} - {granted}
        return sorted(other for other in every if other.startswith(f"{name}-"))

    # A team.

    def team(self, name: str) -> Any:
        """TeamArgs; without a namespace in a team stack, where the platform declares it."""
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
                    "gpu_resource": settings.gpu.resource,
                }
        elif team.scheduler.mode == "host" and team.queues:
            args["host_queues"] = {**self.queues(name), **self.host}
        return args

    def vcluster(self, name: str) -> Any:
        """VirtualClusterArgs of a team, without kubeconfig or context of the host."""
        team, facts = self.settings.teams[name], self.settings.platform_facts
        section, secrets = team.vcluster, [*team.vcluster.image_pull_secrets]
        # Besides existing ones those that this stack or the platform declares.
        secrets += [OF_STACK] if self.settings.registries or (facts and facts.registries) else []
        secrets += [OF_TEAM] if team.registries else []
        resources = {
            bound: {key.replace("_", "-"): amount for key, amount in amounts.items()}
            for bound, amounts in _plain(section.resources).items()
            if amounts
        }
        return _filled(
            section,
            **{key: getattr(team, key) for key in (*_OF_PLACE, "affinity", "registries")},
            namespace=f"team-{name}",
            mode=team.scheduler.mode,
            control_pool=self.control_pool(name),
            resources=resources,
            oidc=section.oidc and {key: value for key, value in section.oidc if key != "scopes"},
            groups=section.groups if section.oidc else {},
            isolation=team.isolation.level,
            image_pull_secrets=[*dict.fromkeys(secrets)],
            chart_account=self._chart_account(section, team),
            stack_key=self.settings.team_path(name),
        )

    def _chart_account(self, of: Any, team: Any = None) -> Any:
        """The account for the chart of a section; None where no registry has it."""
        known = {**self.settings.registries, **getattr(team, "registries", {})}
        place = (of.chart or "").removeprefix("oci://")
        names = [name for name in known if in_any(place, [name.removesuffix("/")])]
        return _plain(known[max(names, key=len)]) if names else None

    def kai(self, name: str) -> Any:
        """KaiSchedulerArgs in a vCluster; the host's ServiceAccounts have its pull Secrets."""
        team = self.settings.teams[name]
        level = team.isolation.level
        return self._kai(team.scheduler, team, labels=team.labels, isolation=level)

    def _kai(self, kai: HostKai | Scheduler, place: HostKai | HostPlace, **more: Any) -> Any:
        """KaiSchedulerArgs; `place` has the tolerations and affinity of its pods."""
        written = mode_in(kai.version or "", kai.values)
        mode = written if written in MODES else self.settings.sharing_of(kai)
        return _filled(
            kai,
            mode=None,
            gpu_sharing=mode != DISABLED,
            gpu_sharing_mode=None if mode == DISABLED else mode,
            tolerations=place.tolerations,
            affinity=place.affinity,
            chart_account=self._chart_account(kai, place),
            **more,
        )

    def queues(self, name: str) -> Any:
        """QueueTreeArgs without a kubeconfig: in a team's vCluster, or in mode host below the queue
        that the team is granted.
        """
        team, facts = self.settings.teams[name], self.settings.platform_facts
        if team.scheduler.mode == "virtual":
            pools = {"pools": team.gpus_by_pool} if team.pools else {}
            return {"queues": _queue_args(team.queues), "gpus": team.counted, **pools}
        grant = facts.granted(name) if facts else None
        queues = _queue_args(team.queues, **_filled(shard=grant and grant.shard))
        parent = grant and grant.parent_queue
        return _filled(queues=queues, parent=parent, cluster=self.settings.cluster.name)


def _filled(section: BaseModel | None = None, **overrides: Any) -> Any:
    """Arguments from a section of settings, overridden by keywords; None drops a key. Chart values
    are kept as written, with their nulls.
    """
    args = dict(section or ()) | overrides
    values = {"values": args.pop("values")} if "values" in args else {}
    return _plain(args) | values


def _plain(value: Any) -> Any:
    """Settings as plain values: models as mappings without None, secrets in clear text."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in without_none(value).items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _lines(refused: Mapping[str, str], used: Container[str | None]) -> str:
    return "\n".join(why for queue, why in sorted(refused.items()) if queue not in used)


def _parents(tree: Mapping[str, Queue]) -> list[str]:
    """Names of the queues with children."""
    return [placed.name for placed in walk(tree) if placed.queue.children]


def _queue_args(tree: Mapping[str, Queue], **more: Any) -> dict[str, Any]:
    """QueueArgs by name, as they are written: QueueTree fills in missing quotas."""
    return {
        name: queue.model_dump(exclude_unset=True, exclude_none=True) | more
        for name, queue in tree.items()
    }
