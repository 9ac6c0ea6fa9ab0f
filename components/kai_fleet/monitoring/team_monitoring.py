"""Facts, monitors and the way in for Prometheus of one team, in the team's namespace."""

from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.networking import v1 as networking

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.monitoring import rules, scraping
from kai_fleet.monitoring.fleet_monitoring import FOR_PROMETHEUS, OPERATOR, as_text
from kai_fleet.settings.sections.monitoring import Monitoring


@dataclass
class TeamMonitoringArgs:
    """How the fleet is measured, and the team that Prometheus is told of."""

    settings: Monitoring
    team: DeclaredTeam


class TeamMonitoring(pulumi.ComponentResource):
    """Lets Prometheus reach a team's KAI, and tells it what no metric does.

    `inside` are the options of what lies in the team's namespace and goes with it.
    """

    def __init__(
        self,
        name: str,
        args: TeamMonitoringArgs,
        inside: pulumi.ResourceOptions,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("kai-fleet:index:TeamMonitoring", name, None, opts)
        settings, namespace = args.settings, f"team-{name}"
        within = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(parent=self))
        if args.team.mode == "virtual" and _is_closed(args.team):
            spec: Any = scraping.let_in(settings)
            networking.NetworkPolicy(
                f"{name}-monitoring-network",
                metadata={"name": scraping.LET_IN, "namespace": namespace},
                spec=spec,
                opts=within,
            )
        facts = rules.of_team(args.team)
        groups = {"groups": [facts] if facts["rules"] else []}
        if settings.operator:
            every = {}
            if settings.certificates:
                every["ServiceMonitor"] = scraping.vcluster_monitor(name, settings)
            if facts["rules"]:
                every["PrometheusRule"] = groups
            for kind, spec in every.items():
                CustomResource(
                    f"{name}-monitoring-{kind.lower()}",
                    api_version=OPERATOR,
                    kind=kind,
                    metadata={
                        "name": "kai-fleet",
                        "namespace": namespace,
                        "labels": settings.labels,
                    },
                    spec=spec,
                    opts=within,
                )
        elif facts["rules"]:
            # Where the Prometheus is, that mounts it.
            core.v1.ConfigMap(
                f"{name}-monitoring-rules",
                metadata={
                    "name": f"kai-fleet-team-{name}",
                    "namespace": settings.namespace,
                    "labels": FOR_PROMETHEUS,
                },
                data={f"kai-fleet-team-{name}.yml": as_text(groups)},
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({"namespace": namespace})


def _is_closed(team: DeclaredTeam) -> bool:
    """Whether network policies keep others from its pods, so that Prometheus has to be let in."""
    return team.isolation is not None and team.isolation.on and team.isolation.network.enabled
