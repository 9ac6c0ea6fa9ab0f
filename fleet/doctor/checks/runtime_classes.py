"""RuntimeClass `nvidia`, which fraction pods and reservation pods name (V8)."""

from __future__ import annotations

from collections.abc import Iterator

from fleet.doctor.finding import Finding
from fleet.doctor.seen import Look, Seen
from fleet.doctor.wanted import NVIDIA

NAME = "runtime-class"
_CLASS = "nvidia"


def check(look: Look) -> Iterator[Finding]:
    """The host where KAI shares GPUs anywhere, and each cluster in which it does."""
    sharing = [cluster for cluster in look.clusters if _shares(cluster)]
    others = [cluster for cluster in sharing if cluster is not look.host]
    for cluster in [look.host, *others] if sharing else []:
        if "runtimeclasses" in cluster.unreadable:
            continue
        if cluster.named("runtimeclasses", _CLASS) is not None:
            yield cluster.well(NAME, f"RuntimeClass {_CLASS}")
        elif cluster is look.host:
            yield cluster.broken(
                NAME,
                f"RuntimeClass {_CLASS}",
                "it is not there, and pods that share a GPU name it",
                "set kai-fleet:gpu.provider to operator or device-plugin, which makes it,"
                f" then {cluster.update}",
            )
        else:
            yield cluster.broken(
                NAME,
                f"RuntimeClass {_CLASS}",
                "it is not there: reservation pods are rejected, and fraction pods wait for them",
                "the vCluster takes it over from the host: mend it there first, and leave"
                " sync.fromHost.runtimeClasses of the vCluster's values on",
            )


def _shares(cluster: Seen) -> bool:
    return (
        cluster.kai is not None
        and cluster.wanted.gpu_sharing
        and cluster.wanted.gpu_resource == NVIDIA
    )
