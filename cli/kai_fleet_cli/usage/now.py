"""Who holds GPUs now, and who waits: counted from the pods of the host and of each vCluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.declared import DeclaredTeam
from kai_fleet_cli.doctor.objects import seconds_since
from kai_fleet_cli.gpu_usage.pods import PodUse
from kai_fleet_cli.usage.rows import OWN_STACK, QueueRow, Shares, TeamRow, Wait

# What has to be asked of each API server; the addresses of vClusters are those of Services.
KINDS: Final = frozenset({"nodes", "pods", "queues", "podgroups", "deployments", "services"})


def teams_now(look: Snapshot) -> list[TeamRow]:
    """Each team's GPUs at the moment of the look."""
    shared: Counter[str | None] = Counter(
        it.wanted.queue for it in look.teams.values() if it.wanted.queue
    )
    by_namespace: dict[str, list[PodUse]] = defaultdict(list)
    for pod in look.host.usage.pods:
        by_namespace[pod.namespace].append(pod)
    return [
        _team(team, look.host, by_namespace.get(team.wanted.namespace, ()), shared)
        for team in look.teams.values()
    ]


def waits_now(look: Snapshot, count: int = 10) -> list[Wait]:
    """The pods that have waited longest for GPUs."""
    found = sorted(_waits(look), key=lambda wait: -wait.seconds)
    return found[:count]


def _team(
    team: TeamState, host: ClusterState, on_host: Sequence[PodUse], shared: Counter[str | None]
) -> TeamRow:
    wanted = team.wanted
    promised = int(wanted.gpus or 0)
    if wanted.granted:
        rows = [QueueRow(None, _beside(on_host, promised))]
        return TeamRow(wanted.name, OWN_STACK, promised, tuple(rows))
    if wanted.mode == "virtual":
        if team.inside is None:
            return TeamRow(wanted.name, wanted.mode, promised, unreached=team.unreached)
        return TeamRow(wanted.name, wanted.mode, promised, tuple(_of_own_kai(team.inside)))
    if wanted.mode == "host":
        found = _of_host(host, on_host, wanted, shared)
        return TeamRow(wanted.name, wanted.mode, promised, tuple(found))
    return TeamRow(
        wanted.name, wanted.mode, promised, (QueueRow(None, _beside(on_host, promised)),)
    )


def _of_own_kai(inside: ClusterState) -> Iterator[QueueRow]:
    usage = inside.usage
    for queue in usage.queues.values():
        if queue.leaf:
            gpu = queue.share("gpu")
            yield QueueRow(queue.name, Shares.of(gpu.in_use, gpu.waiting, gpu.quota))
    outside = [
        pod for pod in usage.pods if not pod.scheduled_by_kai or pod.queue not in usage.queues
    ]
    if beside := _held(outside):
        yield QueueRow(None, Shares(used=beside, borrowed=beside))


def _of_host(
    host: ClusterState, pods: Sequence[PodUse], wanted: DeclaredTeam, shared: Counter[str | None]
) -> Iterator[QueueRow]:
    """In host mode: by the queue that the team's pods name, which may be another team's as well."""
    by_queue: dict[str | None, list[PodUse]] = defaultdict(list)
    if wanted.queue is not None:
        by_queue[wanted.queue] = []
    for pod in pods:
        by_queue[pod.queue if pod.scheduled_by_kai else None].append(pod)
    known = host.usage.queues
    for queue, those in by_queue.items():
        held, waiting = _held(those), sum(pod.amounts.gpu for pod in those if pod.waits)
        if queue in known and queue is not None:
            quota = known[queue].share("gpu").quota
            # A queue of several teams guarantees nothing to one of them.
            yield QueueRow(queue, Shares.of(held, waiting, 0 if shared[queue] > 1 else quota))
        elif held:
            yield QueueRow(queue, Shares(used=held, borrowed=held))


def _beside(pods: Iterable[PodUse], promised: int) -> Shares:
    """Of a team without queues: everything up to its `gpus` is guaranteed to it."""
    every = list(pods)
    waiting = sum(pod.amounts.gpu for pod in every if pod.waits)
    return Shares.of(_held(every), waiting, promised)


def _held(pods: Iterable[PodUse]) -> float:
    return sum(pod.amounts.gpu for pod in pods if not pod.waits)


def _waits(look: Snapshot) -> Iterator[Wait]:
    for name, team in look.teams.items():
        if team.inside is not None and team.wanted.mode == "virtual":
            cluster, pods = team.inside, team.inside.usage.waiting
        else:
            cluster = look.host
            pods = [it for it in cluster.usage.waiting if it.namespace == team.wanted.namespace]
        for pod in pods:
            if pod.amounts.gpu and pod.created:
                seconds = seconds_since(pod.created, cluster.now)
                yield Wait(name, _called(pod), pod.queue, pod.amounts.gpu, seconds)


def _called(pod: PodUse) -> str:
    """As its team knows it: vCluster writes NAME-x-NAMESPACE-x-VCLUSTER on the host."""
    parts = pod.name.split("-x-")
    name, namespace = (parts[0], parts[1]) if len(parts) == 3 else (pod.name, pod.namespace)
    return f"{namespace}/{name}"
