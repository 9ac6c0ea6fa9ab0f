"""The nodes and volumes behind what a scheduler says about a pod."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kubectl_fleet.cluster import Object, Snapshot, condition, metadata
from kubectl_fleet.gpu import Pod

_SELECTED_NODE: Final = (
    "volume.kubernetes.io/selected-node"  # annotation of a claim: where its volume was created
)


class Placement(NamedTuple):
    """Values for the placeholders of `scheduling.yaml`.

    `nodes` are cordoned nodes in words, `cordoned` their names in a command, `volume` which volume
    is where. `row` names the row of that table that objects prove; "" without one.
    """

    nodes: str = "those with SchedulingDisabled in kubectl get nodes"
    cordoned: str = "NODE"
    volume: str = "is in a zone, or on a node, where no node takes it"
    row: str = ""


NOTHING: Final = Placement()


def placement(view: Snapshot, pod: Pod) -> Placement:
    """What nodes and claims prove about a pod that has no node.

    The first volume that is bound to a node decides, if that node is absent, not Ready or cordoned.
    NOTHING if KAI runs on the host, whose nodes are not all here, or if no node may be listed.
    """
    nodes = {node["metadata"]["name"]: node for node in view.all("nodes")}
    if not view.schedules_here or not nodes:
        return NOTHING
    cordoned = _selected_cordoned_nodes(nodes, pod)
    for volume, node_name in _volumes(view, pod):
        node = nodes.get(node_name)
        if node is None or condition(node, "Ready").get("status") != "True":
            state = "is not there" if node is None else "is not Ready"
            words = f"{volume} is on node {node_name}, which {state}"
            return _cordoned(cordoned)._replace(volume=words, row="volume-elsewhere")
        if _is_cordoned(node):
            return _cordoned([node_name])._replace(row="cordoned")
    return _cordoned(cordoned)


def _selected_cordoned_nodes(nodes: Mapping[str, Object], pod: Pod) -> list[str]:
    """The cordoned nodes with the labels that the pod asks for."""
    selector = pod.spec.get("nodeSelector") or {}
    names = []
    for name, node in nodes.items():
        is_selected = selector.items() <= metadata(node, "labels").items()
        if is_selected and _is_cordoned(node):
            names.append(name)
    return names


def _cordoned(names: list[str]) -> Placement:
    if not names:
        return NOTHING
    noun = "nodes" if len(names) > 1 else "node"
    return Placement(nodes=f"{noun} {', '.join(names)}", cordoned=" ".join(names))


def _is_cordoned(node: Object) -> bool:
    spec = node.get("spec") or {}
    return bool(spec.get("unschedulable"))


def _volumes(view: Snapshot, pod: Pod) -> Iterator[tuple[str, str]]:
    """The volumes of the pod's claims in words, and the node on which each was created."""
    for source in pod.spec.get("volumes") or ():
        claim_name = (source.get("persistentVolumeClaim") or {}).get("claimName")
        if not claim_name:
            continue
        claim = view.named("persistentvolumeclaims", claim_name, pod.namespace)
        if claim is None:
            continue
        node_name = metadata(claim, "annotations").get(_SELECTED_NODE)
        volume = (claim.get("spec") or {}).get("volumeName")
        if node_name and volume:
            yield f"{volume} of claim {claim_name}", node_name
