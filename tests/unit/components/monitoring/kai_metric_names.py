"""The names of metrics that rules and dashboards may use: KAI's by version, and those of others.

The list beside this file was read from the sources that it names. KAI's names are the same in most
supported versions, and from v0.16 on its queues have more labels.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kai_fleet.releases import KAI, taken_for
from tests.chart_keys import covers

_READ: Any = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
OF_OTHERS = {name for source in _READ["others"] for name in source["names"]}


@dataclass(frozen=True)
class KaiMetric:
    """One metric of a KAI version, on the metrics port of one of its components."""

    name: str
    component: str
    type: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]


def kai_metrics(version: str) -> dict[str, KaiMetric]:
    """What a KAI version measures, by name.

    A version that is not in the table is taken for the newest one of its line, or of all.
    """
    known = version if version in KAI else taken_for(KAI, version) or list(KAI)[-1]
    return {
        name: KaiMetric(name, group["component"], group["type"], tuple(group["labels"]))
        for group in _READ["kai"]
        if covers(group, known)
        for name in group["names"]
    }
