"""Recording rules, alerts and dashboards, from the YAML files of this folder."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

from pulumi import Input

from kai_fleet.declaring.inputs import resolved
from kai_fleet.declaring.yaml_files import fill
from kai_fleet.monitoring.arguments import FleetMonitoringArgs, MonitoringArgs, TeamMonitoringArgs
from kai_fleet.releases import KAI, minor_line, version_key

# Name of the host's scheduler in metrics.
HOST = "host"
_INTERVAL = "30s"
_FOLDER = Path(__file__).parent


class Rule(TypedDict):
    """A recording rule of Prometheus."""

    record: str
    labels: dict[str, Input[str]]
    expr: str


# A group of rules, or the `spec` of an object of the Prometheus operator.
Spec = dict[str, Any]


def pod_monitor(args: FleetMonitoringArgs) -> Input[Spec]:
    """The `spec` of a PodMonitor of the KAIs in all namespaces of teams and of the host's KAI."""
    return filled_with_interval("scrape.yaml", args)


def fleet_rules(stack: str, args: FleetMonitoringArgs) -> list[Spec]:
    """Groups of recording rules and alerts for all teams. They do not depend on the teams.

    The first has facts by which the others are computed. Messages name `stack`. `parent_queues` are
    those of the host's KAI; `host_kai` only adds that it has to answer.
    """
    resource = args.get("gpu_resource", "nvidia.com/gpu")
    groups = filled(
        "rules.yaml",
        Resource=resource,
        ResourceLabel=re.sub("[./]", "_", resource),
        Stack=stack,
    )
    facts = _support_facts()
    if args.get("host_kai"):
        facts.append(_fact("scheduler_wanted", scheduler=HOST))
    facts += _parent_queues(args, scheduler=HOST)
    group: Spec = {"name": "kai-fleet-facts", "rules": facts}
    return [group, *groups]


def team_facts(team: str, args: TeamMonitoringArgs) -> list[Rule]:
    """Recording rules of one team with what no metric has, such as which queues have children.

    Without `scheduler` the team has no KAI of its own, and `parent_queues` are not read. [] if the
    arguments say nothing.
    """
    facts = list[Rule]()
    if args.get("scheduler"):
        facts.append(_fact("scheduler_wanted", scheduler=team, team=team))
        facts += _parent_queues(args, scheduler=team, team=team)
    for queue in args.get("host_queues", []):
        facts.append(_fact("host_queue", queue=queue, team=team))
    return facts


def dashboards() -> dict[str, str]:
    """JSON of each Grafana dashboard by its name in dashboards.yaml."""
    by_name = filled("dashboards.yaml")["dashboards"]
    return {name: json.dumps(dashboard, indent=1) for name, dashboard in by_name.items()}


def _support_facts() -> list[Rule]:
    """Rules with the end of support of each KAI version, in seconds since 1970.

    A version whose end is not known yields a rule that says so, except in the newest line, which
    the project's list of supported versions names later.
    """
    newest = max(KAI, key=version_key)
    facts = []
    for version, release in KAI.items():
        if release.support_end is not None:
            end = datetime.combine(release.support_end, datetime.max.time(), UTC)
            seconds = int(end.timestamp())
            facts.append(_fact("kai_support_end_seconds", f"vector({seconds})", version=version))
        elif minor_line(version) != minor_line(newest):
            facts.append(_fact("kai_in_no_support_list", version=version))
    return facts


def _parent_queues(args: MonitoringArgs, scheduler: str, **labels: str) -> list[Rule]:
    """Rules with the scheduler's queues that have children: `parent_queues`, with these labels."""
    return [
        _fact("parent_queue", scheduler=scheduler, queue=queue, **labels)
        for queue in args.get("parent_queues", [])
    ]


def _fact(name: str, expression: str = "vector(1)", **labels: Input[str]) -> Rule:
    """A rule that records the metric `kai_fleet:NAME` with these labels, by default the value 1."""
    return {
        "record": f"kai_fleet:{name}",
        "labels": labels,
        "expr": expression,
    }


def filled_with_interval(file: str, args: MonitoringArgs, **values: str) -> Input[Spec]:
    """A YAML file beside this module with the scrape interval and these values, as `filled`."""
    return resolved(
        lambda interval: filled(file, Interval=interval, **values), args.get("interval", _INTERVAL)
    )


def filled(file: str, **values: object) -> Any:
    """The content of a YAML file beside this module with these values, as `fill` gives it."""
    return fill(_FOLDER / file, values)
