"""The arguments of what a host and its teams declare for Prometheus."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from pulumi import Input


class MonitoringArgs(TypedDict, total=False):
    """How the host's Prometheus finds a team's metrics."""

    namespace: str
    """Namespace of Prometheus and Grafana on the host. Its pods may read the metrics of every KAI.
    Default: `monitoring`.
    """
    certificates: bool
    """Alert before the certificate of a vCluster expires. Prometheus then gets
    the client certificate of the vCluster's administrator. Default: true.
    """
    interval: Input[str]
    """Scrape interval, such as `30s` or `1m`. Default: `30s`."""
    labels: Mapping[str, Input[str]]
    """Labels by which Prometheus selects monitors and rules, such as `{release:
    kube-prometheus-stack}`. Default: none.
    """
    scheduler: bool
    """Alert if no KAI inside the vCluster answers. Default: false."""
    parent_queues: Sequence[Input[str]]
    """Names of that KAI's queues with children, which alerts leave out. Default: none."""


class TeamMonitoringArgs(MonitoringArgs, total=False):
    """Arguments of TeamMonitoring."""

    network: bool
    """Let Prometheus through the NetworkPolicies of the team's namespace. Default: false."""
    host_queues: Sequence[Input[str]]
    """Leaf queues of the host's KAI that the team's pods use. Default: none."""


class FleetMonitoringArgs(MonitoringArgs, total=False):
    """Arguments of FleetMonitoring. They do not depend on the teams."""

    gpu_resource: str
    """Name by which nodes advertise GPUs. Default: `nvidia.com/gpu`."""
    host_kai: bool
    """The host has a KAI: alert when it does not answer. Default: false."""
