"""The host cluster of a stack: how the program and its components reach it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.inputs import without_none
from kai_fleet.kind_cluster import KindCluster
from kai_fleet.settings.sections.access import Cluster


@dataclass(frozen=True)
class HostAccess:
    """The way to a host; `transformations` are those of all that is declared there."""

    connection: ClusterConnection
    provider: kubernetes.Provider
    transformations: Sequence[pulumi.ResourceTransformation] = ()


def host_access(cluster: Cluster) -> HostAccess:
    """The way to the host cluster; a kind cluster of the stack is declared for it."""
    transformations = list[pulumi.ResourceTransformation]()
    connection = ClusterConnection(context=cluster.context)
    if cluster.kubeconfig is not None:
        content = cluster.kubeconfig.get_secret_value()
        connection = ClusterConnection(kubeconfig=pulumi.Output.secret(content))
    if (own := cluster.kind) is not None:
        written = {"gpus": own.gpus, "image": own.image, "workers": own.workers}
        args: Any = without_none({**written, "ports": [*own.ports]})
        kind = KindCluster(cluster.name, args)
        connection, transformations = ClusterConnection(kind.kubeconfig), [kind.deleted_with_it]
    # Its name is its identity: rotated credentials replace nothing (P3).
    opts = pulumi.ResourceOptions()
    provider = kubernetes_provider("host", connection, opts, cluster_identifier=cluster.name)
    return HostAccess(connection, provider, transformations)
