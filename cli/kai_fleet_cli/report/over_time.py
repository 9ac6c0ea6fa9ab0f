"""GPU-hours by team and queue, from a Prometheus that reads every team's KAI.

The number of queries does not grow with the teams. They rest on KAI's own metrics by the names of
its versions, and not on recording rules: a Prometheus that was told of them yesterday has older
numbers all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from kai_fleet.releases.metric_names import kai_metrics, queue_label
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.queues import leaves
from kai_fleet_cli.report.prometheus import Query
from kai_fleet_cli.report.team_usage import OWN_STACK, GpuBalance, TeamUsageRow
from kubectl_fleet.errors import UserError
from kubectl_fleet.releases import KAI

_SINCE: Final = re.compile(r"([1-9]\d{0,4})([mhdw])")
_HOURS: Final = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_STEPS: Final = 2000  # of a window: more takes Prometheus long and changes little
_LEAST: Final = 60  # seconds
_NEARLY_ALL: Final = 0.98  # of a window; below it the answer says how much was measured


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
    def of(cls, since: str) -> Window:
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
    def before(self) -> Window:
        """The window that is as long, and ends where this one begins."""
        return replace(self, offset=self.since)

    def total(self, query: Query, expression: str) -> list[tuple[Mapping[str, str], float]]:
        """An expression summed over the window, times hours. Raises UnreachableError."""
        over = f"[{self.since}:{self.step}s]{f' offset {self.offset}' if self.offset else ''}"
        per_hour = self.step / 3600
        summed = query(f"sum_over_time(({expression}){over})")
        return [(labels, value * per_hour) for labels, value in summed]


def gpu_hours(
    query: Query, settings: Settings, names: Iterable[str], window: Window
) -> tuple[list[TeamUsageRow], float]:
    """These teams' GPU-hours, and the hours of which there are numbers. Raises UnreachableError.

    A team of which there are none has no row of zeros: it is `unreached`.
    """
    versions = {kai for name in settings.teams if (kai := settings.kai_of(name))}
    queries = _queries(settings, sorted(versions) or [list(KAI)[-1]])
    with ThreadPoolExecutor(max_workers=len(queries)) as pool:
        totals = pool.map(lambda expression: window.total(query, expression), queries.values())
        answers = dict(zip(queries, totals, strict=True))
    by_queue: dict[str, dict[tuple[str, str], float]] = {
        what: {
            (labels.get("scheduler", ""), labels.get("queue", "")): hours
            for labels, hours in answers[what]
        }
        for what in ("used", "guaranteed", "idle", "owed")
    }
    whole = {labels.get("namespace", ""): hours for labels, hours in answers["whole"]}
    # By scheduler of what KAI says, by namespace of what the host does.
    counted = {
        (labels.get("scheduler", ""), labels.get("namespace", "")): min(window.hours, hours)
        for labels, hours in answers["counted"]
    }
    rows = [_team(settings, name, by_queue, whole, counted, window) for name in names]
    return rows, max(counted.values(), default=0.0)


def _team(
    settings: Settings,
    name: str,
    by_queue: Mapping[str, Mapping[tuple[str, str], float]],
    whole: Mapping[str, float],
    counted: Mapping[tuple[str, str], float],
    window: Window,
) -> TeamUsageRow:
    team = settings.teams.get(name)  # None: of a stack of its own, which has its queues
    mode = team.scheduler.mode if team else OWN_STACK
    promised = settings.gpus_of(name)
    scheduler = name if mode == "virtual" else "host"
    by_kai = mode in ("virtual", "host")
    measured = counted.get((scheduler, "") if by_kai else ("", f"team-{name}"), 0.0)
    if not measured:
        ago = f" before the last {window.offset}" if window.offset else ""
        missing = f"Prometheus has no numbers of it for {window.since}{ago}"
        return TeamUsageRow(name, mode, promised, unreached=missing)
    used = whole.get(f"team-{name}", 0.0)
    without_queues = GpuBalance(used, used)
    if team is None:
        return TeamUsageRow(name, mode, promised, {None: without_queues}, measured=measured)
    balances: dict[str | None, GpuBalance] = {}
    for queue in _queues(settings, name):
        part = _part(settings, name, queue, whole)
        hours = {
            what: part * amounts.get((scheduler, queue), 0.0) for what, amounts in by_queue.items()
        }
        borrowed = max(0.0, hours["used"] - hours["guaranteed"])
        balances[queue] = GpuBalance(borrowed=borrowed, **hours)
    if mode == "default":
        balances[None] = without_queues
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


def _part(settings: Settings, name: str, queue: str, whole: Mapping[str, float]) -> float:
    """The part of a queue's hours that is a team's: of a queue of several teams in host mode, by
    the whole GPUs that each held, else the same for each.
    """
    sharing = [n for n, team in settings.teams.items() if team.queue == queue]
    if len(sharing) < 2:
        return 1.0
    held = {n: whole.get(f"team-{n}", 0.0) for n in sharing}
    every = sum(held.values())
    return held[name] / every if every else 1 / len(sharing)


def held_by(settings: Settings, *labels: str) -> str:
    """The whole GPUs that pods hold on the host, by labels of kube-state-metrics.

    A shared GPU is held by the pod that reserves it.
    """
    return (
        f"sum by ({', '.join(labels)}) (kube_pod_container_resource_requests"
        f'{{resource="{resource_label(settings)}", node!=""}} and on (namespace, pod)'
        ' (kube_pod_status_phase{phase=~"Pending|Running"} == 1))'
    )


def resource_label(settings: Settings) -> str:
    """The name of the stack's GPUs as kube-state-metrics writes it."""
    return settings.gpu.resource.replace(".", "_").replace("/", "_")


def _queries(settings: Settings, versions: Sequence[str]) -> dict[str, str]:
    used, quota, fair = (
        _by_queue(f"kai_queue_{metric}", versions)
        for metric in ("allocated_gpus", "deserved_gpus", "fair_share_gpu")
    )
    limited = f"({quota} >= 0)"
    # A quota of -1 is unlimited: then everything is within it.
    within = f"(({used} and {quota} == -1) or ({used} < {limited}) or ({limited} and {used}))"
    due = f"(({fair} and {quota} == -1) or ({fair} < {limited}) or ({limited} and {fair}))"
    return {
        "used": used,
        "guaranteed": within,
        "idle": f"clamp_min({limited} - {used}, 0)",
        "owed": f"clamp_min({due} - {used}, 0)",
        "whole": held_by(settings, "namespace"),
        "counted": 'group by (scheduler) (kai_queue_info{job="kai-fleet"})'
        ' or group by (namespace) (kube_resourcequota{resourcequota="gpus"})',
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
