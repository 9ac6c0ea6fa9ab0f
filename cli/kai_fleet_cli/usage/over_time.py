"""GPU-hours by team and queue, asked of a Prometheus that reads every team's KAI.

Six questions for a whole fleet, however many teams it has. They rest on KAI's own metrics by the
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
from kai_fleet.releases import KAI
from kai_fleet.releases.metric_names import kai_metrics, queue_label
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.queues import leaves
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.usage.prometheus import Ask
from kai_fleet_cli.usage.rows import OWN_STACK, QueueRow, Shares, TeamRow

_SINCE: Final = re.compile(r"([1-9]\d{0,4})([mhdw])")
_HOURS: Final = {"m": 1 / 60, "h": 1.0, "d": 24.0, "w": 168.0}
_STEPS: Final = 2000  # of a window: more takes Prometheus long and changes little
_LEAST: Final = 60  # seconds
_ALLOCATED: Final = "kai_queue_allocated_gpus"
_GUARANTEED: Final = "kai_queue_deserved_gpus"
_FAIR: Final = "kai_queue_fair_share_gpu"


@dataclass(frozen=True)
class Window:
    """How far back, as it was written, and in hours; `step` is the seconds between samples."""

    since: str
    hours: float
    step: int

    @classmethod
    def of(cls, since: str) -> Window:
        """`90m`, `12h`, `7d`, `4w`. Raises UserError."""
        found = _SINCE.fullmatch(since)
        if found is None:
            raise UserError(f"--since is {since!r}; write minutes, hours, days or weeks: 90m, 7d")
        hours = int(found[1]) * _HOURS[found[2]]
        step = max(_LEAST, round(hours * 3600 / _STEPS / _LEAST) * _LEAST)
        return cls(since, hours, step)


@dataclass(frozen=True)
class OverTime:
    """Each team, and the hours of which there are numbers."""

    teams: list[TeamRow]
    measured: float


def over_time(ask: Ask, settings: Settings, names: Iterable[str], window: Window) -> OverTime:
    """The GPU-hours of these teams of a stack. Raises Unreachable."""
    versions = {kai for name in settings.teams if (kai := settings.kai_of(name))}
    questions = _questions(settings, sorted(versions) or [list(KAI)[-1]], window)
    with ThreadPoolExecutor(max_workers=len(questions)) as pool:
        answers = dict(zip(questions, pool.map(ask, questions.values()), strict=True))
    per_hour = window.step / 3600
    amounts: dict[str, dict[tuple[str, str], float]] = {
        what: {
            (it.labels.get("scheduler", ""), it.labels.get("queue", "")): it.value * per_hour
            for it in answers[what]
        }
        for what in ("used", "guaranteed", "idle", "owed")
    }
    whole = {it.labels.get("namespace", ""): it.value * per_hour for it in answers["whole"]}
    counted = [it.value * per_hour for it in answers["counted"]]
    teams = [_team(settings, name, amounts, whole) for name in names]
    return OverTime(teams, min(window.hours, max(counted, default=0.0)))


def _team(
    settings: Settings,
    name: str,
    amounts: Mapping[str, Mapping[tuple[str, str], float]],
    whole: Mapping[str, float],
) -> TeamRow:
    if name not in settings.teams:  # of a stack of its own, which has its queues
        used = whole.get(f"team-{name}", 0.0)
        promised = settings.team_stacks[name].gpus
        return TeamRow(name, OWN_STACK, promised, (QueueRow(None, Shares(used, used)),))
    team = settings.teams[name]
    mode = team.scheduler.mode
    scheduler = name if mode == "virtual" else "host"
    rows = []
    for queue in _queues(settings, name):
        of = {what: found.get((scheduler, queue), 0.0) for what, found in amounts.items()}
        borrowed = max(0.0, of["used"] - of["guaranteed"])
        shares = Shares(of["used"], of["guaranteed"], borrowed, of["idle"], of["owed"])
        rows.append(QueueRow(queue, shares))
    if mode == "default":
        used = whole.get(f"team-{name}", 0.0)
        rows.append(QueueRow(None, Shares(used, used)))
    return TeamRow(name, mode, team.gpus, tuple(rows))


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


def _questions(settings: Settings, versions: Sequence[str], window: Window) -> dict[str, str]:
    used, quota = _by_queue(_ALLOCATED, versions), _by_queue(_GUARANTEED, versions)
    fair = _by_queue(_FAIR, versions)
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
    labels = {queue_label(version, metric) for version in versions if _has(version, metric)}
    for label in ("queue_name", *(sorted(labels - {"queue_name"}))):
        series = f'label_replace({series}, "queue", "$1", "{label}", "(.+)")'
    return f"(max by (scheduler, queue) ({series}))"


def _has(version: str, metric: str) -> bool:
    return metric in kai_metrics(version)
