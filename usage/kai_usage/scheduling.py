"""What a scheduler's message about a pod without a node means, and what to do.

The meanings are rows of `scheduling.yaml`; nodes and volumes around the pod decide between them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kai_usage.messages import (
    MOST_READ,
    Meaning,
    Reader,
    Row,
    quoted,
    row_of_message,
    rows,
)
from kai_usage.objects import (
    Object,
    annotations_of,
    has_labels,
    is_cordoned,
    is_true,
    labels_of,
    name_of,
    namespace_of,
    spec_of,
)
from kai_usage.words import listed, plural, short_line

_HOSTNAME = "kubernetes.io/hostname"
# An annotation of a claim: the node for which its volume was made.
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_PREEMPTION = " preemption: "  # the text after it counts the same nodes once more
_FIRST_OF_NODES = "no-room"  # this row and all later ones are about some of the nodes
_ELSEWHERE = "volume-elsewhere"
_CORDONED = "cordoned"
_UNNAMED_NODES = "those with SchedulingDisabled in kubectl get nodes"
_UNNAMED_VOLUME = "is in a zone, or on a node, where no node takes it"


def is_of_nodes(row: Row) -> bool:
    """Whether a row is about some of the nodes, so that their objects may explain more.

    False for a row of another table than `scheduling.yaml`.
    """
    names = [of_table.name for of_table in rows("scheduling")]
    return row in rows("scheduling")[names.index(_FIRST_OF_NODES) :]


def names_objects(row: Row) -> bool:
    """Whether a row names nodes or volumes: its fix says nothing if they are unknown."""
    return row.name in (_CORDONED, _ELSEWHERE)


@dataclass(frozen=True)
class PodSurroundings:
    """The objects around a pod without a node; no objects of a kind that cannot be read.

    Attributes:
        all_nodes: All nodes. A volume may be on a node that the pod may not use.
        candidates: The nodes with the labels that the pod selects.
        claims: The PersistentVolumeClaims that it mounts.
        volumes: PersistentVolumes, those of the claims among them. Of those that are absent, the
            annotations of the claims say where they are, as `volumes_on_one_node` has it.
        unread: Why the objects are unknown; "" if they are known. It decides nothing here: meanings
            have it as a value for the caller.
    """

    all_nodes: Sequence[Object] = ()
    candidates: Sequence[Object] = ()
    claims: Sequence[Object] = ()
    volumes: Sequence[Object] = ()
    unread: str = ""

    @property
    def volumes_on_one_node(self) -> Iterator[tuple[str, str, Object | None]]:
        """Each volume that is bound to one node: its name in words, the node's name, and the node.

        The words are `VOLUME of claim CLAIM`, the order is that of `claims`. The node's name is the
        hostname that `_host_of` reads from the PersistentVolume. If the volume is not among
        `volumes`, it is the node for which it was made, by an annotation of its claim; then a
        volume that other nodes reach too, as one in a zone, counts as bound to that node. A claim
        without a volume, and a volume without such a name, are left out. The node is None if it is
        gone; it is found by its hostname label or its name. No volumes if no nodes are known.
        """
        if not self.all_nodes:
            return
        nodes = {name_of(node): node for node in self.all_nodes}
        for node in self.all_nodes:
            nodes[labels_of(node).get(_HOSTNAME, name_of(node))] = node
        volumes = {name_of(volume): volume for volume in self.volumes}
        for claim in self.claims:
            name = str(spec_of(claim).get("volumeName") or "")
            if name in volumes:
                host = _host_of(volumes[name])
            else:
                host = annotations_of(claim).get(_SELECTED_NODE, "")
            if name and host:
                yield f"{name} of claim {name_of(claim)}", host, nodes.get(host)


NO_SURROUNDINGS = PodSurroundings()


def surroundings_of(
    pod: Object,
    nodes: Sequence[Object],
    pool: Mapping[str, str],
    claims: Iterable[Object],
    volumes: Sequence[Object],
) -> PodSurroundings:
    """The objects around a pod, chosen from all nodes and claims; `unread` is "".

    What cannot be read is empty.

    Args:
        pod: The pod without a node.
        nodes: All nodes.
        pool: The labels of the team's nodes, empty for all nodes. The pod's own nodeSelector
            counts, too; for a label that both have it alone counts. Affinity and taints do not.
        claims: Claims of any namespace; those that the pod mounts are chosen.
        volumes: PersistentVolumes, those of the claims among them; all are kept.
    """
    selector = {**pool, **(spec_of(pod).get("nodeSelector") or {})}
    mounted = {(namespace_of(pod), name) for name in claims_of(pod)}
    return PodSurroundings(
        all_nodes=nodes,
        candidates=[node for node in nodes if has_labels(node, selector)],
        claims=[claim for claim in claims if (namespace_of(claim), name_of(claim)) in mounted],
        volumes=volumes,
    )


def claims_of(pod: Object) -> Iterator[str]:
    """The names, in the pod's namespace, of the claims of its volumes, whether they exist or not.

    That of an ephemeral volume is `POD-VOLUME`. Raises KeyError for such a volume without a name.
    """
    for volume in spec_of(pod).get("volumes") or ():
        claim = volume.get("persistentVolumeClaim") or {}
        if claim.get("claimName"):
            yield str(claim["claimName"])
        elif "ephemeral" in volume:
            yield f"{name_of(pod)}-{volume['name']}"


def meanings_of(
    texts: Iterable[object], reader: Reader, surroundings: PodSurroundings = NO_SURROUNDINGS
) -> Iterator[Meaning]:
    """What those of some messages mean that are known; the first one counts.

    Of one message, a row of `messages.yaml` with advice for this reader counts before one of
    `scheduling.yaml`, whose rows are for both readers.

    Args:
        texts: The messages in order of priority. Of each the first 4000 characters count, on one
            line and without control characters.
        reader: Who is to follow the advice.
        surroundings: The objects around a pod that has no node.
    """
    for text in texts:
        line = short_line(text, MOST_READ)
        meaning = row_of_message(line, reader) or row_of_scheduler(line, surroundings)
        if meaning is not None:
            yield meaning


def row_of_scheduler(message: str, surroundings: PodSurroundings) -> Meaning | None:
    """The row for a scheduler's message, and values for its placeholders; None if no row fits.

    The first row that fits the first 4000 characters counts, without what the message says of
    preemption. Objects decide in two cases: whether a volume's node takes pods, and whether
    cordoned nodes are among those that the pod may use. A row that they disprove gives way to the
    next one that fits, if there is one. If the row is then about nodes, and they prove another,
    that one counts, though its pattern need not fit.

    The values are `text`, the quoted message, `volume`, `nodes`, `cordoned`, `unread` of the
    surroundings, and the groups of the row's pattern if that fits; a group that matched nothing is
    "". Control characters of the message stay in them.
    """
    text = message[:MOST_READ]
    text = text.partition(_PREEMPTION)[0] or text
    fitting = [row for row in rows("scheduling") if re.search(row.pattern, text, re.DOTALL)]
    if not fitting:
        return None
    facts = _facts(surroundings)
    row = _chosen(fitting, facts)
    values = {
        "text": quoted(text),
        "volume": facts.volume,
        "unread": surroundings.unread,
        **_cordoned_values(facts.cordoned),
    }
    match = re.search(row.pattern, text, re.DOTALL)
    if match:
        values |= match.groupdict("")
    return Meaning(row, values)


def _cordoned_values(names: Sequence[str]) -> dict[str, str]:
    """Placeholders for cordoned nodes: in words (`nodes`), and as arguments of a command.

    For no names the words say how to find them, and the argument is `<node>`.
    """
    if not names:
        return {"nodes": _UNNAMED_NODES, "cordoned": "<node>"}
    return {
        "nodes": f"{plural(len(names), 'node')} {listed(names, 'and')}",
        "cordoned": " ".join(names),
    }


class _Facts(NamedTuple):
    """What objects say about a pod.

    `cordoned` are names of nodes: the one with the pod's volume, else those that the pod may use;
    empty if none is cordoned or known. `volume` is what follows "its volume" in a cause. `proved`
    is the name of the row that the objects prove, "" for none; `disproved` are names of rows that
    cannot be true. Objects that are not known prove and disprove nothing.
    """

    cordoned: list[str]
    volume: str
    proved: str
    disproved: set[str]


def _facts(surroundings: PodSurroundings) -> _Facts:
    """What objects say. The first volume on a node that takes no pods decides.

    A node that is gone or not Ready proves `volume-elsewhere`, also if it is cordoned; a Ready one
    that is cordoned proves `cordoned`. `volume-elsewhere` is disproved if there are volumes and all
    their nodes take pods, `cordoned` if there are candidates, none of them is cordoned, and no
    volume proves it.
    """
    cordoned = [name_of(node) for node in surroundings.candidates if is_cordoned(node)]
    disproved = set[str]()
    if surroundings.candidates and not cordoned:
        disproved.add(_CORDONED)
    placed = list(surroundings.volumes_on_one_node)
    for volume, name, node in placed:
        if node is None or not is_true(node, "Ready"):
            state = "not there" if node is None else "not Ready"
            words = f"{volume} is on node {name}, which is {state}"
            return _Facts(cordoned, words, _ELSEWHERE, disproved)
        if is_cordoned(node):
            return _Facts([name_of(node)], _UNNAMED_VOLUME, _CORDONED, set())
    if placed:
        disproved.add(_ELSEWHERE)
    return _Facts(cordoned, _UNNAMED_VOLUME, "", disproved)


def _chosen(fitting: Sequence[Row], facts: _Facts) -> Row:
    """The row that counts, of those whose pattern fits.

    The first that objects do not disprove; if all are disproved, the first. If that row is about
    nodes, and objects prove another, then the proved one. Raises IndexError if none fits.
    """
    not_disproved = [row for row in fitting if row.name not in facts.disproved]
    first = (not_disproved or fitting)[0]
    if facts.proved and is_of_nodes(first):
        return next(row for row in rows("scheduling") if row.name == facts.proved)
    return first


def _host_of(volume: Object) -> str:
    """The hostname that a PersistentVolume's node affinity names; "" for none or several.

    Only `In` for the hostname label is read, in all terms together. A name in two terms counts as
    several. A term without that label, by which other nodes reach the volume too, changes nothing.
    """
    affinity = spec_of(volume).get("nodeAffinity") or {}
    required = affinity.get("required") or {}
    hosts: list[object] = []
    for term in required.get("nodeSelectorTerms") or ():
        for expression in term.get("matchExpressions") or ():
            if expression.get("key") == _HOSTNAME and expression.get("operator") == "In":
                hosts += expression.get("values") or ()
    return str(hosts[0]) if len(hosts) == 1 else ""
