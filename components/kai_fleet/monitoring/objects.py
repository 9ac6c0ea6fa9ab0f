"""Objects of the Prometheus operator."""

from pulumi import Input, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource

from kai_fleet.monitoring.arguments import MonitoringArgs
from kai_fleet.monitoring.rules import Spec

# Namespace of Prometheus and Grafana.
NAMESPACE = "monitoring"


def declare_object(
    resource: str,
    kind: str,
    namespace: str,
    args: MonitoringArgs,
    spec: Input[Spec],
    opts: ResourceOptions,
) -> None:
    """Declare an object of the Prometheus operator as a resource called `resource`.

    The object is called `kai-fleet`, so a namespace has one of each `kind`: PodMonitor,
    ServiceMonitor, PrometheusRule. It has the labels of `args`, and nothing else of these:
    `namespace` stands for theirs, also if it is a team's.
    """
    CustomResource(
        resource,
        api_version="monitoring.coreos.com/v1",
        kind=kind,
        metadata={"name": "kai-fleet", "namespace": namespace, "labels": args.get("labels", {})},
        spec=spec,
        opts=opts,
    )
