"""A plan as a reviewer looks at it: the host, and each team with its scheduler and its share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kai_fleet.fleet.model import HOST, DeclaredCluster, DeclaredTeam
from kai_fleet.guards.policies import ISOLATION_LABEL
from kai_fleet.releases.vcluster_store import EMBEDDED, store_of
from kai_fleet.settings.sections.teams import Mode
from kai_fleet.state.deployed_state import NAMESPACE, NAMESPACE_PATCH
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.amounts import written
from kubectl_fleet.declared.queues import UNLIMITED, DeclaredQueue
from kubectl_fleet.declared.unknown import UNKNOWN
from kubectl_fleet.releases import mig
from kubectl_fleet.wording import plural

_NAMESPACES: Final = (NAMESPACE, NAMESPACE_PATCH)


@dataclass(frozen=True)
class ClusterPicture:
    """A host or the inside of a vCluster: its KAI version (None without KAI) and its queues."""

    kai: str | None = None
    queues: tuple[DeclaredQueue, ...] = ()

    @property
    def guaranteed_gpus(self) -> float:
        """What the top-level queues are promised together; -1 where one of them is unlimited."""
        return together(gpu_quota(queue) for queue in self.queues if queue.parent is None)


@dataclass(frozen=True)
class TeamPicture:
    """One team. `gpus` is its bound as KAI counts them, None where the plan sets none; `slices` are
    those of MIG among them. `store` is where its vCluster keeps its state.

    `isolated`: guards judge what is made in its namespace; None where another stack declares that.
    """

    name: str
    mode: Mode | None
    vcluster: str
    gpus: float | None
    pool: str
    inside: ClusterPicture = field(default_factory=ClusterPicture)
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
        if self.gpus is None or not self.slices:
            return gpu_amount(self.gpus)
        whole = f"{self.gpus - mig.gpus_of(self.slices):g}"
        parts = [f"{n} {name.rpartition('/')[2]}" for name, n in self.slices.items()]
        return ", ".join((whole, *parts))

    def bound(self, none: str) -> str:
        """Its bound for a sentence: `8 GPUs`; `none` where it has none."""
        if self.bounded_elsewhere:
            return "GPUs bounded by its platform"
        return none if self.gpus is None else f"{self.gpus_in_words} {plural(self.gpus, 'GPU')}"

    @property
    def scheduler(self) -> str:
        """Who schedules its pods, in words."""
        if self.inside.kai is not None:
            return f"KAI {self.inside.kai}"
        return "the host's KAI" if self.mode == "host" else "kube-scheduler"


@dataclass(frozen=True)
class Picture:
    """A stack: its host and its teams by name."""

    host: ClusterPicture = field(default_factory=ClusterPicture)
    teams: Mapping[str, TeamPicture] = field(default_factory=dict)

    def trees(self, host: str = HOST) -> dict[str, tuple[DeclaredQueue, ...]]:
        """The queues of each place that has some: of the host, called `host`, and of its teams."""
        places = {host: self.host} | {name: team.inside for name, team in self.teams.items()}
        return {name: place.queues for name, place in places.items() if place.queues}


def picture(resources: Iterable[Mapping[str, Any]]) -> Picture:
    """The picture that the `resources` of a plan's record make."""
    items = list(resources)
    clusters = from_resources.clusters(as_declared(items))
    host = next((c for c in clusters if c.virtual_clusters), None) or next(
        (c for c in clusters if c.name == HOST), DeclaredCluster(HOST)
    )
    inside = {cluster.name: _place(cluster) for cluster in clusters if cluster is not host}
    spaces = _namespaces(items)
    teams = [_team(vcluster, inside, spaces) for vcluster in host.virtual_clusters]
    return Picture(_place(host), {team.name: team for team in sorted(teams, key=lambda t: t.name)})


def as_declared(resources: Iterable[Mapping[str, Any]]) -> list[from_resources.Declared]:
    """A plan's resources as the rules read them: masked and unknown values are UNKNOWN."""
    return [
        from_resources.Declared(
            urn=item["urn"],
            type=item["type"],
            name=item["name"],
            props=_with_unknowns(item.get("inputs", {})),
            provider=item.get("provider", ""),
        )
        for item in resources
    ]


def together(quotas: Iterable[float]) -> float:
    """What quotas promise together; -1 where one of them is unlimited."""
    each = list(quotas)
    return UNLIMITED if UNLIMITED in each else sum(each)


def gpu_amount(amount: float | None) -> str:
    """A number of GPUs for people; None is no bound."""
    return "no bound" if amount is None else written("gpu", amount, "")


def _namespaces(resources: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """The namespaces by name, and whether each has a level of isolation."""
    own = (it.get("inputs", {}) for it in resources if it["type"] in _NAMESPACES)
    return {
        str(it.get("name")): ISOLATION_LABEL in (it.get("labels") or ())
        for it in (inputs.get("metadata") for inputs in own)
        if isinstance(it, dict)
    }


def _with_unknowns(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_unknowns(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_unknowns(item) for item in value]
    return UNKNOWN if value in (recorder.UNKNOWN, reading.SECRET) else value


def _place(cluster: DeclaredCluster) -> ClusterPicture:
    kai = next((str(release.version) for release in cluster.kai if release.version), None)
    return ClusterPicture(kai, cluster.queues)


def _team(
    team: DeclaredTeam, inside: Mapping[str, ClusterPicture], spaces: Mapping[str, bool]
) -> TeamPicture:
    name = str(team.name)
    version = "" if team.version in (None, UNKNOWN) else str(team.version)
    return TeamPicture(
        name=name,
        mode=None if team.mode is UNKNOWN else team.mode,
        vcluster=f"v{version.removeprefix('v')}" if version else "",
        gpus=None if team.gpus is UNKNOWN else team.gpus,
        slices={} if team.gpus is UNKNOWN else team.slices,
        pool=_pool(team),
        inside=inside.get(name, ClusterPicture()),
        store=store_of(team.values).words,
        isolated=spaces.get(team.namespace),
    )


def _pool(team: DeclaredTeam) -> str:
    if team.node_pool is UNKNOWN or not team.node_pool:
        return ""
    return ", ".join(f"{key}={value}" for key, value in sorted(team.node_pool.items()))


def gpu_quota(queue: DeclaredQueue) -> float:
    """The GPUs that a queue is promised; -1 for unlimited."""
    share = None if queue.shares is UNKNOWN else queue.shares.get("gpu")
    return 0.0 if share is None or share.quota is UNKNOWN else share.quota
