"""Grafana's dashboards: one of the fleet, and one that shows the team that is chosen in it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

_COLUMNS: Final = 24  # Grafana's
_WIDTH: Final = 12  # of a panel that names none, in columns
_HEIGHT: Final = {"stat": 4, "table": 6}  # in Grafana's rows
_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_SCHEMA: Final = 39  # of Grafana 10.2 and newer
_CHOICES: Final = [
    {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
    {
        "name": "team",
        "label": "Team",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": "label_values(kai_fleet:team_gpus_promised, team)", "refId": "team"},
        "refresh": 2,
        "sort": 1,
    },
]

Panel = Mapping[str, Any]


def dashboards() -> dict[str, str]:
    """Each dashboard's name, and its JSON as Grafana imports it."""
    file = Path(__file__).with_name("dashboards.yaml")
    return {
        dashboard["name"]: json.dumps(
            {
                "uid": dashboard["uid"],
                "title": dashboard["title"],
                "tags": ["kai-fleet"],
                "schemaVersion": _SCHEMA,
                "editable": True,
                "refresh": "1m",
                "time": {"from": "now-24h", "to": "now"},
                "templating": {"list": _CHOICES if dashboard["name"] == "team" else _CHOICES[:1]},
                "panels": _placed(dashboard["panels"]),
            },
            indent=1,
        )
        for dashboard in yaml.safe_load(file.read_text(encoding="utf-8"))
    }


def _placed(panels: Iterable[Panel]) -> list[dict[str, Any]]:
    """From left to right, and on to the next row where there is no room."""
    placed: list[dict[str, Any]] = []
    x = y = tallest = 0
    for number, panel in enumerate(panels, start=1):
        width, height = panel.get("width", _WIDTH), _HEIGHT.get(panel.get("kind", ""), 8)
        if x + width > _COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        place = {"x": x, "y": y, "w": width, "h": height}
        placed.append({"id": number, "gridPos": place, **_picture(panel)})
        x, tallest = x + width, max(tallest, height)
    return placed


def _picture(panel: Panel) -> dict[str, Any]:
    kind = panel.get("kind", "timeseries")
    once = kind in ("table", "bargauge")
    query = {
        "refId": "A",
        "datasource": _SOURCE,
        "expr": panel["expr"],
        "legendFormat": panel.get("legend", "__auto"),
        "instant": once,
        "range": not once,
        **({"format": "table"} if kind == "table" else {}),
    }
    stacking = {"stacking": {"mode": "normal"}, "fillOpacity": 30} if panel.get("stacked") else {}
    unit = {"unit": panel.get("unit", "none"), "custom": stacking}
    return {
        "type": kind,
        "title": panel["title"],
        "description": panel.get("about", ""),
        "datasource": _SOURCE,
        "targets": [query],
        "fieldConfig": {"defaults": unit, "overrides": []},
    }
