"""GPU-hours of a window by team and queue, from a Prometheus that reads every team's KAI.

The number of queries does not grow with the teams. They rest on KAI's own metrics by the names of
its versions, and not on recording rules: a Prometheus that was told of them yesterday has older
numbers all the same.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Self, TypeAlias

from kai_fleet.releases import KAI
from kai_fleet.releases.metric_names import kai_metrics, queue_label
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.queues import leaves
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.report.prometheus import Query
from kai_fleet_cli.report.team_usage import OWN_STACK, GpuBalance, TeamUsageRow

_SINCE: Final = re.compile(r"([1-9]\d{0,4})([mhdw])")
_HOURS: Final = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_STEPS: Final = 2000  # of a window: more takes Prometheus long and changes little
_LEAST: Final = 60  # seconds
_OF_QUEUES: Final = ("used", "guaranteed", "idle", "owed")  # of each queue, in a query each
_COUNTED: Final = (  # which schedulers and teams there are numbers of at all
    'group by (scheduler) (kai_queue_info{job="kai-fleet"})'
    ' or group by (namespace) (kube_resourcequota{resourcequota="gpus"})'
)
_NEARLY_ALL: Final = 0.98  # of a window; below it the answer says how much was measured

Totals: TypeAlias = Mapping[tuple[str, ...], float]  # by the values of some labels
Hours: TypeAlias = Mapping[str, float]  # GPU-hours by node, or by the model of the GPUs


@dataclass(frozen=True)
class Window:
    """How far back, as it was written, and in hours; `step` is the seconds between samples.

    `offset` is how long ago it ended, "" for a window that ends now.
    """

    since: str
    hours: float
    step: int
    offset: str = ""

    @classmethod
    def of(cls, since: str) -> Self:
        """`90m`, `12h`, `7d`, `4w`. Raises UserError."""
        written = _SINCE.fullmatch(since)
        if written is None:
            raise UserError(f"--since is {since!r}; write minutes, hours, days or weeks: 90m, 7d")
        hours = int(written[1]) * _HOURS[written[2]]
        step = max(_LEAST, round(hours * 3600 / _STEPS / _LEAST) * _LEAST)
        return cls(since, hours, step)

    def covered_by(self, measured: float) -> bool:
        """Whether so many hours are nearly all of it."""
        return measured >= self.hours * _NEARLY_ALL

    @property
    def before(self) -> Self:
        """The window that is as long, and ends where this one begins."""
        return replace(self, offset=self.since)

    def total(self, query: Query, expression: str, *by: str) -> Totals:
        """An expression summed over the window, times hours; by the values of these labels."""
        over = f"[{self.since}:{self.step}s]{f' offset {self.offset}' if self.offset else ''}"
        per_hour = self.step / 3600
        return {
            tuple(labels.get(label, "") for label in by): value * per_hour
            for labels, value in query(f"sum_over_time(({expression}){over})")
        }


@dataclass(frozen=True)
class Period:
    """What was measured of a window: what teams used, and the whole GPUs of nodes.

    `measured` are the hours of which there are numbers. `held` is by namespace and node: a shared
    GPU is held by the pod that reserves it. `capacity` is by node.
    """

    window: Window
    rows: Sequence[TeamUsageRow]
    measured: float
    held: Mapping[str, Hours]
    capacity: Hours


def gpu_hours(query: Query, settings: Settings, names: Iterable[str], window: Window) -> Period:
    """A window of these teams. Raises UnreachableError.

    A team of which there are no numbers has no row of zeros: it is `unreached`.
    """
    versions = {kai for name in settings.teams if (kai := settings.kai_of(name))}
    queries = _queries(settings, sorted(versions) or [list(KAI)[-1]])
    with ThreadPoolExecutor(max_workers=len(queries)) as pool:
        totals = pool.map(lambda asked: window.total(query, *asked), queries.values())
        hours = dict(zip(queries, totals, strict=True))
    held: dict[str, dict[str, float]] = defaultdict(dict)
    for (namespace, node), amount in hours["held"].items():
        held[namespace][node] = amount
    # By scheduler of what KAI says, by namespace of what the host does.
    hours["counted"] = {key: min(window.hours, it) for key, it in hours["counted"].items()}
    return Period(
        window,
        [_team(settings, name, hours, held, window) for name in names],
        max(hours["counted"].values(), default=0.0),
        held,
        {node: amount for (node,), amount in hours["capacity"].items()},
    )


def _team(
    settings: Settings,
    name: str,
    hours: Mapping[str, Totals],
    held: Mapping[str, Hours],
    window: Window,
) -> TeamUsageRow:
    team = settings.teams.get(name)  # None: of a stack of its own, which has its queues
    mode = team.scheduler.mode if team else OWN_STACK
    promised = settings.gpus_of(name)
    scheduler = name if mode == "virtual" else "host"
    by_kai = mode in ("virtual", "host")
    measured = hours["counted"].get((scheduler, "") if by_kai else ("", f"team-{name}"), 0.0)
    if not measured:
        ago = f" before the last {window.offset}" if window.offset else ""
        missing = f"Prometheus has no numbers of it for {window.since}{ago}"
        return TeamUsageRow(name, mode, promised, unreached=missing)
    balances: dict[str | None, GpuBalance] = {}
    for queue in _queues(settings, name) if team else ():
        part = _part(settings, name, queue, held)
        own = {it: part * hours[it].get((scheduler, queue), 0.0) for it in _OF_QUEUES}
        borrowed = max(0.0, own["used"] - own["guaranteed"])
        balances[queue] = GpuBalance(borrowed=borrowed, **own)
    if not by_kai:
        used = whole_of(held, name)
        balances[None] = GpuBalance(used, used)
    return TeamUsageRow(name, mode, promised, balances, measured=measured)


def _queues(settings: Settings, name: str) -> Sequence[str]:
    """The leaves that a team's pods may name."""
    team = settings.teams[name]
    if team.queues:
        return leaves(team.queues)
    if team.queue:
        return [team.queue]
    facts = settings.platform_facts
    granted = facts.granted_queue(name)[0] if facts else None
    return [granted] if granted and team.scheduler.mode == "host" else []


def whole_of(held: Mapping[str, Hours], team: str) -> float:
    """The whole GPUs that a team's pods held."""
    return sum(held.get(f"team-{team}", {}).values())


def _part(settings: Settings, name: str, queue: str, held: Mapping[str, Hours]) -> float:
    """The part of a queue's hours that is a team's: of a queue of several teams in host mode, by
    the whole GPUs that each held, else the same for each.
    """
    sharing = [other for other, team in settings.teams.items() if team.queue == queue]
    if len(sharing) < 2:
        return 1.0
    every = sum(whole_of(held, other) for other in sharing)
    return whole_of(held, name) / every if every else 1 / len(sharing)


def _queries(settings: Settings, versions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Each expression with the labels that its series are told apart by."""
    used, quota, fair = (
        _by_queue(f"kai_queue_{metric}", versions)
        for metric in ("allocated_gpus", "deserved_gpus", "fair_share_gpu")
    )
    limited, of_queue = f"({quota} >= 0)", ("scheduler", "queue")
    # A quota of -1 is unlimited: then everything is within it.
    within, due = (
        f"(({it} and {quota} == -1) or ({it} < {limited}) or ({limited} and {it}))"
        for it in (used, fair)
    )
    gpu = settings.gpu.resource.replace(".", "_").replace("/", "_")  # to kube-state-metrics
    held = (
        f'sum by (namespace, node) (kube_pod_container_resource_requests{{resource="{gpu}",'
        ' node!=""} and on (namespace, pod)'
        ' (kube_pod_status_phase{phase=~"Pending|Running"} == 1))'
    )
    capacity = f'max by (node) (kube_node_status_allocatable{{resource="{gpu}"}})'
    return {
        "used": (used, *of_queue),
        "guaranteed": (within, *of_queue),
        "idle": (f"clamp_min({limited} - {used}, 0)", *of_queue),
        "owed": (f"clamp_min({due} - {used}, 0)", *of_queue),
        "held": (held, "namespace", "node"),
        "capacity": (capacity, "node"),
        "counted": (_COUNTED, "scheduler", "namespace"),
    }


def _by_queue(metric: str, versions: Sequence[str]) -> str:
    """A metric by scheduler and queue, whichever label holds the queue's name in each version."""
    series = f'{metric}{{job="kai-fleet"}}'
    labels = {
        queue_label(version, metric) for version in versions if metric in kai_metrics(version)
    }
    for label in ("queue_name", *sorted(labels - {"queue_name"})):
        series = f'label_replace({series}, "queue", "$1", "{label}", "(.+)")'
    return f"(max by (scheduler, queue) ({series}))"
