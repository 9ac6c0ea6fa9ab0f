"""Who holds GPUs of a stack now, and who waits: by the pods of the host and of each vCluster."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Final, Self

from kai_fleet.fleet.amounts import rounded
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet.kube.objects import seconds_since
from kai_fleet.kube.pods import PodUse
from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot, TeamState
from kai_fleet_cli.usage.queues import QueueUse

_LONGEST_WAITS: Final = 10  # of all that wait
OWN_STACK: Final = "own stack"  # the mode of a team whose scheduler another stack declares


@dataclass(frozen=True)
class GpuBalance:
    """GPUs, or GPU-hours.

    `guaranteed` is what of `used` is within the quota, and `borrowed` the rest. `idle` is quota
    that the queue itself does not use, lent to others or not. `owed` is what the queue asks for,
    is guaranteed and does not have.
    """

    used: float = 0.0
    guaranteed: float = 0.0
    borrowed: float = 0.0
    idle: float = 0.0
    owed: float = 0.0

    @classmethod
    def of(cls, used: float, waiting: float, quota: float) -> Self:
        """Of a queue that has and waits for so much; a quota of -1 is unlimited."""
        if quota == UNLIMITED:
            return cls(used, used, owed=waiting)
        guaranteed = min(used, quota)
        owed = max(0.0, min(used + waiting, quota) - used)
        return cls(used, guaranteed, used - guaranteed, max(0.0, quota - used), owed)

    def record(self) -> dict[str, float]:
        """For JSON and CSV."""
        return {name: rounded(amount) for name, amount in asdict(self).items()}


AMOUNTS: Final = tuple(each.name for each in fields(GpuBalance))


def balance(parts: Iterable[GpuBalance]) -> GpuBalance:
    """The sum."""
    every = list(parts)
    return GpuBalance(*(sum(getattr(part, name) for part in every) for name in AMOUNTS))


@dataclass(frozen=True)
class TeamUsageRow:
    """A team; `promised` is its `gpus`. `unreached` says why its cluster was not counted.

    `queues` are its leaves; None is what its pods have beside its queues. `measured` are the hours
    of which Prometheus has numbers of it.
    """

    team: str
    mode: str
    promised: int
    queues: Mapping[str | None, GpuBalance] = field(default_factory=dict)
    unreached: str = ""
    measured: float = 0.0

    @property
    def gpus(self) -> GpuBalance:
        """Of all its queues."""
        return balance(self.queues.values())


@dataclass(frozen=True)
class PodWait:
    """A pod that has no node yet."""

    team: str
    pod: str
    queue: str | None
    gpus: float
    seconds: float


def teams_now(look: Snapshot) -> list[TeamUsageRow]:
    """Each team's GPUs at the moment of the look."""
    shared = Counter(it.wanted.queue for it in look.teams.values() if it.wanted.queue)
    on_host: dict[str, list[PodUse]] = defaultdict(list)
    for pod in look.host.usage.pods:
        on_host[pod.namespace].append(pod)
    return [
        _team(team, look.host, on_host.get(team.wanted.namespace, ()), shared)
        for team in look.teams.values()
    ]


def waits_now(look: Snapshot) -> tuple[list[PodWait], list[str]]:
    """The pods that have waited longest for GPUs; and a sentence about each that can never run."""
    waits, never = [], []
    for name, team in look.teams.items():
        own = team.inside if team.wanted.mode == "virtual" else None
        cluster = own or look.host
        for pod in cluster.usage.waiting:
            if not pod.amounts.gpu or (own is None and pod.namespace != team.wanted.namespace):
                continue
            if pod.never:
                never.append(
                    f"Pod {_own_name(pod)} of team {name} never runs, and is owed nothing:"
                    f" {pod.never}."
                )
            elif pod.created:
                seconds = seconds_since(pod.created, cluster.now)
                waits.append(PodWait(name, _own_name(pod), pod.queue, pod.amounts.gpu, seconds))
    return sorted(waits, key=lambda wait: -wait.seconds)[:_LONGEST_WAITS], never


def _team(
    team: TeamState, host: ClusterState, on_host: Sequence[PodUse], shared: Counter[str]
) -> TeamUsageRow:
    wanted = team.wanted
    mode, promised = OWN_STACK if wanted.granted else wanted.mode, int(wanted.gpus or 0)
    where = team.inside if mode == "virtual" else host
    if where is None or (refused := where.refused()):
        why = refused if where else team.unreached
        return TeamUsageRow(wanted.name, mode, promised, unreached=why)
    tree = where.usage.queues
    balances: dict[str | None, GpuBalance]
    if mode == "virtual":
        leaves = [queue.name for queue in tree.values() if queue.leaf]
        balances = _by_queue(tree, leaves, where.usage.pods, _not_inside(where, on_host))
    elif mode == "host":
        # A queue of several teams guarantees nothing to one of them.
        common = {name for name, teams in shared.items() if teams > 1}
        names = [wanted.queue] if wanted.queue and wanted.queue in tree else []
        balances = _by_queue(tree, names, on_host, common=common)
    else:  # without queues: everything up to its `gpus` is guaranteed to it
        used = held_by_copies(wanted, on_host)
        balances = {None: GpuBalance.of(used, _waiting(on_host), promised)}
    return TeamUsageRow(wanted.name, mode, promised, balances)


def _by_queue(
    tree: Mapping[str, QueueUse],
    names: Iterable[str],
    pods: Iterable[PodUse],
    hidden: float = 0.0,
    common: Collection[str] = (),
) -> dict[str | None, GpuBalance]:
    """By these queues and those that pods name besides; None is what is held beside all queues.

    `hidden` is held there, too. Queues in `common` guarantee nothing.
    """
    of_queues: dict[str, list[PodUse]] = {name: [] for name in names}
    beside = []
    for pod in pods:
        queue = tree.get(pod.queue or "") if pod.scheduled_by_kai else None
        if queue is not None and queue.leaf:
            of_queues.setdefault(queue.name, []).append(pod)
        else:
            beside.append(pod)
    balances: dict[str | None, GpuBalance] = {}
    for name, those in of_queues.items():
        quota = 0.0 if name in common else tree[name].share("gpu").quota
        balances[name] = GpuBalance.of(_held(those), _waiting(those), quota)
    if rest := _held(beside) + hidden:
        balances[None] = GpuBalance(used=rest, borrowed=rest)
    return balances


def held_by_copies(wanted: DeclaredTeam, pods: Iterable[PodUse]) -> float:
    """The GPUs of a team by the copies of its pods on the host.

    Where a KAI shares GPUs inside a vCluster, the pods that reserve them are copied too: so these
    count, and not the shares. The host's own KAI has them elsewhere.
    """
    return _held(pods) if wanted.mode == "host" else _devices(pods)


def _not_inside(inside: ClusterState, on_host: Iterable[PodUse]) -> float:
    """The devices that a team's pods hold on the host, and that its vCluster does not tell of.

    Its tenant may run pods in a namespace of Kubernetes' or KAI's there, which are not counted, or
    hide them. A shared GPU is one device on the host, of the pod that reserves it.
    """
    shared = sum(len(node.shared) for node in inside.usage.gpus.values())
    return max(0.0, _devices(on_host) - _devices(inside.usage.pods) - shared)


def _devices(pods: Iterable[PodUse]) -> float:
    return sum(pod.gpu.whole + pod.gpu.mig for pod in pods if not pod.waits)


def _held(pods: Iterable[PodUse]) -> float:
    return sum(pod.amounts.gpu for pod in pods if not pod.waits)


def _waiting(pods: Iterable[PodUse]) -> float:
    return sum(it.amounts.gpu for it in pods if it.waits and not it.never and not it.ending)


def _own_name(pod: PodUse) -> str:
    """As its team knows it: vCluster writes NAME-x-NAMESPACE-x-VCLUSTER on the host."""
    parts = pod.name.split("-x-")
    name, namespace = (parts[0], parts[1]) if len(parts) == 3 else (pod.name, pod.namespace)
    return f"{namespace}/{name}"
