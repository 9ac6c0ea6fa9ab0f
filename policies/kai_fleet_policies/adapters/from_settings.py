"""A stack's settings, as the rules look at them: the host cluster, and the inside of each vCluster.

Paths are keys of the stack file, so that a refusal names the line to edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kai_fleet.releases import DEFAULT_VCLUSTER
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.sections.platform import HostKai
from kai_fleet.settings.sections.queues import Queue as QueueSettings
from kai_fleet.settings.sections.queues import walk
from kai_fleet.settings.sections.scheduling import Scheduling
from kai_fleet.settings.sections.teams import Scheduler
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet.workloads.placement import manifest
from kai_fleet_policies.adapters.installed_settings import installed
from kai_fleet_policies.adapters.pod_templates import workloads
from kai_fleet_policies.grants import Grant
from kai_fleet_policies.model import (
    Cluster,
    Feature,
    KaiRelease,
    Queue,
    Resource,
    Share,
    VirtualCluster,
    Workload,
)

HOST = "host"


def clusters(
    settings: Settings, deployed: DeployedState | None = None, *, hidden: bool = False
) -> list[Cluster]:
    """The host first, then one cluster per team that runs a scheduler of its own.

    `deployed` is what the stack runs now, where that is known; `hidden`: some value is a secret.
    """
    host = Cluster(
        HOST,
        path=key_path(("cluster",)),
        kai=_host_kai(settings),
        queues=tuple(
            queues(settings.queues, key_path(("queues",)), limits=settings.queue_limits())
        ),
        virtual_clusters=tuple(virtual_clusters(settings, deployed or DeployedState())),
        grants=tuple(_grants(settings, deployed or DeployedState())),
        features=_features(settings.kai, key_path(("kai",))),
        sources=settings.sources.known,
        installed=tuple(installed(settings, hidden=hidden)),
    )
    return [host, *inside(settings, host), *without_own_kai(settings, host)]


def inside(settings: Settings, host: Cluster) -> list[Cluster]:
    """The clusters of the teams that run a scheduler of their own."""
    return [
        Cluster(
            team.name,
            path=team.path,
            kai=team.kai,
            queues=tuple(
                queues(settings.teams[str(team.name)].queues, f"{team.path}.queues", team.gpus)
            ),
            gpus=team.gpus,
            features=_features(settings.teams[str(team.name)].scheduler, f"{team.path}.scheduler"),
            workloads=tuple(_workloads(settings, str(team.name))),
        )
        for team in host.virtual_clusters
        if team.kai and isinstance(team.name, str)
    ]


def without_own_kai(settings: Settings, host: Cluster) -> Iterator[Cluster]:
    """The vClusters whose pods the host's scheduler places, where workloads are in them."""
    for team in host.virtual_clusters:
        pods = () if team.kai else tuple(_workloads(settings, str(team.name)))
        if pods:
            yield Cluster(
                str(team.name),
                path=team.path,
                workloads=pods,
                gpus=team.gpus,
                scheduled_by=host if team.mode == "host" else None,
                team_queue=team.queue,
            )


def _workloads(settings: Settings, team: str) -> Iterator[Workload]:
    for name, workload in settings.workloads.items():
        if workload.team != team:
            continue
        try:
            kind, content = manifest(settings, name)
        except ValueError:
            continue  # the report on the settings says what is wrong with it
        path = key_path(("workloads", name))
        # Under its own kind: `Deployment api` is what a reader finds in the cluster.
        yield from workloads(kind, content, name, path)


def _host_kai(settings: Settings) -> tuple[KaiRelease, ...]:
    if settings.kai is None:
        return ()
    path = key_path(("kai",))
    return (_kai(settings, settings.kai, settings.kai.version, path),)


def _features(scheduling: Scheduling | None, path: str) -> tuple[Feature, ...]:
    if scheduling is None:
        return ()
    every = (
        (Feature("shards", f"{path}.shards"), scheduling.shards),
        (Feature("fairshare", f"{path}.fairshare"), scheduling.fairshare),
        (Feature("topologies", f"{path}.topologies"), scheduling.topologies),
    )
    return tuple(feature for feature, value in every if value)


def _kai(settings: Settings, written: HostKai | Scheduler, version: str, path: str) -> KaiRelease:
    return KaiRelease(
        version,
        gpu_sharing=settings.shares_gpus(written),
        path=path,
        values=written.values,
        untested=written.untested,
    )


def virtual_clusters(settings: Settings, deployed: DeployedState) -> Iterator[VirtualCluster]:
    """The teams of a stack."""
    for name, team in settings.teams.items():
        path = settings.team_path(name)
        scheduler = team.scheduler
        own = scheduler.version if scheduler.mode == "virtual" else None
        vcluster = settings.vcluster_of(name)
        now = deployed.version(f"{name}-release")
        yield VirtualCluster(
            name=name,
            namespace=f"team-{name}",
            version=vcluster.version or DEFAULT_VCLUSTER,
            node_pool=dict(team.node_pool),
            gpus=float(team.gpus),
            mode=scheduler.mode,
            queue=team.queue,
            kai=(_kai(settings, scheduler, own, f"{path}.scheduler"),) if own else (),
            path=path,
            version_key=settings.vcluster_version_path(name),
            values=vcluster.values,
            licensed=vcluster.licensed,
            untested=vcluster.untested,
            isolation=settings.isolation_of(name).level,
            version_before=f"v{now}" if now else None,  # the chart's version has no v
        )


def _grants(settings: Settings, deployed: DeployedState) -> Iterator[Grant]:
    for name, grant in settings.team_stacks.items():
        yield Grant(
            name,
            node_pool=grant.node_pool,
            gpus=float(grant.gpus),
            parent_queue=grant.parent_queue,
            path=key_path(("teamStacks", name)),
            isolation=settings.isolation_of(name).level,
            runs_here=name not in settings.teams
            and deployed.version(f"{name}-release") is not None,
        )


def queues(
    tree: Mapping[str, QueueSettings],
    path: str,
    gpu_limit: object = None,
    parent: str | None = None,
    limits: Mapping[str, int] | None = None,
) -> Iterator[Queue]:
    """A configured tree as the rules read it, below `parent` where that is another stack's.

    `limits` are the GPUs that the teams of a queue may have, by its name.
    """
    limit = int(gpu_limit) if isinstance(gpu_limit, float) else None
    for placed in walk(tree, path, parent):
        spec = placed.queue.spec(
            placed.parent,
            limit if placed.parent == parent else None,
            (limits or {}).get(placed.name),
        )
        shares: dict[Resource, Share] = {
            resource: Share(share["quota"], share["limit"], share["overQuotaWeight"])
            for resource, share in spec["resources"].items()
        }
        yield Queue(
            placed.name,
            placed.parent,
            shares,
            preempt_min_runtime=placed.queue.preempt_min_runtime,
            reclaim_min_runtime=placed.queue.reclaim_min_runtime,
            path=placed.path,
        )
