"""The connection to a stack's host cluster, and the kind cluster that is one on this machine."""

import json
from typing import Any

import pulumi
import pulumi_command as command

from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.settings.sections.access import HERE, Cluster, Kind


def host_access(
    cluster: Cluster, package: pulumi.ProviderResource
) -> tuple[ClusterConnection, pulumi.ResourceOptions]:
    """Connect to the host cluster, and declare it if it is a kind cluster of the stack.

    Returns:
        The connection, and options of every component on the host, which has both providers.
    """
    connection, host = ClusterConnection(context=cluster.context), None
    if cluster.kubeconfig is not None:
        content = cluster.kubeconfig.get_secret_value()
        connection = ClusterConnection(kubeconfig=pulumi.Output.secret(content))
    if cluster.kind is not None:
        host = kind_cluster(cluster.name, cluster.kind)
        connection = ClusterConnection(pulumi.Output.secret(host.stdout))
    # Its name is its identity: rotated credentials replace nothing (P3).
    provider = kubernetes_provider(
        "host", connection, pulumi.ResourceOptions(), cluster_identifier=cluster.name
    )
    # Deleted with a kind cluster, not one by one: else `pulumi destroy` could call a cluster that
    # is deleted already, and fail at the first Helm release.
    return connection, pulumi.ResourceOptions(providers=[provider, package], deleted_with=host)


def kind_cluster(name: str, kind: Kind) -> command.local.Command:
    """Declare a kind cluster of this name; stdout is its administrator's kubeconfig.

    Needs Docker and kind, and for GPUs NVIDIA's driver, on the machine that runs the update; the
    rest is set up inside the node. kind also writes the context `kind-NAME` into the user's own
    kubeconfig, for kubectl. kind cannot change a cluster later: an update refuses it.
    """
    create = probes.command("kind create")
    return command.local.Command(
        f"{name}-kind",
        create=create,
        update=create,
        delete=probes.command("kind delete"),
        environment={
            "KIND_NAME": name,
            "KIND_CONFIG": json.dumps(kind_config(name, kind), sort_keys=True),
            "KIND_GPUS": kind.gpus,
            # Only one node: two would advertise the same GPUs.
            "KIND_GPU_NODE": f"{name}-{'worker' if kind.workers else 'control-plane'}",
        },
        logging=command.local.Logging.STDERR,  # stdout is the kubeconfig (P8)
        opts=pulumi.ResourceOptions(additional_secret_outputs=["stdout"]),
    )


def kind_config(name: str, kind: Kind) -> dict[str, Any]:
    """The part of kind's config file that does not depend on the machine."""
    image = {"image": kind.image} if kind.image else {}
    mappings = [
        {"containerPort": port, "hostPort": port, "listenAddress": HERE} for port in kind.ports
    ]
    workers = [
        {"role": "worker", **image, **({"labels": labels} if labels else {})}
        for labels in kind.workers
    ]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": name,
        "nodes": [{"role": "control-plane", **image, "extraPortMappings": mappings}, *workers],
    }
