"""The host cluster of a stack: how the program and its components reach it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.inputs import without_none
from kai_fleet.kind_cluster import KindCluster
from kai_fleet.settings.sections.access import Cluster, Kind


@dataclass(frozen=True)
class HostAccess:
    """`args` are `kubeconfig` or `context` of components there, `transformations` those of all that
    is declared there.
    """

    connection: ClusterConnection
    provider: kubernetes.Provider
    args: Mapping[str, Any]
    transformations: Sequence[pulumi.ResourceTransformation] = ()


def host_access(cluster: Cluster) -> HostAccess:
    """The way to the host cluster; a kind cluster of the stack is declared for it."""
    transformations = list[pulumi.ResourceTransformation]()
    content: pulumi.Input[str] | None = None
    if cluster.kubeconfig is not None:
        content = cluster.kubeconfig.get_secret_value()
    if cluster.kind is not None:
        kind = KindCluster(cluster.name, _kind_args(cluster.kind))
        content, transformations = kind.kubeconfig, [kind.going_with_it]
    if content is None:
        connection = ClusterConnection(context=cluster.context)
        args: dict[str, Any] = {"context": cluster.context}
    else:
        connection = ClusterConnection(kubeconfig=pulumi.Output.secret(content))
        args = {"kubeconfig": connection.kubeconfig}
    # Its name is its identity: rotated credentials replace nothing (P3).
    provider = kubernetes_provider(
        "host", connection, pulumi.ResourceOptions(), cluster_identifier=cluster.name
    )
    return HostAccess(connection, provider, args, transformations)


def _kind_args(kind: Kind) -> Any:
    args = {"gpus": kind.gpus, "image": kind.image, "workers": kind.workers, "ports": [*kind.ports]}
    return without_none(args)
