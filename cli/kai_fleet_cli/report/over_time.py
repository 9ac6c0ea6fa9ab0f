"""GPU-hours by team and queue, from a Prometheus that reads every team's KAI.

Six queries for a whole fleet, however many teams it has. They rest on KAI's own metrics by the
names of its versions, and not on recording rules: a Prometheus that was told of them yesterday has
older numbers all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from kai_fleet.fleet.team_stack import granted_queue
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


@dataclass(frozen=True)
class Window:
    """How far back, as it was written, and in hours; `step` is the seconds between samples."""

    since: str
    hours: float
    step: int

    @classmethod
    def of(cls, since: str) -> Window:
        """`90m`, `12h`, `7d`, `4w`. Raises UserError."""
        written = _SINCE.fullmatch(since)
        if written is None:
            raise UserError(f"--since is {since!r}; write minutes, hours, days or weeks: 90m, 7d")
        hours = int(written[1]) * _HOURS[written[2]]
        step = max(_LEAST, round(hours * 3600 / _STEPS / _LEAST) * _LEAST)
        return cls(since, hours, step)


def gpu_hours(
    query: Query, settings: Settings, names: Iterable[str], window: Window
) -> tuple[list[TeamUsageRow], float]:
    """These teams' GPU-hours, and the hours of which there are numbers. Raises UnreachableError."""
    versions = {kai for name in settings.teams if (kai := settings.kai_of(name))}
    queries = _queries(settings, sorted(versions) or [list(KAI)[-1]], window)
    with ThreadPoolExecutor(max_workers=len(queries)) as pool:
        answers = dict(zip(queries, pool.map(query, queries.values()), strict=True))
    per_hour = window.step / 3600
    by_queue: dict[str, dict[tuple[str, str], float]] = {
        what: {
            (labels.get("scheduler", ""), labels.get("queue", "")): value * per_hour
            for labels, value in answers[what]
        }
        for what in ("used", "guaranteed", "idle", "owed")
    }
    whole = {labels.get("namespace", ""): value * per_hour for labels, value in answers["whole"]}
    counted = max((value * per_hour for _, value in answers["counted"]), default=0.0)
    return [_team(settings, name, by_queue, whole) for name in names], min(window.hours, counted)


def _team(
    settings: Settings,
    name: str,
    by_queue: Mapping[str, Mapping[tuple[str, str], float]],
    whole: Mapping[str, float],
) -> TeamUsageRow:
    used = whole.get(f"team-{name}", 0.0)
    without_queues = GpuBalance(used, used)
    if name not in settings.teams:  # of a stack of its own, which has its queues
        return TeamUsageRow(
            name, OWN_STACK, settings.team_stacks[name].gpus, {None: without_queues}
        )
    team = settings.teams[name]
    mode = team.scheduler.mode
    scheduler = name if mode == "virtual" else "host"
    balances: dict[str | None, GpuBalance] = {}
    for queue in _queues(settings, name):
        hours = {what: amounts.get((scheduler, queue), 0.0) for what, amounts in by_queue.items()}
        borrowed = max(0.0, hours["used"] - hours["guaranteed"])
        balances[queue] = GpuBalance(borrowed=borrowed, **hours)
    if mode == "default":
        balances[None] = without_queues
    return TeamUsageRow(name, mode, team.gpus, balances)


def _queues(settings: Settings, name: str) -> Sequence[str]:
    """The leaves that a team's pods may name."""
    team = settings.teams[name]
    if team.queues:
        return leaves(team.queues)
    if team.queue:
        return [team.queue]
    facts = settings.platform_facts
    granted = granted_queue(name, facts)[0] if facts else None
    return [granted] if granted and team.scheduler.mode == "host" else []


def _queries(settings: Settings, versions: Sequence[str], window: Window) -> dict[str, str]:
    used, quota, fair = (
        _by_queue(f"kai_queue_{metric}", versions)
        for metric in ("allocated_gpus", "deserved_gpus", "fair_share_gpu")
    )
    limited = f"({quota} >= 0)"
    # A quota of -1 is unlimited: then everything is within it.
    within = f"(({used} and {quota} == -1) or ({used} < {limited}) or ({limited} and {used}))"
    due = f"(({fair} and {quota} == -1) or ({fair} < {limited}) or ({limited} and {fair}))"
    resource = settings.gpu.resource.replace(".", "_").replace("/", "_")
    held = (
        f'sum by (namespace) (kube_pod_container_resource_requests{{resource="{resource}",'
        ' node!="", namespace=~"team-.+"} and on (namespace, pod)'
        ' (kube_pod_status_phase{phase=~"Pending|Running"} == 1))'
    )
    over = f"[{window.since}:{window.step}s]"
    return {
        "used": f"sum_over_time({used}{over})",
        "guaranteed": f"sum_over_time({within}{over})",
        "idle": f"sum_over_time((clamp_min({limited} - {used}, 0)){over})",
        "owed": f"sum_over_time((clamp_min({due} - {used}, 0)){over})",
        "whole": f"sum_over_time({held}{over})",
        "counted": 'count_over_time((count(kai_queue_info{job="kai-fleet"}'
        f' or kube_resourcequota{{resourcequota="gpus"}})){over})',
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
