"""A plan as a reviewer looks at it: the host, and each team with its scheduler and its share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.fleet.chart_stores import EMBEDDED, store_of
from kai_fleet.fleet.cluster import HOST, Cluster, Team
from kai_fleet.fleet.deployed_state import NAMESPACE, NAMESPACE_PATCH
from kai_fleet.fleet.queues import UNLIMITED, DeclaredQueue
from kai_fleet.guards.policies import ISOLATION_LABEL
from kai_fleet.releases import mig
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import plural
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies.adapters import from_resources

_NAMESPACES: Final = (NAMESPACE, NAMESPACE_PATCH)


@dataclass(frozen=True, kw_only=True)
class ClusterPicture:
    """A host or the inside of a vCluster: its KAI version (None without KAI) and its queues."""

    kai: str | None = None
    queues: tuple[DeclaredQueue, ...] = ()

    @property
    def guaranteed_gpus(self) -> float:
        """What the top-level queues are promised together; -1 where one of them is unlimited."""
        return together(gpu_quota(queue) for queue in self.queues if queue.parent is None)


@dataclass(frozen=True, kw_only=True)
class TeamPicture(ClusterPicture):
    """A team and what is inside its vCluster. `gpus` is its bound as KAI counts them, None where
    the plan sets none; `slices` are those of MIG among them. `store` is where its vCluster keeps
    its state.

    `isolated`: guards judge what is made in its namespace; None where another stack declares that.
    """

    name: str
    mode: str | None
    vcluster: str
    gpus: float | None
    pool: str
    store: str = EMBEDDED
    isolated: bool | None = None
    slices: Mapping[str, int] = field(default_factory=dict)

    @property
    def bounded_elsewhere(self) -> bool:
        """Its bound is declared with its namespace, by another stack."""
        return self.gpus is None and self.isolated is None

    @property
    def gpus_in_words(self) -> str:
        """Its bound by kind: `8`, or `8, 14 mig-1g.10gb`."""
        if self.bounded_elsewhere:
            return "platform's"
        if self.gpus is None:
            return "no bound"
        parts = [f"{n} {name.rpartition('/')[2]}" for name, n in self.slices.items()]
        return ", ".join((f"{self.gpus - mig.gpus_of(self.slices):g}", *parts))

    def bound(self, none: str) -> str:
        """Its bound for a sentence: `8 GPUs`; `none` where it has none."""
        if self.bounded_elsewhere:
            return "GPUs bounded by its platform"
        return none if self.gpus is None else f"{self.gpus_in_words} {plural(self.gpus, 'GPU')}"

    @property
    def scheduler(self) -> str:
        """Who schedules its pods, in words."""
        if self.kai is not None:
            return f"KAI {self.kai}"
        return "the host's KAI" if self.mode == "host" else "kube-scheduler"


@dataclass(frozen=True, kw_only=True)
class Picture(ClusterPicture):
    """A stack: its host, and its teams by name."""

    teams: Mapping[str, TeamPicture] = field(default_factory=dict)

    def trees(self, host: str = HOST) -> dict[str, tuple[DeclaredQueue, ...]]:
        """The queues of each place that has some: of the host, called `host`, and of its teams."""
        places: dict[str, ClusterPicture] = {host: self, **self.teams}
        return {name: place.queues for name, place in places.items() if place.queues}


def picture(resources: Iterable[Registered]) -> Picture:
    """The picture that the resources of a plan make."""
    items = list(resources)
    clusters = from_resources.clusters(as_declared(items))
    host = next((c for c in clusters if c.teams), None) or next(
        (c for c in clusters if c.name == HOST), Cluster(HOST)
    )
    inside = {cluster.name: cluster for cluster in clusters if cluster is not host}
    spaces = (it.inputs.get("metadata") for it in items if it.type in _NAMESPACES)
    isolated = {
        str(it.get("name")): ISOLATION_LABEL in (it.get("labels") or ())
        for it in spaces
        if isinstance(it, dict)
    }
    teams = [
        _team(team, inside.get(str(team.name), Cluster("")), isolated.get(team.namespace))
        for team in sorted(host.teams, key=lambda team: str(team.name))
    ]
    return Picture(kai=_kai(host), queues=host.queues, teams={team.name: team for team in teams})


def _team(team: Team, inside: Cluster, isolated: bool | None) -> TeamPicture:
    version = "" if team.version in (None, UNKNOWN) else str(team.version)
    bounded = team.gpus is not UNKNOWN
    labels = {} if team.node_pool is UNKNOWN else team.node_pool or {}
    return TeamPicture(
        kai=_kai(inside),
        queues=inside.queues,
        name=str(team.name),
        mode=None if team.mode is UNKNOWN else team.mode,
        vcluster=f"v{version.removeprefix('v')}" if version else "",
        gpus=team.gpus if bounded else None,
        slices=team.slices if bounded else {},
        pool=", ".join(f"{key}={value}" for key, value in sorted(labels.items())),
        store=store_of(team.values).words,
        isolated=isolated,
    )


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


def together(quotas: Iterable[float]) -> float:
    """What quotas promise together; -1 where one of them is unlimited."""
    each = list(quotas)
    return UNLIMITED if UNLIMITED in each else sum(each)


def gpu_quota(queue: DeclaredQueue) -> float:
    """The GPUs that a queue is promised; -1 for unlimited."""
    share = None if queue.shares is UNKNOWN else queue.shares.get("gpu")
    return 0.0 if share is None or share.quota is UNKNOWN else share.quota
