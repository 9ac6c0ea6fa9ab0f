"""Grafana's dashboards: one of the fleet, and one that shows the team that is chosen in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

_WIDTH: Final = 24  # Grafana's columns
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA: Final = 39  # of Grafana 10.2 and newer
_OF_TEAM: Final = 'scheduler=~"$team"'


@dataclass(frozen=True)
class Panel:
    """One picture: its queries, and the legend of each; `{{label}}` is Grafana's."""

    title: str
    queries: Sequence[tuple[str, str]]
    kind: Literal["timeseries", "stat", "table", "bargauge"] = "timeseries"
    unit: str = "none"
    width: int = 12
    height: int = 8
    stacked: bool = False
    about: str = ""


def fleet() -> list[Panel]:
    """Who holds what, who waits, and what is wrong."""
    return [
        Panel("GPUs promised", [("sum(kai_fleet:team_gpus_promised)", "")], "stat", width=4),
        Panel("GPUs held", [("sum(kai_fleet:team_gpus_held)", "")], "stat", width=4),
        Panel(
            "GPUs in the cluster",
            [('sum(kube_node_status_allocatable{resource=~".+_com_gpu"})', "")],
            "stat",
            width=4,
        ),
        Panel(
            "Alerts",
            [('count(ALERTS{alertname=~"KaiFleet.+", alertstate="firing"}) or vector(0)', "")],
            "stat",
            width=4,
        ),
        Panel(
            "Schedulers that answer",
            [('sum(up{job="kai-fleet", component="scheduler"})', "")],
            "stat",
            width=4,
        ),
        Panel(
            "Busy, of the GPUs that teams hold",
            [("avg(kai_fleet:team_gpu_utilization)", "")],
            "stat",
            "percent",
            width=4,
        ),
        Panel("GPUs held, by team", [("kai_fleet:team_gpus_held", "{{team}}")], stacked=True),
        Panel(
            "Held, in percent of what the team was promised",
            [
                (
                    "100 * kai_fleet:team_gpus_held / on (team) (kai_fleet:team_gpus_promised > 0)",
                    "{{team}}",
                )
            ],
            "bargauge",
            "percent",
        ),
        Panel(
            "Queues that wait for what they are guaranteed",
            [
                (
                    "(kai_fleet:queue_gpus_due - kai_fleet:queue_gpus_allocated > 0.01)"
                    " unless on (scheduler, queue) kai_fleet:parent_queue",
                    "{{scheduler}} {{queue}}",
                )
            ],
            about="GPUs that a queue asks for, is guaranteed and does not have.",
        ),
        Panel(
            "Guaranteed GPUs that nobody uses",
            [
                (
                    "kai_fleet:queue_gpus_idle unless on (scheduler, queue) kai_fleet:parent_queue",
                    "{{scheduler}} {{queue}}",
                )
            ],
            stacked=True,
        ),
        Panel("Busy, by team", [("kai_fleet:team_gpu_utilization", "{{team}}")], unit="percent"),
        Panel(
            "One scheduling cycle",
            [("kai_e2e_scheduling_latency_milliseconds", "{{scheduler}}")],
            unit="ms",
        ),
        Panel(
            "KAI versions",
            [("kai_fleet:kai_version", "{{scheduler}} {{version}}")],
            "table",
            height=6,
        ),
        Panel(
            "Alerts that fire",
            [('ALERTS{alertname=~"KaiFleet.+", alertstate="firing"}', "")],
            "table",
            height=6,
        ),
    ]


def team() -> list[Panel]:
    """A team's queues, and how its GPUs are used."""
    of_queue = "{{queue}}"
    return [
        Panel(
            "GPUs promised",
            [('sum(kai_fleet:team_gpus_promised{team=~"$team"})', "")],
            "stat",
            width=6,
        ),
        Panel("GPUs held", [('sum(kai_fleet:team_gpus_held{team=~"$team"})', "")], "stat", width=6),
        Panel(
            "Busy",
            [('avg(kai_fleet:team_gpu_utilization{team=~"$team"})', "")],
            "stat",
            "percent",
            width=6,
        ),
        Panel(
            "Alerts",
            [
                (
                    'count(ALERTS{alertname=~"KaiFleet.+", alertstate="firing",'
                    ' team=~"$team"}) or vector(0)',
                    "",
                )
            ],
            "stat",
            width=6,
        ),
        Panel(
            "GPUs, by queue",
            [(f"kai_fleet:queue_gpus_allocated{{{_OF_TEAM}}}", of_queue)],
            about="A queue with children holds what they hold.",
        ),
        Panel(
            "Borrowed from others",
            [(f"kai_fleet:queue_gpus_borrowed{{{_OF_TEAM}}}", of_queue)],
            about="Above what the queue is guaranteed: it is taken back when others ask for it.",
        ),
        Panel(
            "Waiting for what is guaranteed",
            [
                (
                    f"clamp_min(kai_fleet:queue_gpus_due{{{_OF_TEAM}}}"
                    " - kai_fleet:queue_gpus_allocated, 0)",
                    of_queue,
                )
            ],
        ),
        Panel(
            "Guaranteed and not used",
            [(f"kai_fleet:queue_gpus_idle{{{_OF_TEAM}}}", of_queue)],
        ),
        Panel(
            "CPU cores, by queue",
            [(f"kai_queue_allocated_cpu_cores{{{_OF_TEAM}}}", "{{queue_name}}")],
        ),
        Panel(
            "Memory, by queue",
            [(f"kai_queue_allocated_memory_bytes{{{_OF_TEAM}}}", "{{queue_name}}")],
            unit="bytes",
        ),
        Panel(
            "Pod groups, a minute",
            [
                (
                    f"60 * sum by (action) (rate(kai_podgroups_scheduled_by_action{{{_OF_TEAM}}}"
                    "[5m]))",
                    "{{action}}",
                )
            ],
        ),
        Panel(
            "One scheduling cycle",
            [(f"kai_e2e_scheduling_latency_milliseconds{{{_OF_TEAM}}}", "{{shard}}")],
            unit="ms",
        ),
    ]


def every() -> dict[str, str]:
    """Each dashboard's name, and its JSON as Grafana imports it."""
    query = "label_values(kai_fleet:team_gpus_promised, team)"
    choice = {
        "name": "team",
        "label": "Team",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "team"},
        "refresh": 2,
        "sort": 1,
    }
    return {
        "fleet": _dashboard("kai-fleet", "GPU fleet", fleet(), []),
        "team": _dashboard("kai-fleet-team", "GPU fleet: one team", team(), [choice]),
    }


def _dashboard(uid: str, title: str, panels: Iterable[Panel], choices: list[dict[str, Any]]) -> str:
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource"}
    content = {
        "uid": uid,
        "title": title,
        "tags": ["kai-fleet"],
        "schemaVersion": _SCHEMA,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [{**source, "query": "prometheus"}, *choices]},
        "panels": _placed(panels),
    }
    return json.dumps(content, indent=1)


def _placed(panels: Iterable[Panel]) -> list[dict[str, Any]]:
    """From left to right, and on to the next row where there is no room."""
    found: list[dict[str, Any]] = []
    x = y = tallest = 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > _WIDTH:
            x, y, tallest = 0, y + tallest, 0
        height = 4 if panel.kind == "stat" else panel.height
        place = {"x": x, "y": y, "w": panel.width, "h": height}
        found.append({"id": number, "gridPos": place, **_picture(panel)})
        x, tallest = x + panel.width, max(tallest, height)
    return found


def _picture(panel: Panel) -> dict[str, Any]:
    once = panel.kind in ("table", "bargauge")
    targets = [
        {
            "refId": chr(ord("A") + at),
            "datasource": _SOURCE,
            "expr": expr,
            "legendFormat": legend or "__auto",
            "instant": once,
            "range": not once,
            **({"format": "table"} if panel.kind == "table" else {}),
        }
        for at, (expr, legend) in enumerate(panel.queries)
    ]
    stacking = {"stacking": {"mode": "normal"}, "fillOpacity": 30} if panel.stacked else {}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": stacking}, "overrides": []},
    }
