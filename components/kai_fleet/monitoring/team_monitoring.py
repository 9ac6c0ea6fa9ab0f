"""TeamMonitoring: how Prometheus reaches one team, and what no metric says of it."""

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.networking import v1 as networking

from kai_fleet.declaring.options import component_options
from kai_fleet.monitoring.arguments import TeamMonitoringArgs
from kai_fleet.monitoring.objects import NAMESPACE, declare_object
from kai_fleet.monitoring.rules import Spec, filled, filled_with_interval, team_facts

# Name of the NetworkPolicy that lets Prometheus into a team's namespace.
ALLOW_PROMETHEUS = "kai-fleet-monitoring"


class TeamMonitoring(ComponentResource):
    """NetworkPolicy for Prometheus, monitor of a vCluster, and recording rules of one team.

    The NetworkPolicy is there with `network`; the rules if they say anything; the monitor unless
    `certificates` is false. The caller has checked `args`.

    Args:
        name: the team.
        namespace: the team's namespace; that in `args` is the one of Prometheus.
        inside: options of resources that are deleted with the namespace, for all that it declares.
        opts: options of the component alone; its `depends_on` does not count.
    """

    def __init__(
        self,
        name: str,
        namespace: str,
        args: TeamMonitoringArgs,
        inside: ResourceOptions,
        opts: ResourceOptions,
    ) -> None:
        super().__init__("kai-fleet:index:TeamMonitoring", name, None, component_options(opts))
        within = ResourceOptions.merge(inside, ResourceOptions(parent=self))
        if args.get("network"):
            networking.NetworkPolicy(
                f"{name}-monitoring-network",
                metadata={"name": ALLOW_PROMETHEUS, "namespace": namespace},
                spec=filled("network.yaml", Namespace=args.get("namespace", NAMESPACE)),
                opts=within,
            )
        rules = team_facts(name, args)
        if rules:
            groups: Spec = {"groups": [{"name": f"kai-fleet-team-{name}", "rules": rules}]}
            resource = f"{name}-monitoring-prometheusrule"
            declare_object(resource, "PrometheusRule", namespace, args, groups, within)
        if args.get("certificates", True):
            spec = filled_with_interval("vcluster.yaml", args, Team=name)
            resource = f"{name}-monitoring-servicemonitor"
            declare_object(resource, "ServiceMonitor", namespace, args, spec, within)
        self.register_outputs({"namespace": namespace})
