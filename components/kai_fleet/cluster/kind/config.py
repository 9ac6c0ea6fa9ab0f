"""kind's config file, as far as it is the same on every machine."""

from __future__ import annotations

from typing import Any

from kai_fleet.settings.sections.kind import HERE, Kind


def declared(name: str, kind: Kind) -> dict[str, Any]:
    """The part of the config that is the same on every machine."""
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


def gpu_node(name: str, kind: Kind) -> str:
    """The container of the node with the GPUs. One node only: two would hand them out twice."""
    return f"{name}-worker" if kind.workers else f"{name}-control-plane"
