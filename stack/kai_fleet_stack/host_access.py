"""The connection to a stack's host cluster, which may be a kind cluster that the stack creates."""

import json

import pulumi
import pulumi_command as command

from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet_stack.settings.sections.access import HERE, Cluster, Kind


def host_access(
    cluster: Cluster, package: pulumi.ProviderResource
) -> tuple[ClusterConnection, pulumi.ResourceOptions]:
    """Declare the host cluster's Kubernetes provider, and the cluster if it is a kind cluster.

    Of the ways to reach it kind counts before kubeconfig, and that before context. Without any it
    is the current context, which settings refuse.

    Args:
        package: the package's provider, which the returned options have too.

    Returns:
        The connection, and the options for every component on the host. They have both providers,
        and in `deleted_with` the kind cluster, if it is one.
    """
    connection = ClusterConnection(context=cluster.context)
    host = None
    if cluster.kubeconfig is not None:
        content = cluster.kubeconfig.get_secret_value()
        connection = ClusterConnection(kubeconfig=pulumi.Output.secret(content))
    if cluster.kind is not None:
        host = kind_cluster(cluster.name, cluster.kind)
        connection = ClusterConnection(kubeconfig=pulumi.Output.secret(host.stdout))
    # The stack's name for the cluster identifies it, so new credentials replace nothing (P3).
    provider = kubernetes_provider(
        "host", connection, pulumi.ResourceOptions(), cluster_identifier=cluster.name
    )
    # The resources on a kind cluster are deleted with it. One by one, `pulumi destroy` could call
    # the cluster after its deletion, and would fail at the first Helm release.
    return connection, pulumi.ResourceOptions(providers=[provider, package], deleted_with=host)


def kind_cluster(name: str, kind: Kind) -> command.local.Command:
    """Declare a kind cluster of this name; its stdout, a secret, is the administrator's kubeconfig.

    The machine that runs the update needs Docker and kind, and for GPUs NVIDIA's driver; the rest
    is set up inside the node. kind also writes the context `kind-NAME` into the user's kubeconfig.
    kind cannot change an existing cluster, so an update that would change it fails.
    """
    create = probes.command("kind create")
    # Only one node gets the GPUs: two nodes would advertise the same ones.
    gpu_node = f"{name}-worker" if kind.workers else f"{name}-control-plane"
    return command.local.Command(
        f"{name}-kind",
        create=create,
        update=create,
        delete=probes.command("kind delete"),
        environment={
            "KIND_NAME": name,
            "KIND_CONFIG": json.dumps(kind_config(name, kind), sort_keys=True),
            "KIND_GPUS": kind.gpus,
            "KIND_GPU_NODE": gpu_node,
        },
        logging=command.local.Logging.STDERR,  # stdout is the kubeconfig (P8)
        opts=pulumi.ResourceOptions(additional_secret_outputs=["stdout"]),
    )


def kind_config(name: str, kind: Kind) -> dict[str, object]:
    """The settings of kind's configuration file that do not depend on the machine.

    Its nodes are the control plane, whose node ports are open on this machine, and then the workers
    in their order.
    """
    image = {"image": kind.image} if kind.image else {}
    mappings = [
        {"containerPort": port, "hostPort": port, "listenAddress": HERE} for port in kind.ports
    ]
    nodes: list[dict[str, object]] = [
        {"role": "control-plane", **image, "extraPortMappings": mappings}
    ]
    for labels in kind.workers:
        worker: dict[str, object] = {"role": "worker", **image}
        if labels:
            worker["labels"] = labels
        nodes.append(worker)
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": name,
        "nodes": nodes,
    }
