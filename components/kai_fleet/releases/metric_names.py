"""Where KAI's metrics are read, the same in all supported versions."""

from collections.abc import Mapping
from typing import Final, Literal

Component = Literal["scheduler", "queue-controller"]
METRICS_PORT: Final = 8080  # of both, in every version: the charts' defaults and the operator's
# The label `app` of their pods, by version: the names of their deployments in the release table.
APPS: Final[Mapping[Component, str]] = {
    "scheduler": "scheduler|kai-scheduler-.+",  # from v0.10 on one for each shard
    "queue-controller": "queuecontroller|queue-controller",
}
