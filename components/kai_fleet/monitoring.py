"""Monitors, recording rules, alerts and dashboards for an existing Prometheus of the host.

Their content is in the YAML files of the folder `monitoring`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import yaml
from pulumi_kubernetes import core
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.networking import v1 as networking

from kai_fleet.guards.bounds import closes_network
from kai_fleet.inputs import resolved
from kai_fleet.options import child_of, component_options
from kai_fleet.releases import KAI, version_key

HOST: Final = "host"  # as a scheduler's name in metrics
ALLOW_PROMETHEUS: Final = "kai-fleet-monitoring"  # the NetworkPolicy of a team's namespace
# Labels by which sidecars of Grafana and Prometheus find ConfigMaps.
_DASHBOARD: Final = {"grafana_dashboard": "1"}
_FOR_PROMETHEUS: Final = {"kai-fleet/prometheus": "1"}
_INTERVAL: Final = "30s"
_NAMESPACE: Final = "monitoring"
_FOLDER: Final = Path(__file__).with_suffix("")
_PLACEHOLDER: Final = re.compile(r"\{\{([A-Z]\w*)\}\}")  # Prometheus' own have a space
# Keys of monitors that a file of Prometheus has under another name, besides its spelling.
_IN_A_FILE: Final = {
    "interval": "scrape_interval",
    "relabelings": "relabel_configs",
    "metricRelabelings": "metric_relabel_configs",
}
Args = Mapping[str, Any]
Rule = dict[str, Any]


class MonitoringArgs(TypedDict):
    """How the host's Prometheus finds the team's metrics."""

    namespace: NotRequired[str]
    """Host namespace of Prometheus, which may reach the metrics. Default: `monitoring`."""
    operator: NotRequired[bool]
    """Declare monitors of the Prometheus operator; false: a ConfigMap. Default: false."""
    certificates: NotRequired[bool]
    """With the operator: monitor when the vCluster's certificate expires. Default: true."""
    interval: NotRequired[pulumi.Input[str]]
    """Scrape interval: `30s`, `1m`. Default: `30s`."""
    labels: NotRequired[dict[str, pulumi.Input[str]]]
    """Labels by which Prometheus selects monitors. Default: none."""
    scheduler: NotRequired[bool]
    """Alert where no KAI inside the vCluster answers. Default: false."""
    parent_queues: NotRequired[list[pulumi.Input[str]]]
    """Queues of that KAI with children, which alerts leave out. Default: none."""


class FleetMonitoringArgs(MonitoringArgs):
    """Arguments of FleetMonitoring, which do not depend on the teams."""

    gpu_resource: NotRequired[str]
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""
    host_kai: NotRequired[bool]
    """The host has a KAI: alert when it does not answer. Default: false."""


class FleetMonitoring(pulumi.ComponentResource):
    """Monitors, recording rules, alerts and dashboards of a host.

    Adding or removing a team changes nothing in it.
    """

    def __init__(
        self, name: str, args: FleetMonitoringArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:Monitoring", name, None, component_options(opts))
        child, name = child_of(self, opts, ordered=False), f"{name}-monitoring"
        namespace = args.get("namespace", _NAMESPACE)
        rules = {"groups": fleet_rules(pulumi.get_stack(), args)}
        if args.get("operator"):
            _custom(f"{name}-pods", "PodMonitor", namespace, args, pod_monitor(args), child)
            _custom(f"{name}-rules", "PrometheusRule", namespace, args, rules, child)
        else:
            files = {"scrape": {"scrape_configs": [scrape_config(args)]}, "rules": rules}
            data = {f"kai-fleet-{file}.yml": _text(content) for file, content in files.items()}
            _config_map(f"{name}-prometheus", "prometheus", args, _FOR_PROMETHEUS, data, child)
        for board, content in dashboards().items():
            data = {f"kai-fleet-{board}.json": content}
            _config_map(f"{name}-dashboard-{board}", board, args, _DASHBOARD, data, child)
        self.register_outputs({"namespace": namespace})


class TeamMonitoring(pulumi.ComponentResource):
    """NetworkPolicy for Prometheus, monitor of a vCluster, and recording rules of one team.

    Args:
        namespace: the team's namespace.
        args: TeamNamespaceArgs of the team.
        inside: options of resources that are deleted with the namespace.
    """

    def __init__(
        self,
        name: str,
        namespace: str,
        args: Args,
        inside: pulumi.ResourceOptions,
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__("kai-fleet:index:TeamMonitoring", name, None, component_options(opts))
        own: Args = args["monitoring"]
        child = child_of(self, opts, ordered=False)
        within = pulumi.ResourceOptions.merge(inside, pulumi.ResourceOptions(parent=self))
        if closes_network(args) and args.get("scheduler", "inside") == "inside":
            networking.NetworkPolicy(
                f"{name}-monitoring-network",
                metadata={"name": ALLOW_PROMETHEUS, "namespace": namespace},
                spec=_filled("network.yaml", Namespace=own.get("namespace", _NAMESPACE)),
                opts=within,
            )
        facts, team = team_facts(name, args), f"team-{name}"
        rules = {"groups": [{"name": f"kai-fleet-{team}", "rules": facts}]}
        if own.get("operator"):
            specs: dict[str, Any] = {"PrometheusRule": rules} if facts else {}
            if own.get("certificates", True):
                specs["ServiceMonitor"] = resolved(
                    lambda every: _filled("vcluster.yaml", Team=name, Interval=every),
                    own.get("interval", _INTERVAL),
                )
            for kind, spec in specs.items():
                _custom(f"{name}-monitoring-{kind.lower()}", kind, namespace, own, spec, within)
        elif facts:
            data = {f"kai-fleet-{team}.yml": resolved(_text, rules)}
            _config_map(f"{name}-monitoring-rules", team, own, _FOR_PROMETHEUS, data, child)
        self.register_outputs({"namespace": namespace})


def pod_monitor(args: Args) -> dict[str, Any]:
    """The `spec` of a PodMonitor, in any namespace."""
    spec: dict[str, Any] = _filled("scrape.yaml", Interval=args.get("interval", _INTERVAL))
    return spec


def scrape_config(args: Args) -> dict[str, Any]:
    """The same, as an entry of `scrape_configs` of a Prometheus in the cluster."""
    spec = pod_monitor(args)
    (endpoint,) = spec["podMetricsEndpoints"]
    pods: dict[str, Any] = {"job_name": "kai-fleet", "kubernetes_sd_configs": [{"role": "pod"}]}
    return {**pods, **_in_a_file({"sampleLimit": spec["sampleLimit"], **endpoint})}


def fleet_rules(stack: str, args: Args) -> list[dict[str, Any]]:
    """Rule groups: recording rules and alerts for all teams, independent of which there are."""
    resource = args.get("gpu_resource", "nvidia.com/gpu")
    label = re.sub("[./]", "_", resource)
    groups = _filled("rules.yaml", Resource=resource, ResourceLabel=label, Stack=stack)
    facts = [*_support(), *_of_scheduler(HOST, args.get("host_kai"), args)]
    return [{"name": "kai-fleet-facts", "rules": facts}, *groups]


def team_facts(team: str, args: Args) -> list[Rule]:
    """Recording rules of one team with what no metric has, such as which queues have children."""
    own = args.get("monitoring", {})
    facts = _of_scheduler(team, True, own, team=team) if own.get("scheduler") else []
    if args.get("scheduler") == "host":
        facts += [_fact("host_queue", queue=queue, team=team) for queue in args.get("queues", ())]
    return facts


def dashboards() -> dict[str, str]:
    """JSON of each Grafana dashboard by name."""
    by_name = _filled("dashboards.yaml")["dashboards"]
    return {name: json.dumps(dashboard, indent=1) for name, dashboard in by_name.items()}


def _support() -> Iterator[Rule]:
    newest = max(version_key(version)[:2] for version in KAI)
    for version, release in KAI.items():
        if release.support_end is not None:
            end = datetime.combine(release.support_end, datetime.max.time(), UTC)
            seconds = str(int(end.timestamp()))
            yield _fact("kai_support_end_seconds", f"vector({seconds})", version=version)
        elif version_key(version)[:2] < newest:  # the newest line is added to the list later
            yield _fact("kai_in_no_support_list", version=version)


def _of_scheduler(scheduler: str, desired: Any, args: Args, **more: Any) -> list[Rule]:
    """Rules with the expected scheduler, and its queues that have children."""
    facts = [_fact("scheduler_wanted", scheduler=scheduler, **more)] if desired else []
    queues = args.get("parent_queues", ())
    return facts + [_fact("parent_queue", scheduler=scheduler, queue=q, **more) for q in queues]


def _fact(name: str, expr: str = "vector(1)", **labels: Any) -> Rule:
    return {"record": f"kai_fleet:{name}", "labels": labels, "expr": expr}


def _in_a_file(value: Any) -> Any:
    """Fields of a monitor with the keys of a file of Prometheus."""
    if isinstance(value, list):
        return [_in_a_file(item) for item in value]
    if not isinstance(value, dict):
        return value
    names = {key: re.sub(r"(?=[A-Z])", "_", key).lower() for key in value} | _IN_A_FILE
    return {names[key]: _in_a_file(item) for key, item in value.items()}


def _filled(file: str, **values: Any) -> Any:
    """A YAML file with its {{Placeholders}} replaced."""
    text = (_FOLDER / file).read_text(encoding="utf-8")
    return yaml.safe_load(_PLACEHOLDER.sub(lambda match: str(values[match[1]]), text))


def _custom(
    name: str, kind: str, namespace: str, args: Args, spec: Any, opts: pulumi.ResourceOptions
) -> None:
    """Declare an object of the Prometheus operator."""
    api, labels = "monitoring.coreos.com/v1", args.get("labels", {})
    metadata = {"name": "kai-fleet", "namespace": namespace, "labels": labels}
    CustomResource(name, api_version=api, kind=kind, metadata=metadata, spec=spec, opts=opts)


def _config_map(
    resource: str, name: str, args: Args, labels: Args, data: Any, opts: pulumi.ResourceOptions
) -> None:
    """Declare ConfigMap `kai-fleet-NAME` for sidecars, where Prometheus and Grafana are."""
    namespace = args.get("namespace", _NAMESPACE)
    metadata: Any = {"name": f"kai-fleet-{name}", "namespace": namespace, "labels": labels}
    core.v1.ConfigMap(resource, metadata=metadata, data=data, opts=opts)


def _text(content: Any) -> str:
    """YAML text for a file of Prometheus."""
    text: str = yaml.safe_dump(content, sort_keys=False, width=10**6)
    return text
