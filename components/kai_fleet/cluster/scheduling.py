"""What schedulers say of a pod without a node: rows of `scheduling.yaml`, and what is around it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import yaml

from kai_fleet.cluster.kube.objects import KubeObject, in_pool
from kai_fleet.values import value_at
from kai_fleet.wording import listed, plural

_HOSTNAME: Final = "kubernetes.io/hostname"
_SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"  # on the claim of a volume made there
_PREEMPTION: Final = " preemption: "  # what follows counts the same nodes once more
_READ: Final = 4000  # characters of a message: tenants write some, and patterns take long for more
_QUOTED: Final = 240  # characters of a message in a cause
_FIRST_OF_NODES: Final = "no-room"  # from this row on, a row is about some of the nodes
_ELSEWHERE: Final = "volume-elsewhere"
_CORDONED: Final = "cordoned"
_UNNAMED: Final = "those with SchedulingDisabled in kubectl get nodes"
_SOMEWHERE: Final = "is in a zone, or on a node, where no node takes it"


class Row(NamedTuple):
    """A row of `scheduling.yaml`. `tell` is what to do for who does not run the nodes."""

    name: str
    pattern: str
    cause: str
    fix: str
    tell: str = ""

    @property
    def is_of_nodes(self) -> bool:
        """Whether it is about some of the nodes, of which objects may say more than words."""
        names = [row.name for row in rows()]
        return names.index(self.name) >= names.index(_FIRST_OF_NODES)

    @property
    def is_by_objects(self) -> bool:
        """Whether its remedy is about objects by their names."""
        return self.name in (_CORDONED, _ELSEWHERE)


@cache
def rows() -> tuple[Row, ...]:
    """The rows, in the order in which they count."""
    text = (files(__package__) / "scheduling.yaml").read_bytes()
    return tuple(Row(**row) for row in yaml.load(text, yaml.CSafeLoader))


@dataclass(frozen=True)
class Around:
    """The objects around a pod without a node; each kind is empty where it is not known.

    Args:
        every: All nodes. A volume may be on one that the pod may not use.
        nodes: Those that the pod may use, by their labels.
        claims: The claims that it mounts.
        volumes: All PersistentVolumes.
        unread: Why they are not known; "" where they are.
    """

    every: Sequence[KubeObject] = ()
    nodes: Sequence[KubeObject] = ()
    claims: Sequence[KubeObject] = ()
    volumes: Sequence[KubeObject] = ()
    unread: str = ""

    @property
    def placed(self) -> Iterator[tuple[str, str, KubeObject | None]]:
        """Each claim's volume in words, its node's name, and the node; None for one that is gone.

        Only of volumes that are known to be on one node.
        """
        by_name = {node.name: node for node in self.every}
        by_name |= {node.labels.get(_HOSTNAME, node.name): node for node in self.every}
        volumes = {volume.name: volume for volume in self.volumes}
        for claim in self.claims:
            name = str(claim.spec.get("volumeName") or "")
            host = _host_of(volumes.get(name)) or claim.annotations.get(_SELECTED_NODE, "")
            if self.every and name and host:
                yield f"{name} of claim {claim.name}", host, by_name.get(host)


NOTHING: Final = Around()


def around(
    pod: KubeObject,
    every: Sequence[KubeObject],
    pool: Mapping[str, str],
    claims: Iterable[KubeObject],
    volumes: Sequence[KubeObject],
) -> Around:
    """The objects around a pod; it may use the nodes of a pool that have its own labels, too."""
    labels = {**pool, **(pod.spec.get("nodeSelector") or {})}
    named = set(claims_of(pod))
    return Around(
        every,
        [node for node in every if in_pool(node.labels, labels)],
        [item for item in claims if item.name in named and item.namespace == pod.namespace],
        volumes,
    )


def claims_of(pod: KubeObject) -> Iterator[str]:
    """The names of the claims that a pod mounts."""
    for volume in pod.spec.get("volumes") or ():
        if name := value_at(volume, "persistentVolumeClaim.claimName"):
            yield str(name)
        elif "ephemeral" in volume:
            yield f"{pod.name}-{volume['name']}"


def meaning(message: str, about: Around) -> tuple[Row, dict[str, str]] | None:
    """What a scheduler's message means, with the values of placeholders; None for unknown words.

    Objects decide where they say more than words: of a volume, whether its node takes pods; of
    cordoned nodes, whether they are such as the pod may use.
    """
    said = message[:_READ]
    said = said.partition(_PREEMPTION)[0] or said
    matches = {row: re.search(row.pattern, said, re.DOTALL) for row in rows()}
    fitting = [row for row, match in matches.items() if match is not None]
    if not fitting:
        return None
    facts = _facts(about)
    row = _chosen(fitting, facts)
    match = matches[row]
    caught = match.groupdict("") if match is not None else {}
    names = f"{plural(len(facts.cordoned), 'node')} {listed(facts.cordoned, 'and')}"
    return row, {
        **caught,
        "text": " ".join(said.split())[:_QUOTED],
        "nodes": names if facts.cordoned else _UNNAMED,
        "cordoned": " ".join(facts.cordoned) or "<node>",
        "volume": facts.volume,
    }


class _Facts(NamedTuple):
    """What objects say: the names of cordoned nodes, where the volume is, rows that they prove."""

    cordoned: list[str]
    volume: str
    proved: str
    disproved: set[str]


def _facts(about: Around) -> _Facts:
    cordoned = [node.name for node in about.nodes if node.spec.get("unschedulable")]
    placed = list(about.placed)
    disproved = {_CORDONED} if about.nodes and not cordoned else set()
    for volume, name, node in placed:
        if node is None:
            place = f"{volume} is on node {name}, which is not there"
            return _Facts(cordoned, place, _ELSEWHERE, disproved)
        if not node.is_true("Ready"):
            place = f"{volume} is on node {name}, which is not Ready"
            return _Facts(cordoned, place, _ELSEWHERE, disproved)
        if not node.takes_pods:
            return _Facts([node.name], _SOMEWHERE, _CORDONED, set())
    if placed:
        disproved.add(_ELSEWHERE)
    return _Facts(cordoned, _SOMEWHERE, "", disproved)


def _chosen(fitting: Sequence[Row], facts: _Facts) -> Row:
    """The row that counts of those whose words fit: the one that objects prove, where these are
    about nodes; else the first that they do not disprove.
    """
    first = next((row for row in fitting if row.name not in facts.disproved), fitting[0])
    if facts.proved and first.is_of_nodes:
        return next(row for row in rows() if row.name == facts.proved)
    return first


def _host_of(volume: KubeObject | None) -> str:
    """The one node that a PersistentVolume is bound to, by its label; "" where it is not."""
    terms = value_at(volume, "spec.nodeAffinity.required.nodeSelectorTerms") if volume else None
    expressions = [
        expression
        for term in terms or ()
        for expression in term.get("matchExpressions") or ()
        if expression.get("key") == _HOSTNAME
    ]
    hosts = [host for expression in expressions for host in expression.get("values") or ()]
    return str(hosts[0]) if len(hosts) == 1 else ""
