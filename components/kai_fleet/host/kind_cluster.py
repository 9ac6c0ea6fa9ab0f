"""A kind cluster on the machine that runs the update, with its GPUs where it has some."""

import json
from typing import Any

import pulumi
import pulumi_command as command

from kai_fleet import probes
from kai_fleet.options import deleted_with
from kai_fleet.settings.sections.access import HERE, Kind


class KindCluster(pulumi.ComponentResource):
    """A kind cluster named after the component; deleted with it.

    Needs Docker and kind, and for GPUs NVIDIA's driver, on the machine that runs the update; the
    rest is set up inside the node. `kubeconfig` is a secret. kind also writes the context
    `kind-NAME` into the user's own kubeconfig, for kubectl. Other nodes, ports or images than it
    was made with are refused by the update: kind cannot change them.

    Give `going_with_it` to every component on the cluster, as a transformation: what they declare
    is deleted together with the cluster, not one by one. Otherwise removing the stack would ask a
    cluster that may be gone already, and fail at the first Helm release (P1).
    """

    kubeconfig: pulumi.Output[str]
    going_with_it: pulumi.ResourceTransformation

    def __init__(self, name: str, args: Kind, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("kai-fleet:index:KindCluster", name, None, opts)
        create = probes.command("kind", "create")
        made = command.local.Command(
            f"{name}-kind",
            create=create,
            update=create,
            delete=probes.command("kind", "delete"),
            environment={
                "KIND_NAME": name,
                "KIND_CONFIG": json.dumps(declared(name, args), sort_keys=True),
                "KIND_GPUS": args.gpus,
                # One node only: two would hand them out twice.
                "KIND_GPU_NODE": f"{name}-{'worker' if args.workers else 'control-plane'}",
            },
            logging=command.local.Logging.STDERR,  # stdout is the kubeconfig (P8)
            opts=pulumi.ResourceOptions(parent=self, additional_secret_outputs=["stdout"]),
        )
        self.kubeconfig = pulumi.Output.secret(made.stdout)
        self.going_with_it = deleted_with(made)
        self.register_outputs({"gpus": args.gpus})


def declared(name: str, kind: Kind) -> dict[str, Any]:
    """kind's config file, as far as it is the same on every machine."""
    image = {"image": kind.image} if kind.image else {}
    mappings = [
        {"containerPort": port, "hostPort": port, "listenAddress": HERE} for port in kind.ports
    ]
    workers = [
        {"role": "worker", **image, **({"labels": dict(labels)} if labels else {})}
        for labels in kind.workers
    ]
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": name,
        "nodes": [{"role": "control-plane", **image, "extraPortMappings": mappings}, *workers],
    }
