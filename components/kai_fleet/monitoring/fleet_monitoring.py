"""FleetMonitoring: monitors, alerts and dashboards that a host has once."""

import pulumi
from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes import core

from kai_fleet.declaring.argument_check import check
from kai_fleet.declaring.options import child_options, component_options
from kai_fleet.monitoring.arguments import FleetMonitoringArgs
from kai_fleet.monitoring.objects import NAMESPACE, declare_object
from kai_fleet.monitoring.rules import dashboards, fleet_rules, pod_monitor

# Label by which Grafana's sidecar finds ConfigMaps.
_DASHBOARD = {"grafana_dashboard": "1"}


class FleetMonitoring(ComponentResource):
    """Monitors, recording rules, alerts and dashboards of a host.

    Adding or removing a team changes nothing in it. It does not read `certificates` and
    `scheduler`, and nothing in it waits for the `depends_on` of its options.

    Raises:
        pulumi.RunError: an argument is not one that it takes.
    """

    def __init__(
        self, name: str, args: FleetMonitoringArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Monitoring", name, None, component_options(opts))
        check(f"FleetMonitoring {name}", FleetMonitoringArgs, args)
        child = child_options(self, opts, ordered=False)
        namespace = args.get("namespace", NAMESPACE)
        prefix = f"{name}-monitoring"
        rules = {"groups": fleet_rules(pulumi.get_stack(), args)}
        declare_object(f"{prefix}-pods", "PodMonitor", namespace, args, pod_monitor(args), child)
        declare_object(f"{prefix}-rules", "PrometheusRule", namespace, args, rules, child)
        for board, content in dashboards().items():
            core.v1.ConfigMap(
                f"{prefix}-dashboard-{board}",
                metadata={
                    "name": f"kai-fleet-{board}",
                    "namespace": namespace,
                    "labels": _DASHBOARD,
                },
                data={f"kai-fleet-{board}.json": content},
                opts=child,
            )
        self.register_outputs({"namespace": namespace})
