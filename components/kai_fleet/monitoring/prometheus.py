"""What Prometheus and its operator read: how to scrape every team's KAI, rules and alerts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from kai_fleet.fleet.model import HOST, DeclaredTeam
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.guards.policies import NAME_LABEL
from kai_fleet.releases import KAI, version_key
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.releases.metric_names import APPS, METRICS_PORT
from kai_fleet.settings.sections.monitoring import Monitoring

LET_IN: Final = "kai-fleet-monitoring"  # the NetworkPolicy of a team's namespace
_GAP: Final = re.compile(r"\{\{([A-Z]\w*)\}\}")  # Prometheus' own have a space
Group = dict[str, Any]


def pod_monitor(monitoring: Monitoring) -> dict[str, Any]:
    """The `spec` of a PodMonitor, in any namespace."""
    scrape = _scrape(monitoring)
    endpoint = {key: value for key, value in scrape.items() if key != "sampleLimit"}
    return {
        "namespaceSelector": {"any": True},
        "selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
        "sampleLimit": scrape["sampleLimit"],
        "podMetricsEndpoints": [endpoint],
    }


def scrape_config(monitoring: Monitoring) -> dict[str, Any]:
    """The same, as an entry of `scrape_configs` of a Prometheus in the cluster."""
    scrape = _scrape(monitoring)
    return {
        "job_name": "kai-fleet",
        "scrape_interval": scrape["interval"],
        "sample_limit": scrape["sampleLimit"],
        "follow_redirects": scrape["followRedirects"],
        "honor_timestamps": scrape["honorTimestamps"],
        "kubernetes_sd_configs": [{"role": "pod"}],
        "relabel_configs": [_snake(step) for step in scrape["relabelings"]],
        "metric_relabel_configs": [_snake(step) for step in scrape["metricRelabelings"]],
    }


def vcluster_monitor(team: str, monitoring: Monitoring) -> dict[str, Any]:
    """The `spec` of a ServiceMonitor of a team's vCluster, in the team's namespace."""
    spec: dict[str, Any] = _filled("vcluster.yaml", {"Team": team, "Interval": monitoring.interval})
    return spec


def let_in(monitoring: Monitoring) -> dict[str, Any]:
    """The `spec` of a NetworkPolicy of a team's namespace: Prometheus reaches the team's KAI."""
    home = {"match_labels": {NAME_LABEL: monitoring.namespace}}
    return {
        "pod_selector": {"match_labels": {"vcluster.loft.sh/namespace": KAI_NAMESPACE}},
        "policy_types": ["Ingress"],
        "ingress": [
            {
                "from": [{"namespace_selector": home}],
                "ports": [{"port": METRICS_PORT, "protocol": "TCP"}],
            }
        ],
    }


def _scrape(monitoring: Monitoring) -> dict[str, Any]:
    words: dict[str, str | int] = {
        "Interval": monitoring.interval,
        "Port": METRICS_PORT,
        "Apps": "|".join(APPS.values()),
        "AppsOfScheduler": APPS["scheduler"],
        "AppsOfQueueController": APPS["queue-controller"],
    }
    scrape: dict[str, Any] = _filled("scrape.yaml", words)
    return scrape


def _snake(step: dict[str, Any]) -> dict[str, Any]:
    return {re.sub(r"(?=[A-Z])", "_", key).lower(): value for key, value in step.items()}


def rules_of_fleet(
    monitoring: Monitoring,
    stack: str,
    gpu_resource: str = "nvidia.com/gpu",
    host_queues: Sequence[DeclaredQueue] = (),
    *,
    host_kai: bool = False,
) -> list[Group]:
    """What is counted for every team, and the alerts. Nothing in it depends on who the teams are.

    `gpu_resource` is the name under which nodes advertise GPUs.
    """
    words: dict[str, str | int] = {
        "Resource": gpu_resource,
        "ResourceLabel": gpu_resource.replace(".", "_").replace("/", "_"),
        "StarvedAfter": monitoring.starved_after,
        "SupportDays": monitoring.support_days,
        "Stack": stack,
    }
    groups: list[Group] = _filled("rules.yaml", words)
    facts = [*_support(), *_parents(host_queues, HOST, {})]
    if host_kai:
        facts.append(_fact("scheduler_wanted", {"scheduler": HOST}))
    return [{"name": "kai-fleet-facts", "rules": facts}, *groups]


def facts_of_team(team: DeclaredTeam) -> Group:
    """The facts of one team that no metric tells: which queues have children, and so on.

    Of one with a stack of its own the queues are not known, but for the host's that it is granted.
    """
    of = {"team": team.name}
    facts = []
    if team.kai:
        facts += [_fact("scheduler_wanted", {"scheduler": team.name, **of})]
        facts += _parents(team.inside.queues, team.name, of)
    if queue := team.parent_queue if team.granted else team.queue:
        facts.append(_fact("host_queue", {"queue": queue, **of}))
    return {"name": f"kai-fleet-team-{team.name}", "rules": facts}


def _support() -> Iterator[dict[str, Any]]:
    newest = max(version_key(version)[:2] for version in KAI)
    for version, release in KAI.items():
        if release.support_end is not None:
            end = datetime.combine(release.support_end, datetime.max.time(), UTC)
            seconds = str(int(end.timestamp()))
            yield _fact("kai_support_end_seconds", {"version": version}, f"vector({seconds})")
        elif version_key(version)[:2] < newest:  # the newest line comes into the list later
            yield _fact("kai_in_no_support_list", {"version": version})


def _parents(
    queues: Sequence[DeclaredQueue], scheduler: str, more: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    parents = {queue.parent for queue in queues}
    for queue in queues:
        if queue.name in parents:
            yield _fact("parent_queue", {"scheduler": scheduler, "queue": queue.name, **more})


def _fact(name: str, labels: Mapping[str, str], expr: str = "vector(1)") -> dict[str, Any]:
    return {"record": f"kai_fleet:{name}", "labels": dict(labels), "expr": expr}


def _filled(file: str, words: Mapping[str, str | int]) -> Any:
    """A YAML file of this folder with its gaps filled. Raises KeyError for one that has no word."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return yaml.safe_load(_GAP.sub(lambda gap: str(words[gap[1]]), text))
