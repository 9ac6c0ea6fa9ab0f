"""A plan as a reviewer looks at it: a row for each team, and the queue trees, as Mermaid too."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kai_fleet import releases
from kai_fleet.deployed import NAMESPACE, NAMESPACE_PATCH
from kai_fleet.fleet.amounts import written
from kai_fleet.fleet.cluster import Cluster, Team
from kai_fleet.fleet.declared import HOST
from kai_fleet.fleet.queues import RESOURCES, UNLIMITED, DeclaredQueue, QueueIndex, QueueShare
from kai_fleet.guards.policies import ISOLATION_LABEL
from kai_fleet.releases import mig
from kai_fleet.values import UNKNOWN, get
from kai_fleet.wording import counted, listed
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies.adapters import from_resources

_NONE: Final = "-"
_TEAM_PATH: Final = "kai-fleet:teams."
_MOST_QUEUES: Final = 16
# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)
Queues = Sequence[DeclaredQueue]


class TeamRow(NamedTuple):
    """A team in words; `look_at` is empty where there is nothing to look at.

    `gpus` is its bound by kind (`8, 14 mig-1g.10gb`), `guaranteed` what its own queues are promised
    of it, `nodes` the labels of its pool.
    """

    team: str
    mode: str
    scheduler: str
    support: str
    vcluster: str
    gpus: str
    guaranteed: str
    nodes: str
    look_at: str


TEAM_COLUMNS: Final = (
    *("team", "mode", "scheduler", "support", "vCluster", "GPUs", "guaranteed", "nodes"),
    "look at",
)


@dataclass(frozen=True)
class Picture:
    """A stack: its teams, those with something to look at first, the host's KAI, and its queues.

    `trees` are the queues of the host and of each team that has some.
    """

    teams: tuple[TeamRow, ...]
    kai: str | None
    trees: Mapping[str, Queues]


def picture(resources: Iterable[Registered], paths: Iterable[str] = ()) -> Picture:
    """The picture that the resources of a plan make; `paths` are those of its findings."""
    items = list(resources)
    clusters = from_resources.clusters(as_declared(items))
    host = next((c for c in clusters if c.teams), None) or next(
        (c for c in clusters if c.name == HOST), Cluster(HOST)
    )
    inside = {cluster.name: cluster for cluster in clusters if cluster is not host}
    spaces = (it.inputs.get("metadata") for it in items if it.type in (NAMESPACE, NAMESPACE_PATCH))
    isolated = {str(get(it, "name")): ISOLATION_LABEL in (get(it, "labels") or ()) for it in spaces}
    teams = sorted(host.teams, key=lambda team: str(team.name))
    found = Counter(path.split(".")[1] for path in paths if path.startswith(_TEAM_PATH))
    rows = [
        _row(it, inside.get(str(it.name)), isolated.get(it.namespace), found[str(it.name)])
        for it in teams
    ]
    places = {HOST: host, **{row.team: inside[row.team] for row in rows if row.team in inside}}
    return Picture(
        tuple(sorted(rows, key=lambda row: not row.look_at)),
        _kai(host),
        {name: place.queues for name, place in places.items() if place.queues},
    )


def _row(team: Team, inside: Cluster | None, isolated: bool | None, found: int) -> TeamRow:
    kai = _kai(inside) if inside else None
    version = "" if team.version in (None, UNKNOWN) else str(team.version).removeprefix("v")
    labels = {} if team.node_pool is UNKNOWN else team.node_pool or {}
    other = "the host's KAI" if team.mode == "host" else "kube-scheduler"
    tops = [queue for queue in inside.queues if queue.parent is None] if inside else []
    quotas = [_gpu_quota(queue) for queue in tops]
    # In a team stack its namespace, and with it the bound, is the platform's.
    bounded = isinstance(team.gpus, int | float)
    gpus = _gpus(team) if bounded else "platform's" if isolated is None else "no bound"
    concerns = {
        counted(found, "finding"): found,
        "not isolated": isolated is False,
        "no bound on GPUs": gpus == "no bound",
    }
    return TeamRow(
        team=str(team.name),
        mode=_NONE if team.mode in (None, UNKNOWN) else str(team.mode),
        scheduler=f"KAI {kai}" if kai else other,
        support=releases.support(kai).words if kai else _NONE,
        vcluster=f"v{version}" if version else _NONE,
        gpus=gpus,
        guaranteed=_amount("gpu", UNLIMITED if UNLIMITED in quotas else sum(quotas))
        if quotas
        else _NONE,
        nodes=", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "any",
        look_at=", ".join(words for words, applies in concerns.items() if applies),
    )


def _gpus(team: Team) -> str:
    slices = [f"{count} {name.rpartition('/')[2]}" for name, count in team.slices.items()]
    return ", ".join((f"{(team.gpus or 0) - mig.gpus_of(team.slices):g}", *slices))


def _kai(cluster: Cluster) -> str | None:
    return next((str(release.version) for release in cluster.kai if release.version), None)


def as_declared(resources: Iterable[Registered]) -> list[from_resources.Declared]:
    """A plan's resources as the rules read them: masked and unknown values are UNKNOWN."""
    return [
        from_resources.Declared(it.urn, it.type, it.name, _with_unknowns(it.inputs), it.provider)
        for it in resources
    ]


def _with_unknowns(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_unknowns(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_unknowns(item) for item in value]
    return UNKNOWN if value in (recorder.UNKNOWN, reading.SECRET) else value


def queue_line(queues: Queues) -> str:
    """The leaves of a tree with the GPUs that each is guaranteed: `serve 4, train 12`."""
    tree = QueueIndex(queues)
    leaves = [(name, queue) for name, queue in _by_name(queues) if tree.is_leaf(name)]
    texts = [f"{name} {_amount('gpu', _gpu_quota(queue))}" for name, queue in leaves]
    return listed(texts, "and", _MOST_QUEUES)


def queue_flowchart(queues: Iterable[DeclaredQueue]) -> str:
    """The tree with each queue's shares, parents first; queues are numbered in that order.

    Queues that pods may name have round corners.
    """
    tree, ids, lines = QueueIndex(queues), dict[str, str](), ["flowchart TD"]

    def draw(level: Iterable[DeclaredQueue], above: str | None) -> None:
        for name, queue in _by_name(level):
            if name in ids:
                continue  # two of one name, or a ring: the rules report them
            ids[name] = f"q{len(ids)}"
            left, right = ("(", ")") if tree.is_leaf(name) else ("[", "]")
            lines.append(f'  {ids[name]}{left}"{_label(queue)}"{right}')
            if above is not None:
                lines.append(f"  {above} --> {ids[name]}")
            draw(tree.children.get(name, ()), ids[name])

    draw((queue for queue in tree.queues if queue.parent not in tree.by_name), None)
    draw(tree.queues, None)  # of a ring, none is at the top
    return "\n".join(lines)


def _by_name(queues: Iterable[DeclaredQueue]) -> list[tuple[str, DeclaredQueue]]:
    return sorted(((str(queue.name), queue) for queue in queues), key=lambda each: each[0])


def _label(queue: DeclaredQueue) -> str:
    shares = {} if queue.shares is UNKNOWN else queue.shares
    lines = [str(queue.name).translate(_ESCAPED)]
    for resource in reversed(RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, QueueShare(limit=0.0))
        if resource == "gpu" or (share.quota, share.limit) != (UNLIMITED, UNLIMITED):
            words = [f"{resource} {_amount(resource, share.quota)}"]
            if share.limit != UNLIMITED:
                words.append(f"limit {_amount(resource, share.limit or 0.0)}")
            if share.weight != 1.0:
                words.append(f"weight {_amount('gpu', share.weight)}")
            lines.append(", ".join(words))
    return "<br>".join(lines)


def _gpu_quota(queue: DeclaredQueue) -> float:
    share = None if queue.shares is UNKNOWN else queue.shares.get("gpu")
    return 0.0 if share is None or share.quota is UNKNOWN else share.quota


def _amount(resource: Any, amount: float) -> str:
    return "not known yet" if amount is UNKNOWN else written(resource, amount, "")
