"""What is measured of a fleet, and when an alert fires."""

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from kai_fleet.releases.metric_names import METRICS_PORT
from kai_fleet.settings.sections.kubernetes import LabelKey, LabelValue
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import Values
from kai_fleet.values import value_at

# What Prometheus takes for a duration, as far as it makes sense here.
Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}[smhd]$")]
Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]


class Monitoring(Strict):
    """Monitors, rules, alerts and dashboards for a Prometheus that the host has already."""

    namespace: Namespace = "monitoring"
    """The host's namespace of Prometheus and Grafana. It reaches every KAI's metrics."""
    operator: bool = False
    """The host has the Prometheus operator: make its objects. Else ConfigMaps with the content."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    """Labels by which your Prometheus selects its objects: {release: kube-prometheus-stack}."""
    interval: Duration = "30s"
    """How often metrics are read."""
    starved_after: Duration = "15m"
    """An alert fires when a queue has waited that long for what it is guaranteed."""
    support_days: int = Field(default=60, ge=0, le=1000)
    """An alert fires so many days before a team's KAI is out of support."""
    certificates: bool = True
    """With the operator: alert before a vCluster's certificate ends. Prometheus gets to have it."""
    dashboards: bool = True
    """Grafana's, as ConfigMaps."""


_KAIS_OWN: Final = ("kai-scheduler", "kai-resource-reservation")
_METRICS_KEY: Final = "scheduler.ports.metricsPort"


def monitoring_mistakes(monitoring: Monitoring) -> Iterator[tuple[str, str]]:
    """Keys of `kai-fleet:monitoring` that do not go together, and what to write instead."""
    namespace = monitoring.namespace
    instead = "write the namespace where Prometheus runs"
    if namespace.startswith("team-"):
        yield "namespace", f"is {namespace}, a team's own; {instead}"
    if namespace in _KAIS_OWN:
        yield "namespace", f"is {namespace}, which is KAI's own; {instead}"
    if monitoring.labels and not monitoring.operator:
        yield (
            "labels",
            "are for what the Prometheus operator selects; write operator: true, or drop them",
        )


def moved_metrics(values: Values) -> Iterator[tuple[str, str]]:
    """The key of chart values that puts a KAI's metrics where nobody reads them."""
    port = value_at(values, _METRICS_KEY)
    if port not in (None, METRICS_PORT):
        yield (
            _METRICS_KEY,
            f"is {port}, and Prometheus reads a KAI's metrics at {METRICS_PORT}: nothing would be"
            " counted; drop it",
        )
