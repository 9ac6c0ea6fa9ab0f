"""What is measured of a fleet, by which Prometheus, when an alert fires, and what GPUs cost."""

import re
from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from kai_fleet.releases.metric_names import METRICS_PORT
from kai_fleet.settings.sections.kubernetes import LabelKey, LabelValue
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import Values
from kai_fleet.values import value_at

# What Prometheus takes for a duration, as far as it makes sense here.
Duration = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,4}[smhd]$")]
Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]


class Prometheus(Strict):
    """Where `fleet usage` and `fleet report` ask for numbers over time: at an address, or through
    the host's API.
    """

    url: str | None = Field(
        default=None,
        description="Its address from where fleet runs: https://prometheus.example.com. A token"
        " comes from KAI_FLEET_PROMETHEUS_TOKEN.",
    )
    service: str | None = Field(
        default=None,
        description="Or its Service on the host, NAMESPACE/NAME:PORT; the API server passes it on.",
    )

    @field_validator("url")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("write it with http:// or https://")
        if value is not None and "@" in value.split("//", 1)[1].split("/", 1)[0]:
            raise ValueError(
                "holds a user or a password, in clear; drop them, and set"
                " KAI_FLEET_PROMETHEUS_TOKEN where fleet runs"
            )
        return value

    @field_validator("service")
    @classmethod
    def _whole(cls, value: str | None) -> str | None:
        if value is not None and (value.count("/"), value.count(":")) != (1, 1):
            raise ValueError("write NAMESPACE/NAME:PORT: monitoring/prometheus-operated:9090")
        return value


class Monitoring(Strict):
    """Monitors, rules, alerts and dashboards for a Prometheus that the host has already."""

    namespace: Namespace = Field(
        default="monitoring",
        description="The host's namespace where Prometheus and Grafana run. It may reach the"
        " metrics of every team's KAI.",
    )
    operator: bool = Field(
        default=False,
        description="The Prometheus operator is on the host: PodMonitors, ServiceMonitors and"
        " PrometheusRules are made. Else ConfigMaps with the same content.",
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict,
        description="Labels that your Prometheus selects monitors and rules by, such as"
        " {release: kube-prometheus-stack}.",
    )
    interval: Duration = Field(default="30s", description="How often metrics are read.")
    starved_after: Duration = Field(
        default="15m",
        description="An alert fires when a queue has waited that long for what it is guaranteed.",
    )
    support_days: int = Field(
        default=60,
        ge=0,
        le=1000,
        description="An alert fires so many days before a team's KAI is out of support.",
    )
    certificates: bool = Field(
        default=True,
        description="With the operator: say when a vCluster's certificate runs out. Prometheus then"
        " comes with that certificate, which is the vCluster's administrator's.",
    )
    dashboards: bool = Field(default=True, description="Grafana's, as ConfigMaps.")
    prometheus: Prometheus | None = Field(
        default=None,
        description="Where `fleet usage` and `report` ask; without it, they count what is now.",
    )


PRODUCT: Final = "nvidia.com/gpu.product"  # the label of a node that names the model of its GPUs
DEFAULT: Final = "default"


def _label_value(model: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", model):
        raise ValueError(
            f"is no value of a label; write what nodes have at {PRODUCT}, such as"
            f" NVIDIA-H100-80GB-HBM3, or {DEFAULT}"
        )
    return model


Model = Annotated[str, AfterValidator(_label_value)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]


class Prices(Strict):
    """What `fleet report` counts the GPU-hours of teams and of idle nodes at."""

    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = Field(
        description="Three capital letters, such as EUR."
    )
    gpu_hour: dict[Model, Price] = Field(
        min_length=1,
        description="The price of one GPU for an hour, by the value of its nodes' label"
        f" {PRODUCT}; `{DEFAULT}` is for every other model.",
    )

    def of(self, model: str) -> float | None:
        """The price of a model, "" for one that is not known; None where none is written."""
        return self.gpu_hour.get(model, self.gpu_hour.get(DEFAULT))


_KAIS_OWN: Final = ("kai-scheduler", "kai-resource-reservation")
_METRICS_KEY: Final = "scheduler.ports.metricsPort"


def monitoring_mistakes(monitoring: Monitoring) -> Iterator[tuple[str, str]]:
    """Keys of `kai-fleet:monitoring` that do not go together, and what to write instead."""
    namespace, prometheus = monitoring.namespace, monitoring.prometheus
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
    if prometheus is not None and (prometheus.url is None) == (prometheus.service is None):
        yield (
            "prometheus",
            "needs url or service, and only one of them; write {service:"
            " monitoring/prometheus-operated:9090}",
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
