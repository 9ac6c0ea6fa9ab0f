"""Monitors, recording rules, alerts and dashboards for the Prometheus operator of a host.

Their content is in the YAML files in the folder `monitoring`.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NotRequired, TypeAlias, TypedDict

import pulumi
import yaml
from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.networking import v1 as networking

from kai_fleet.guards.bounds import closes_network
from kai_fleet.inputs import resolved
from kai_fleet.namespace_args import MonitoringArgs, TeamNamespaceArgs
from kai_fleet.options import child_options, component_options
from kai_fleet.releases import KAI, version_key

# Name of the host's scheduler in metrics.
HOST: Final = "host"
# Name of the NetworkPolicy that lets Prometheus into a team's namespace.
ALLOW_PROMETHEUS: Final = "kai-fleet-monitoring"
# Label by which Grafana's sidecar finds ConfigMaps.
_DASHBOARD: Final = {"grafana_dashboard": "1"}
_INTERVAL: Final = "30s"
_NAMESPACE: Final = "monitoring"
_FOLDER: Final = Path(__file__).with_suffix("")
# {{Name}} in our YAML files; Prometheus' own placeholders have a space: {{ $labels.team }}.
_PLACEHOLDER: Final = re.compile(r"\{\{([A-Z]\w*)\}\}")


class Rule(TypedDict):
    """A recording rule of Prometheus."""

    record: str
    labels: dict[str, Input[str]]
    expr: str


# A group of rules, or the `spec` of an object of the Prometheus operator.
Spec: TypeAlias = dict[str, Any]


class FleetMonitoringArgs(MonitoringArgs):
    """Arguments of FleetMonitoring. They do not depend on the teams."""

    gpu_resource: NotRequired[str]
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""
    host_kai: NotRequired[bool]
    """The host has a KAI: alert when it does not answer. Default: false."""


class FleetMonitoring(ComponentResource):
    """Monitors, recording rules, alerts and dashboards of a host.

    Adding or removing a team changes nothing in it.
    """

    def __init__(
        self, name: str, args: FleetMonitoringArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Monitoring", name, None, component_options(opts))
        child = child_options(self, opts, ordered=False)
        namespace = args.get("namespace", _NAMESPACE)
        prefix = f"{name}-monitoring"
        rules = {"groups": fleet_rules(pulumi.get_stack(), args)}
        _custom(f"{prefix}-pods", "PodMonitor", namespace, args, pod_monitor(args), child)
        _custom(f"{prefix}-rules", "PrometheusRule", namespace, args, rules, child)
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


class TeamMonitoring(ComponentResource):
    """NetworkPolicy for Prometheus, monitor of a vCluster, and recording rules of one team.

    The NetworkPolicy is there if the team has others and its KAI is inside its vCluster; the rules
    if they say anything; the monitor unless `certificates` is false.

    Args:
        namespace: the team's namespace.
        args: the team's arguments, with `monitoring`.
        inside: options of resources that are deleted with the namespace.
    """

    def __init__(
        self,
        name: str,
        namespace: str,
        args: TeamNamespaceArgs,
        inside: ResourceOptions,
        opts: ResourceOptions,
    ) -> None:
        super().__init__("kai-fleet:index:TeamMonitoring", name, None, component_options(opts))
        monitoring = args["monitoring"]
        within = ResourceOptions.merge(inside, ResourceOptions(parent=self))
        if closes_network(args) and args.get("scheduler", "inside") == "inside":
            networking.NetworkPolicy(
                f"{name}-monitoring-network",
                metadata={"name": ALLOW_PROMETHEUS, "namespace": namespace},
                spec=_filled("network.yaml", Namespace=monitoring.get("namespace", _NAMESPACE)),
                opts=within,
            )
        rules = team_facts(name, args)
        if rules:
            groups: Spec = {"groups": [{"name": f"kai-fleet-team-{name}", "rules": rules}]}
            resource = f"{name}-monitoring-prometheusrule"
            _custom(resource, "PrometheusRule", namespace, monitoring, groups, within)
        if monitoring.get("certificates", True):
            spec = resolved(
                lambda interval: _filled("vcluster.yaml", Team=name, Interval=interval),
                monitoring.get("interval", _INTERVAL),
            )
            resource = f"{name}-monitoring-servicemonitor"
            _custom(resource, "ServiceMonitor", namespace, monitoring, spec, within)
        self.register_outputs({"namespace": namespace})


def pod_monitor(args: FleetMonitoringArgs) -> Spec:
    """The `spec` of a PodMonitor of the pods in all namespaces."""
    spec: Spec = _filled("scrape.yaml", Interval=args.get("interval", _INTERVAL))
    return spec


def fleet_rules(stack: str, args: FleetMonitoringArgs) -> list[Spec]:
    """Groups of recording rules and alerts for all teams. They do not depend on the teams."""
    resource = args.get("gpu_resource", "nvidia.com/gpu")
    label = re.sub("[./]", "_", resource)
    groups = _filled("rules.yaml", Resource=resource, ResourceLabel=label, Stack=stack)
    facts = _support_facts()
    if args.get("host_kai"):
        facts.append(_fact("scheduler_wanted", scheduler=HOST))
    facts += _parent_queues(args, scheduler=HOST)
    return [{"name": "kai-fleet-facts", "rules": facts}, *groups]


def team_facts(team: str, args: TeamNamespaceArgs) -> list[Rule]:
    """Recording rules of one team with what no metric has, such as which queues have children."""
    facts = list[Rule]()
    monitoring = args.get("monitoring", {})
    if monitoring.get("scheduler"):
        facts.append(_fact("scheduler_wanted", scheduler=team, team=team))
        facts += _parent_queues(monitoring, scheduler=team, team=team)
    if args.get("scheduler") == "host":
        facts += [_fact("host_queue", queue=queue, team=team) for queue in args.get("queues", [])]
    return facts


def dashboards() -> dict[str, str]:
    """JSON of each Grafana dashboard by name."""
    by_name = _filled("dashboards.yaml")["dashboards"]
    return {name: json.dumps(dashboard, indent=1) for name, dashboard in by_name.items()}


def _support_facts() -> list[Rule]:
    """Rules with the end of support of each KAI version, in seconds since 1970.

    A version whose end is not known yields a rule that says so, except in the newest line, which
    the project's list of supported versions names later.
    """
    facts = []
    newest_line = max(version_key(version)[:2] for version in KAI)
    for version, release in KAI.items():
        if release.support_end is not None:
            end = datetime.combine(release.support_end, datetime.max.time(), UTC)
            seconds = int(end.timestamp())
            expression = f"vector({seconds})"
            facts.append(_fact("kai_support_end_seconds", expression, version=version))
        elif version_key(version)[:2] < newest_line:
            facts.append(_fact("kai_in_no_support_list", version=version))
    return facts


def _parent_queues(args: MonitoringArgs, scheduler: str, **labels: str) -> list[Rule]:
    """Rules with the scheduler's queues that have children."""
    return [
        _fact("parent_queue", scheduler=scheduler, queue=queue, **labels)
        for queue in args.get("parent_queues", [])
    ]


def _fact(name: str, expression: str = "vector(1)", **labels: Input[str]) -> Rule:
    return {"record": f"kai_fleet:{name}", "labels": labels, "expr": expression}


def _filled(file: str, **values: object) -> Any:
    """The content of a YAML file beside this module, with its {{Placeholders}} replaced."""
    text = (_FOLDER / file).read_text(encoding="utf-8")
    return yaml.safe_load(_PLACEHOLDER.sub(lambda match: str(values[match[1]]), text))


def _custom(
    resource: str,
    kind: str,
    namespace: str,
    args: MonitoringArgs,
    spec: Input[Spec],
    opts: ResourceOptions,
) -> None:
    """Declare object `kai-fleet` of the Prometheus operator."""
    CustomResource(
        resource,
        api_version="monitoring.coreos.com/v1",
        kind=kind,
        metadata={"name": "kai-fleet", "namespace": namespace, "labels": args.get("labels", {})},
        spec=spec,
        opts=opts,
    )
