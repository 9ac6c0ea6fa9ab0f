"""Pods that name one ConfigMap of KAI's: each of them may see the GPU of the other (T17)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from kai_fleet_cli.doctor.cluster_state import ClusterState, Snapshot
from kai_fleet_cli.doctor.finding import Finding
from kai_fleet_cli.doctor.objects import annotations_of, name_of, status

NAME = "shared-gpu"
_MAP: Final = "runai/shared-gpu-configmap"  # KAI's admission writes it, with a name of its own


def check(look: Snapshot) -> Iterator[Finding]:
    """The pods of each team on the host, where they arrive from every KAI."""
    for team in look.teams.values():
        yield from _of_namespace(look.host, team.wanted.namespace)


def _of_namespace(host: ClusterState, namespace: str) -> Iterator[Finding]:
    named: dict[str, list[str]] = defaultdict(list)
    for pod in host.within("pods", namespace):
        if status(pod).get("phase") not in ("Succeeded", "Failed") and _MAP in annotations_of(pod):
            named[annotations_of(pod)[_MAP]].append(name_of(pod))
    for config_map, pods in sorted(named.items()):
        if len(pods) > 1:
            yield host.warning(
                NAME,
                f"pods {', '.join(sorted(pods))} in namespace {namespace}",
                f"they name one ConfigMap of KAI's, {config_map}, in {_MAP}: each may see the GPU"
                " of the other",
                "have the team make them anew inside its vCluster, without that annotation: KAI"
                " writes it",
            )
