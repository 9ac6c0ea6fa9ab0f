"""How Prometheus reads the metrics of every team's KAI: for its operator, and without it."""

import re
from typing import Any, Final

from kai_fleet.monitoring import fill_in
from kai_fleet.releases.metric_names import APPS, METRICS_PORT
from kai_fleet.settings.sections.monitoring import Monitoring
from kubectl_fleet.releases.keys import KAI_NAMESPACE

JOB: Final = "kai-fleet"
LET_IN: Final = "kai-fleet-monitoring"  # the NetworkPolicy of a team's namespace


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
        "job_name": JOB,
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
    words: dict[str, str | int] = {"Team": team, "Interval": monitoring.interval}
    spec: dict[str, Any] = fill_in("vcluster.yaml", words)
    return spec


def let_in(monitoring: Monitoring) -> dict[str, Any]:
    """The `spec` of a NetworkPolicy of a team's namespace: Prometheus reaches the team's KAI."""
    home = {"match_labels": {"kubernetes.io/metadata.name": monitoring.namespace}}
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
    scrape: dict[str, Any] = fill_in("scrape.yaml", words)
    return scrape


def _snake(step: dict[str, Any]) -> dict[str, Any]:
    return {re.sub(r"(?=[A-Z])", "_", key).lower(): value for key, value in step.items()}
