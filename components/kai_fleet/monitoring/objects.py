"""Objects of the Prometheus operator."""

from typing import Final

from pulumi import Input, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource

from kai_fleet.monitoring.arguments import MonitoringArgs
from kai_fleet.monitoring.rules import Spec

# Namespace of Prometheus and Grafana.
NAMESPACE: Final = "monitoring"


def declare_object(
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
