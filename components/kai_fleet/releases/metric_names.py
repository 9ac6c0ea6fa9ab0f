"""The names of metrics: KAI's by version, and those of what runs beside it.

The list beside this file was read from the sources that it names. KAI's own names are the same in
every supported version, but not all of them, and from v0.16 on its queues have more labels.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from kai_fleet.releases import KAI, closest_known, covers

Component = Literal["scheduler", "queue-controller"]
METRICS_PORT: Final = 8080  # of both, in every version: the charts' defaults and the operator's
# The label `app` of their pods, by version: the names of their deployments in the release table.
APPS: Final[Mapping[Component, str]] = {
    "scheduler": "scheduler|kai-scheduler-.+",  # from v0.10 on one for each shard
    "queue-controller": "queuecontroller|queue-controller",
}


@dataclass(frozen=True)
class KaiMetric:
    """One metric of a KAI version, on the metrics port of one of its components."""

    name: str
    component: Component
    type: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]


def kai_metrics(version: str) -> dict[str, KaiMetric]:
    """What a KAI version measures, by name.

    A version that is not in the table is taken for the newest one of its line, or of all.
    """
    known = closest_known(KAI, version)
    return {
        name: KaiMetric(name, group["component"], group["type"], tuple(group["labels"]))
        for group in _read()["kai"]
        if covers(group, known)
        for name in group["names"]
    }


def queue_label(version: str, metric: str) -> str:
    """The label that holds the Queue object's own name, of a metric about queues.

    What the scheduler measures has the display name in `queue_name` where the queue has one; its
    own name is beside it from v0.16 on only (pkg/scheduler/metrics/metrics.go).
    """
    own = "queue_metadata_name"
    return own if own in kai_metrics(version)[metric].labels else "queue_name"


@cache
def _read() -> Any:
    file = Path(__file__).with_name("metric_names.json")
    return json.loads(file.read_text(encoding="utf-8"))
