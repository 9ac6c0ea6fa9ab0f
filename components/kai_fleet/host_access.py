"""Connection and Kubernetes provider of a stack's host cluster."""

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
    """Connection to a host; `transformations` are for every component that is declared on it."""

    connection: ClusterConnection
    provider: kubernetes.Provider
    transformations: Sequence[pulumi.ResourceTransformation] = ()


def host_access(cluster: Cluster) -> HostAccess:
    """Connect to the host cluster, and declare it if it is a kind cluster of the stack."""
    transformations = list[pulumi.ResourceTransformation]()
    connection = ClusterConnection(context=cluster.context)
    if cluster.kubeconfig is not None:
        content = cluster.kubeconfig.get_secret_value()
        connection = ClusterConnection(kubeconfig=pulumi.Output.secret(content))
    if (kind := cluster.kind) is not None:
        written = {"gpus": kind.gpus, "image": kind.image, "workers": kind.workers}
        args: Any = without_none({**written, "ports": [*kind.ports]})
        host = KindCluster(cluster.name, args)
        connection, transformations = ClusterConnection(host.kubeconfig), [host.deleted_with_it]
    # Its name is its identity: rotated credentials replace nothing (P3).
    opts = pulumi.ResourceOptions()
    provider = kubernetes_provider("host", connection, opts, cluster_identifier=cluster.name)
    return HostAccess(connection, provider, transformations)
