"""Monitors, rules, alerts and dashboards of a whole fleet, whoever its teams are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import yaml
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource

from kai_fleet.cluster.noted import noted
from kai_fleet.fleet.model import DeclaredCluster, Fleet
from kai_fleet.host.platform import Platform
from kai_fleet.monitoring import dashboards, rules, scraping
from kai_fleet.settings.sections.monitoring import Monitoring

OPERATOR: Final = "monitoring.coreos.com/v1"
# By these a Grafana and a Prometheus with a sidecar find their ConfigMaps.
DASHBOARD: Final = {"grafana_dashboard": "1"}
FOR_PROMETHEUS: Final = {"kai-fleet/prometheus": "1"}


@dataclass
class MonitoringArgs:
    """How the fleet on a host is measured."""

    settings: Monitoring
    host: DeclaredCluster


class FleetMonitoring(pulumi.ComponentResource):
    """Monitors, recording rules, alerts and dashboards on a host that has a Prometheus already.

    A team that comes or goes changes nothing in it. It costs one PodMonitor and one PrometheusRule,
    or one ConfigMap, and a ConfigMap for each of two dashboards.
    """

    def __init__(
        self, name: str, args: MonitoringArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Monitoring", name, None, opts)
        self._name, self._settings = name, args.settings
        groups = rules.of_fleet(
            args.settings,
            pulumi.get_stack(),
            args.host.gpu_resource,
            args.host.queues,
            host_kai=bool(args.host.kai),
        )
        if args.settings.operator:
            self._custom("PodMonitor", "pods", scraping.pod_monitor(args.settings))
            self._custom("PrometheusRule", "rules", {"groups": groups})
        else:
            scrape = {"scrape_configs": [scraping.scrape_config(args.settings)]}
            files = {"kai-fleet-scrape.yml": scrape, "kai-fleet-rules.yml": {"groups": groups}}
            texts = {file: as_text(content) for file, content in files.items()}
            self._config_map("prometheus", "kai-fleet-prometheus", FOR_PROMETHEUS, texts)
        if args.settings.dashboards:
            for called, content in dashboards.every().items():
                file = {f"kai-fleet-{called}.json": content}
                self._config_map(f"dashboard-{called}", f"kai-fleet-{called}", DASHBOARD, file)
        self.register_outputs({"namespace": args.settings.namespace})

    def _custom(self, kind: str, called: str, spec: Mapping[str, Any]) -> None:
        CustomResource(
            f"{self._name}-monitoring-{called}",
            api_version=OPERATOR,
            kind=kind,
            metadata={
                "name": "kai-fleet",
                "namespace": self._settings.namespace,
                "labels": self._settings.labels,
            },
            spec=spec,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _config_map(
        self, called: str, name: str, labels: Mapping[str, str], data: Mapping[str, str]
    ) -> None:
        core.v1.ConfigMap(
            f"{self._name}-monitoring-{called}",
            metadata={"name": name, "namespace": self._settings.namespace, "labels": labels},
            data=data,
            opts=pulumi.ResourceOptions(parent=self),
        )


def as_text(content: Any) -> str:
    """A file for Prometheus."""
    text: str = yaml.safe_dump(content, sort_keys=False, width=10**6)
    return text


def monitoring_of(fleet: Fleet, platform: Platform) -> None:
    """What a platform's stack tells Prometheus; nothing where it is off, or in a team stack."""
    if fleet.host.monitoring is None:
        return
    FleetMonitoring(
        "host",
        MonitoringArgs(fleet.host.monitoring, fleet.host),
        noted(
            pulumi.ResourceOptions(
                provider=platform.provider,
                depends_on=platform.ready,
                transformations=platform.transformations,
            ),
            fleet.labels,
            fleet.annotations,
        ),
    )
