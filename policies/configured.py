"""A stack's settings, as the rules look at them: the host cluster, and the inside of each vCluster.

Paths are keys of the stack file, so that a refusal names the line to edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.past import Past
from components.releases import DEFAULT_VCLUSTER
from components.settings import Settings, key_path
from components.settings.platform import HostKai
from components.settings.queues import Queue as QueueSettings
from components.settings.queues import walk
from components.settings.teams import Scheduler
from components.workloads.placement import manifest
from policies.model import (
    Cluster,
    KaiRelease,
    Queue,
    Resource,
    Share,
    VirtualCluster,
    Workload,
)
from policies.pod_templates import workloads

HOST = "host"


def clusters(settings: Settings, past: Past | None = None) -> list[Cluster]:
    """The host first, then one cluster per team that runs a scheduler of its own.

    `past` is what the stack runs now, where that is known.
    """
    host = Cluster(
        HOST,
        path=key_path(("cluster",)),
        kai=_host_kai(settings),
        queues=tuple(_queues(settings.queues, key_path(("queues",)))),
        virtual_clusters=tuple(_virtual_clusters(settings, past or Past())),
    )
    inside = [
        Cluster(
            team.name,
            path=team.path,
            kai=team.kai,
            queues=tuple(
                _queues(settings.teams[str(team.name)].queues, f"{team.path}.queues", team.gpus)
            ),
            gpus=team.gpus,
            workloads=tuple(_workloads(settings, str(team.name))),
        )
        for team in host.virtual_clusters
        if team.kai and isinstance(team.name, str)
    ]
    return [host, *inside, *_without_own_kai(settings, host)]


def _without_own_kai(settings: Settings, host: Cluster) -> Iterator[Cluster]:
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
    return (_kai(settings.kai, settings.kai.version, path),)


def _kai(written: HostKai | Scheduler, version: str, path: str) -> KaiRelease:
    return KaiRelease(
        version,
        gpu_sharing=written.gpu_sharing,
        path=path,
        values=written.values,
        untested=written.untested,
    )


def _virtual_clusters(settings: Settings, past: Past) -> Iterator[VirtualCluster]:
    for name, team in settings.teams.items():
        path = key_path(("teams", name))
        scheduler = team.scheduler
        own = scheduler.version if scheduler.mode == "virtual" else None
        vcluster = settings.vcluster_of(name)
        now = past.version(f"{name}-release")
        yield VirtualCluster(
            name=name,
            namespace=f"team-{name}",
            version=vcluster.version or DEFAULT_VCLUSTER,
            virtual_scheduler=scheduler.mode == "virtual",
            node_pool=dict(team.node_pool),
            gpus=float(team.gpus),
            mode=scheduler.mode,
            queue=team.queue,
            kai=(_kai(scheduler, own, f"{path}.scheduler"),) if own else (),
            path=path,
            values=vcluster.values,
            licensed=vcluster.licensed,
            version_before=f"v{now}" if now else None,  # the chart's version has no v
        )


def _queues(
    tree: Mapping[str, QueueSettings], path: str, gpu_limit: object = None
) -> Iterator[Queue]:
    limit = int(gpu_limit) if isinstance(gpu_limit, float) else None
    for placed in walk(tree, path):
        spec = placed.queue.spec(placed.parent, limit if placed.parent is None else None)
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
