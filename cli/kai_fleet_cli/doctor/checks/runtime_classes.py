"""RuntimeClass `nvidia`, which fraction pods and reservation pods name (V8)."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.declared import HOST, NVIDIA
from kai_fleet_cli.doctor.finding import Finding

NAME = "runtime-class"
_CLASS = "nvidia"


def check(look: Snapshot) -> Iterator[Finding]:
    """The host where KAI shares GPUs anywhere, and each cluster in which it does."""
    sharing = [cluster for cluster in look.clusters if _shares(cluster)]
    others = [cluster for cluster in sharing if cluster is not look.host]
    host = look.host
    on_host = "runtimeclasses" in host.unreadable or host.named("runtimeclasses", _CLASS)
    for cluster in [host, *others] if sharing else []:
        if "runtimeclasses" in cluster.unreadable:
            continue
        if cluster.named("runtimeclasses", _CLASS) is not None:
            yield cluster.well(NAME, f"RuntimeClass {_CLASS}")
        elif cluster is not host and not on_host:
            continue  # the vClusters have theirs from the host, of which it is said
        elif cluster is host and host.name == HOST:
            yield cluster.broken(
                NAME,
                f"RuntimeClass {_CLASS}",
                "it is not there: reservation pods of shared GPUs name it, and are rejected",
                "set kai-fleet:gpu.provider to operator or device-plugin, which makes it,"
                f" then {cluster.update}",
            )
        else:
            yield cluster.broken(
                NAME,
                f"RuntimeClass {_CLASS}",
                "it is not there: reservation pods are rejected, and fraction pods wait for them",
                "the vCluster takes it over from the host: leave sync.fromHost.runtimeClasses of"
                f" the vCluster's values on, then {cluster.update}",
            )


def _shares(cluster: ClusterState) -> bool:
    return (
        cluster.kai is not None
        and cluster.wanted.gpu_sharing
        and cluster.wanted.gpu_resource == NVIDIA
    )
