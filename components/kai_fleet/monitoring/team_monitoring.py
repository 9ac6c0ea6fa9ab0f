"""What Prometheus is told of one team, in the team's namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.networking import v1 as networking

from kai_fleet.monitoring import rules, scraping
from kai_fleet.monitoring.fleet_monitoring import FOR_PROMETHEUS, OPERATOR, as_text
from kai_fleet.settings.sections.monitoring import Monitoring
from kai_fleet.settings.sections.queues import QueueTree


@dataclass
class TeamMonitoringArgs:
    """`own_kai`: a KAI runs in the team's vCluster, with these `queues`. `host_queues` are the
    leaves of the host's tree that are the team's. `closed`: network policies keep others from its
    pods, and Prometheus has to be let in.
    """

    settings: Monitoring
    own_kai: bool = False
    queues: QueueTree = field(default_factory=dict)
    host_queues: Sequence[str] = ()
    closed: bool = True


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
        if args.closed:
            spec: Any = scraping.let_in(settings)
            networking.NetworkPolicy(
                f"{name}-monitoring-network",
                metadata={"name": scraping.LET_IN, "namespace": namespace},
                spec=spec,
                opts=within,
            )
        facts = rules.of_team(name, args.queues, own_kai=args.own_kai, host_queues=args.host_queues)
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
