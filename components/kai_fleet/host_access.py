"""The connection to a stack's host cluster, and the kind cluster that is one on this machine."""

import json
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_command as command

from kai_fleet.cluster import probes
from kai_fleet.cluster.connection import ClusterConnection, kubernetes_provider
from kai_fleet.inputs import without_none
from kai_fleet.options import deleted_with
from kai_fleet.settings.sections.access import Cluster

HERE: Final = "127.0.0.1"
_PORTS: Final = range(30000, 30008)


class KindClusterArgs(TypedDict):
    """Arguments of a kind cluster. kind cannot change them later: an update refuses it."""

    gpus: NotRequired[str]
    """`auto`: this machine's GPUs, if any; `all`: fail without GPUs; `none`. Default: `auto`."""
    image: NotRequired[str]
    """Node image: kindest/node:v1.34.0. Default: kind's own."""
    workers: NotRequired[list[dict[str, str]]]
    """Labels of each worker node; the first gets the GPUs. Default: no worker."""
    ports: NotRequired[list[int]]
    """Node ports mapped to 127.0.0.1. Default: 30000 to 30007."""


class KindCluster(pulumi.ComponentResource):
    """A kind cluster named after the component; deleted with it.

    Needs Docker and kind, and for GPUs NVIDIA's driver, on the machine that runs the update; the
    rest is set up inside the node. kind also writes the context `kind-NAME` into the user's own
    kubeconfig, for kubectl.

    Pass the transformation `deleted_with_it` to every component on the cluster: their resources are
    deleted with the cluster, not one by one. Otherwise `pulumi destroy` could call a cluster that
    is deleted already, and fail at the first Helm release.
    """

    kubeconfig: pulumi.Output[str]
    """Administrator's kubeconfig, a secret."""
    deleted_with_it: pulumi.ResourceTransformation

    def __init__(
        self, name: str, args: KindClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:KindCluster", name, None, opts)
        create = probes.command("kind create")
        cluster = command.local.Command(
            f"{name}-kind",
            create=create,
            update=create,
            delete=probes.command("kind delete"),
            environment={
                "KIND_NAME": name,
                "KIND_CONFIG": json.dumps(kind_config(name, args), sort_keys=True),
                "KIND_GPUS": args.get("gpus", "auto"),
                # Only one node: two would advertise the same GPUs.
                "KIND_GPU_NODE": f"{name}-{'worker' if args.get('workers') else 'control-plane'}",
            },
            logging=command.local.Logging.STDERR,  # stdout is the kubeconfig (P8)
            opts=pulumi.ResourceOptions(parent=self, additional_secret_outputs=["stdout"]),
        )
        self.kubeconfig = pulumi.Output.secret(cluster.stdout)
        self.deleted_with_it = deleted_with(cluster)
        self.register_outputs({})


def host_access(
    cluster: Cluster, package: pulumi.ProviderResource
) -> tuple[ClusterConnection, pulumi.ResourceOptions]:
    """Connect to the host cluster, and declare it if it is a kind cluster of the stack.

    Returns:
        The connection, and options of every component on the host, which has both providers.
    """
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
    provider = kubernetes_provider(
        "host", connection, pulumi.ResourceOptions(), cluster_identifier=cluster.name
    )
    providers = [provider, package]
    return connection, pulumi.ResourceOptions(providers=providers, transformations=transformations)


def kind_config(name: str, args: KindClusterArgs) -> dict[str, Any]:
    """The part of kind's config file that does not depend on the machine."""
    image = {"image": args["image"]} if args.get("image") else {}
    mappings = [
        {"containerPort": port, "hostPort": port, "listenAddress": HERE}
        for port in args.get("ports", _PORTS)
    ]
    workers = [
        {"role": "worker", **image, **({"labels": labels} if labels else {})}
        for labels in args.get("workers", ())
    ]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": name,
        "nodes": [{"role": "control-plane", **image, "extraPortMappings": mappings}, *workers],
    }
