"""A PodMonitor as an entry of `scrape_configs`, for a Prometheus without its operator."""

import re
from typing import Any

# Keys that have another name in Prometheus' configuration file, besides the spelling.
FILE_KEYS = {
    "interval": "scrape_interval",
    "relabelings": "relabel_configs",
    "metricRelabelings": "metric_relabel_configs",
}


def scrape_config(monitor: dict[str, Any]) -> dict[str, Any]:
    (endpoint,) = monitor["podMetricsEndpoints"]
    fields = with_file_keys({"sampleLimit": monitor["sampleLimit"], **endpoint})
    return {"job_name": "kai-fleet", "kubernetes_sd_configs": [{"role": "pod"}], **fields}


def with_file_keys(value: Any) -> Any:
    """Fields of a monitor with the keys of Prometheus' configuration file, at any depth."""
    if isinstance(value, list):
        return [with_file_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {file_key(key): with_file_keys(field) for key, field in value.items()}


def file_key(key: str) -> str:
    """`sampleLimit` as `sample_limit`, unless the file has another name for it."""
    return FILE_KEYS.get(key) or re.sub(r"(?=[A-Z])", "_", key).lower()
