"""Queues that resources declare: each by itself, or all of a tree by one resource."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kai_fleet.values import get, pairs, text
from kai_fleet_policies.model.queues import DeclaredQueue, shares

QUEUE: Final = "kubernetes:scheduling.run.ai/v2:Queue"
PROVIDER: Final = "pulumi:providers:kubernetes"
# The annotation of a Queue whose parent is declared by another stack, which grants it.
PARENT_ELSEWHERE: Final = "kai-fleet/parent-of-another-stack"
_VCLUSTER: Final = "VirtualCluster$"


def providers(resources: Iterable[tuple[str, str, Mapping[str, object]]]) -> dict[str, str]:
    """The URN of each cluster's Kubernetes provider, from (type, urn, properties).

    That of a vCluster has an identifier that only the update knows; it is named after the team.
    """
    found = {}
    for kind, urn, props in resources:
        if kind != PROVIDER:
            continue
        if _VCLUSTER in urn:
            found[f"/{urn.rpartition('::')[2]}"] = urn
        name = text(props.get("clusterIdentifier"))
        if isinstance(name, str):
            found[name] = urn
    return found


def members(
    props: Mapping[str, object], of_cluster: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The queues of a resource of type QUEUES; none where they are not known yet.

    Each has its name, the properties that a resource of its own would have, and the URN of the
    Kubernetes provider of the same cluster; the cluster's name where no provider has it.
    """
    cluster, tree = text(props.get("cluster")), str(text(props.get("tree")))
    # That of a vCluster that is not there yet is not known; its tree is called after it.
    names = (str(cluster), f"/{tree}", f"/{tree.removesuffix('-queues')}")
    found = (of_cluster[name] for name in names if name in of_cluster)
    provider = next(found, f"{PROVIDER}::{cluster if isinstance(cluster, str) else tree}")
    queues, elsewhere = props.get("queues"), text(props.get("parent"))
    for name, spec in pairs(queues).items():
        metadata: dict[str, Any] = {"name": name}
        if (labels := get(props, "labels", str(name))) is not None:
            metadata["labels"] = labels
        if elsewhere is not None and get(spec, "parentQueue") == elsewhere:
            metadata["annotations"] = {PARENT_ELSEWHERE: "true"}
        kind = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue"}
        yield str(name), {**kind, "metadata": metadata, "spec": spec}, provider


def queue(props: Mapping[str, object], name: str, path: str, filled_in: str) -> DeclaredQueue:
    """A Queue; `filled_in` is the namespace that its provider writes before it knows the CRD."""
    spec, namespace = props.get("spec"), text(get(props.get("metadata"), "namespace"))
    return DeclaredQueue(
        name=name,
        parent=text(get(spec, "parentQueue")) or None,
        shares=shares(get(spec, "resources")),
        namespace=None if namespace in ("default", filled_in) else namespace,
        preempt_min_runtime=get(spec, "preemptMinRuntime"),
        reclaim_min_runtime=get(spec, "reclaimMinRuntime"),
        path=path,
    )
