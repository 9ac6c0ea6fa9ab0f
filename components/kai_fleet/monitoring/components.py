"""Monitors, rules, alerts and dashboards: of a whole fleet, and of one team."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pulumi
import yaml
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.networking import v1 as networking

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.host.platform import Platform
from kai_fleet.monitoring import prometheus
from kai_fleet.monitoring.dashboards import dashboards
from kai_fleet.options import noted
from kai_fleet.settings.sections.monitoring import Monitoring

# By these a Grafana and a Prometheus with a sidecar find their ConfigMaps.
_DASHBOARD: Final = {"grafana_dashboard": "1"}
_FOR_PROMETHEUS: Final = {"kai-fleet/prometheus": "1"}


class FleetMonitoring(pulumi.ComponentResource):
    """Monitors, recording rules, alerts and dashboards on a host that has a Prometheus already.

    `args` is that host, with how its fleet is measured. A team that comes or goes changes nothing
    in it.
    """

    def __init__(
        self, name: str, args: DeclaredCluster, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Monitoring", name, None, opts)
        child, settings = pulumi.ResourceOptions(parent=self), args.monitoring or Monitoring()
        groups = prometheus.rules_of_fleet(
            settings, pulumi.get_stack(), args.gpu_resource, args.queues, host_kai=bool(args.kai)
        )
        name = f"{name}-monitoring"
        if settings.operator:
            pods = prometheus.pod_monitor(settings)
            _custom(f"{name}-pods", "PodMonitor", settings.namespace, settings, pods, child)
            rules = {"groups": groups}
            _custom(f"{name}-rules", "PrometheusRule", settings.namespace, settings, rules, child)
        else:
            scrape = {"scrape_configs": [prometheus.scrape_config(settings)]}
            files = {"kai-fleet-scrape.yml": scrape, "kai-fleet-rules.yml": {"groups": groups}}
            data = {file: _text(content) for file, content in files.items()}
            called = "kai-fleet-prometheus"
            _config_map(f"{name}-prometheus", called, settings, _FOR_PROMETHEUS, data, child)
        if settings.dashboards:
            for called, content in dashboards().items():
                full, data = f"kai-fleet-{called}", {f"kai-fleet-{called}.json": content}
                _config_map(f"{name}-dashboard-{called}", full, settings, _DASHBOARD, data, child)
        self.register_outputs({"namespace": settings.namespace})


@dataclass
class TeamMonitoringArgs:
    """How the fleet is measured, and the team that Prometheus is told of.

    `inside` are the options of what lies in the team's namespace and goes with it.
    """

    settings: Monitoring
    team: DeclaredTeam
    inside: pulumi.ResourceOptions


class TeamMonitoring(pulumi.ComponentResource):
    """Lets Prometheus reach a team's KAI, and tells it what no metric does."""

    def __init__(
        self, name: str, args: TeamMonitoringArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:TeamMonitoring", name, None, opts)
        settings, team, namespace = args.settings, args.team, f"team-{name}"
        child = pulumi.ResourceOptions(parent=self)
        within = pulumi.ResourceOptions.merge(args.inside, child)
        closed = team.isolation is not None and team.isolation.on and team.isolation.network.enabled
        if team.mode == "virtual" and closed:
            way_in: Any = prometheus.let_in(settings)
            networking.NetworkPolicy(
                f"{name}-monitoring-network",
                metadata={"name": prometheus.LET_IN, "namespace": namespace},
                spec=way_in,
                opts=within,
            )
        facts = prometheus.facts_of_team(team)
        rules: dict[str, Any] = {"groups": [facts]} if facts["rules"] else {}
        if settings.operator:
            every = {
                "ServiceMonitor": settings.certificates
                and prometheus.vcluster_monitor(name, settings),
                "PrometheusRule": rules,
            }
            for kind, spec in every.items():
                if spec:
                    called = f"{name}-monitoring-{kind.lower()}"
                    _custom(called, kind, namespace, settings, spec, within)
        elif rules:
            called = f"kai-fleet-team-{name}"
            data = {f"{called}.yml": _text(rules)}
            _config_map(f"{name}-monitoring-rules", called, settings, _FOR_PROMETHEUS, data, child)
        self.register_outputs({"namespace": namespace})


def _custom(
    name: str,
    kind: str,
    namespace: str,
    settings: Monitoring,
    spec: Any,
    opts: pulumi.ResourceOptions,
) -> None:
    """An object of Prometheus' operator."""
    CustomResource(
        name,
        api_version="monitoring.coreos.com/v1",
        kind=kind,
        metadata={"name": "kai-fleet", "namespace": namespace, "labels": settings.labels},
        spec=spec,
        opts=opts,
    )


def _config_map(
    name: str,
    called: str,
    settings: Monitoring,
    labels: Mapping[str, str],
    data: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> None:
    """Files where the Prometheus is, that mounts them."""
    core.v1.ConfigMap(
        name,
        metadata={"name": called, "namespace": settings.namespace, "labels": labels},
        data=data,
        opts=opts,
    )


def _text(content: Any) -> str:
    """A file for Prometheus."""
    text: str = yaml.safe_dump(content, sort_keys=False, width=10**6)
    return text


def monitoring_of(platform: Platform) -> None:
    """What a platform's stack tells Prometheus; nothing where it is off, or in a team stack."""
    fleet = platform.args.fleet
    if fleet.host.monitoring is None:
        return
    opts = noted(platform.once_ready(), fleet.labels, fleet.annotations)
    FleetMonitoring("host", fleet.host, opts)
