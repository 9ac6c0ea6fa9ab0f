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


_METRICS_KEY: Final = "scheduler.ports.metricsPort"


def monitoring_mistakes(monitoring: Monitoring) -> Iterator[tuple[str, str]]:
    """Keys of `kai-fleet:monitoring` that do not go together: (key, sentence)."""
    namespace = monitoring.namespace
    if namespace.startswith("team-") or namespace in ("kai-scheduler", "kai-resource-reservation"):
        whose = "a team's own" if namespace.startswith("team-") else "KAI's own"
        yield "namespace", f"is {namespace}, {whose}; write the namespace where Prometheus runs"
    if monitoring.labels and not monitoring.operator:
        cause = "are for what the Prometheus operator selects"
        yield "labels", f"{cause}; write operator: true, or drop them"


def metrics_mistakes(values: Values) -> Iterator[tuple[str, str]]:
    """Chart values that put a KAI's metrics where nobody reads them: (key, sentence)."""
    port = value_at(values, _METRICS_KEY)
    if port not in (None, METRICS_PORT):
        cause = f"is {port}, and Prometheus reads a KAI's metrics at {METRICS_PORT}"
        yield _METRICS_KEY, f"{cause}: nothing would be counted; drop it"
