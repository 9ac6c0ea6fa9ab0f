"""The nodes and volumes behind what a scheduler says of a pod."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubectl_fleet.cluster import Object, Snapshot, condition, metadata
from kubectl_fleet.gpu import Pod

_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"  # on the claim of a volume made there


class Placement(NamedTuple):
    """Values for the placeholders of `scheduling.yaml`; `row` is the one that objects prove."""

    nodes: str = "those with SchedulingDisabled in kubectl get nodes"
    cordoned: str = "NODE"
    volume: str = "is in a zone, or on a node, where no node takes it"
    row: str = ""


NOTHING: Final = Placement()


def placement(view: Snapshot, pod: Pod) -> Placement:
    """What the nodes and claims say; of a cluster that does not have all nodes, nothing."""
    nodes = {node["metadata"]["name"]: node for node in view.all("nodes")}
    if not view.schedules_here or not nodes:
        return NOTHING
    selector = pod.spec.get("nodeSelector") or {}
    cordoned = [
        name
        for name, node in nodes.items()
        if _is_cordoned(node) and selector.items() <= metadata(node, "labels").items()
    ]
    for volume, name in _volumes(view, pod):
        node = nodes.get(name)
        if node is None or condition(node, "Ready").get("status") != "True":
            state = "is not there" if node is None else "is not Ready"
            words = f"{volume} is on node {name}, which {state}"
            return _cordoned(cordoned)._replace(volume=words, row="volume-elsewhere")
        if _is_cordoned(node):
            return _cordoned([name])._replace(row="cordoned")
    return _cordoned(cordoned)


def _cordoned(names: list[str]) -> Placement:
    if not names:
        return NOTHING
    many = "s" if len(names) > 1 else ""
    return Placement(nodes=f"node{many} {', '.join(names)}", cordoned=" ".join(names))


def _is_cordoned(node: Object) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def _volumes(view: Snapshot, pod: Pod) -> Iterator[tuple[str, str]]:
    """The volumes of its claims in words, and the node on which each was made."""
    for source in pod.spec.get("volumes") or ():
        name = (source.get("persistentVolumeClaim") or {}).get("claimName")
        claim = view.named("persistentvolumeclaims", name, pod.namespace) if name else None
        host = metadata(claim, "annotations").get(_SELECTED_NODE) if claim else None
        volume = ((claim or {}).get("spec") or {}).get("volumeName")
        if host and volume:
            yield f"{volume} of claim {name}", host
