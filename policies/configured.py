"""A stack's settings, as the rules look at them: the host cluster, and the inside of each vCluster.

Paths are keys of the stack file, so that a refusal names the line to edit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from components.settings import Settings, key_path
from components.settings.queues import Queue as QueueSettings
from components.settings.queues import walk
from policies.model import Cluster, KaiRelease, Queue, Resource, Share, VirtualCluster

HOST = "host"


def clusters(settings: Settings) -> list[Cluster]:
    """The host first, then one cluster per team that runs a scheduler of its own."""
    host = Cluster(
        HOST,
        path=key_path(("cluster",)),
        kai=_host_kai(settings),
        queues=tuple(_queues(settings.queues, key_path(("queues",)))),
        virtual_clusters=tuple(_virtual_clusters(settings)),
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
        )
        for team in host.virtual_clusters
        if team.kai and isinstance(team.name, str)
    ]
    return [host, *inside]


def _host_kai(settings: Settings) -> tuple[KaiRelease, ...]:
    if settings.kai is None:
        return ()
    path = key_path(("kai",))
    return (KaiRelease(settings.kai.version, gpu_sharing=settings.kai.gpu_sharing, path=path),)


def _virtual_clusters(settings: Settings) -> Iterator[VirtualCluster]:
    for name, team in settings.teams.items():
        path = key_path(("teams", name))
        scheduler = team.scheduler
        inner = scheduler.mode == "virtual" and scheduler.version is not None
        yield VirtualCluster(
            name=name,
            namespace=f"team-{name}",
            version=settings.vcluster_of(name).version,
            virtual_scheduler=scheduler.mode == "virtual",
            node_pool=dict(team.node_pool),
            gpus=float(team.gpus),
            mode=scheduler.mode,
            queue=team.queue,
            kai=(
                KaiRelease(
                    scheduler.version,
                    gpu_sharing=scheduler.gpu_sharing,
                    path=f"{path}.scheduler",
                ),
            )
            if inner
            else (),
            path=path,
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
