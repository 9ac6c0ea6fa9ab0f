"""A plan for a reviewer: a row for each team, and the queue trees."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kai_fleet.names import ISOLATION_LABEL, NAMESPACE, NAMESPACE_PATCH
from kai_fleet.releases import mig
from kai_fleet.values import UNKNOWN, get
from kai_fleet.wording import counted
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.adapters.from_resources import Declared
from kai_fleet_policies.model.cluster import HOST, Cluster, Team
from kai_fleet_policies.model.queues import UNLIMITED, DeclaredQueue

# A team in words; GPUs are its bound by kind: `8, 14 mig-1g.10gb`. The last are its findings.
TEAM_COLUMNS: Final = (
    *("team", "mode", "scheduler", "vCluster", "GPUs", "guaranteed", "nodes", "findings"),
)
TeamRow: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A stack: its teams, those with findings first; the queues of host and teams."""

    teams: tuple[TeamRow, ...]
    trees: Mapping[str, Sequence[DeclaredQueue]]


def picture(resources: Iterable[recorder.Registered], paths: Iterable[str] = ()) -> Picture:
    """The picture that the resources of a plan make; `paths` are those of its findings."""
    items = list(resources)
    clusters = from_resources.clusters(as_declared(items))
    named = (cluster for cluster in clusters if cluster.name == HOST)
    host = next((c for c in clusters if c.teams), None) or next(named, Cluster(HOST))
    inside = {cluster.name: cluster for cluster in clusters if cluster is not host}
    namespaces = (item.inputs for item in items if item.type in (NAMESPACE, NAMESPACE_PATCH))
    metadata = [get(inputs, "metadata") for inputs in namespaces]
    isolated = {str(get(m, "name")): ISOLATION_LABEL in (get(m, "labels") or ()) for m in metadata}
    teams = sorted(((str(team.name), team) for team in host.teams), key=lambda pair: pair[0])
    found = Counter(path.split(".")[1] for path in paths if path.startswith("kai-fleet:teams."))
    rows = [
        _row(team, host, inside.get(name), isolated.get(team.namespace), found[name])
        for name, team in teams
    ]
    places = {HOST: host, **{name: inside[name] for name, _ in teams if name in inside}}
    return Picture(
        tuple(sorted(rows, key=lambda row: not row[-1])),
        {name: place.queues for name, place in places.items() if place.queues},
    )


def _row(
    team: Team, host: Cluster, inside: Cluster | None, isolated: bool | None, found: int
) -> TeamRow:
    own, hosts = _kai(inside) if inside else "", _kai(host)
    schedulers = {"virtual": f"KAI {own}", "host": f"the host's KAI {hosts}"}
    version = "" if team.version in (None, UNKNOWN) else str(team.version).removeprefix("v")
    labels = {} if team.node_pool is UNKNOWN else team.node_pool or {}
    quotas = [gpu_quota(queue) for queue in inside.queues if not queue.parent] if inside else []
    guaranteed = "unlimited" if UNLIMITED in quotas else f"{sum(quotas):g}"
    # In a team stack its namespace, and with it the bound, is the platform's.
    bounded = isinstance(team.gpus, int | float)
    gpus = _gpus(team) if bounded else "platform's" if isolated is None else "no bound"
    concerns = {
        counted(found, "finding"): found,
        "not isolated": isolated is False,
        "no bound on GPUs": gpus == "no bound",
    }
    return (
        str(team.name),
        "-" if team.mode is UNKNOWN else team.mode,
        schedulers.get(team.mode, "kube-scheduler").strip(),
        f"v{version}" if version else "-",
        gpus,
        guaranteed if quotas else "-",
        ", ".join(f"{key}={value}" for key, value in sorted(labels.items())) or "any",
        ", ".join(words for words, applies in concerns.items() if applies),
    )


def _gpus(team: Team) -> str:
    slices = [f"{count} {name.rpartition('/')[2]}" for name, count in team.slices.items()]
    return ", ".join((f"{(team.gpus or 0) - mig.gpus_of(team.slices):g}", *slices))


def _kai(cluster: Cluster) -> str:
    return next((str(release.version) for release in cluster.kai if release.version), "")


def gpu_quota(queue: DeclaredQueue) -> float:
    """The GPUs that a queue is promised; -1 for unlimited."""
    share = None if queue.shares is UNKNOWN else queue.shares.get("gpu")
    return 0.0 if share is None or share.quota is UNKNOWN else share.quota


def as_declared(resources: Iterable[recorder.Registered]) -> list[Declared]:
    """A plan's resources as the rules read them: masked and unknown values are UNKNOWN."""
    return [
        Declared(item.urn, item.type, item.name, _with_unknowns(item.inputs), item.provider)
        for item in resources
    ]


def _with_unknowns(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_unknowns(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_unknowns(item) for item in value]
    return UNKNOWN if value in (recorder.UNKNOWN, reading.SECRET) else value
