"""A plan for a reviewer: a row for each team, and the queue trees."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kai_fleet.releases import mig
from kai_fleet.values import UNKNOWN, pairs
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.stack_file.reading import SECRET
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.adapters.from_resources import Declared
from kai_fleet_policies.model.cluster import HOST, Cluster, Team
from kai_fleet_policies.model.queues import UNLIMITED, DeclaredQueue

# A team in words; "-" is not known, or none. GPUs are its bound by kind: `8, 14 mig-1g.10gb`.
TEAM_COLUMNS: Final = ("team", "mode", "scheduler", "vCluster", "GPUs", "guaranteed", "nodes")
TeamRow: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A stack: its teams, and the queues of host and teams."""

    teams: Sequence[TeamRow]
    trees: Mapping[str, Sequence[DeclaredQueue]]


def picture(resources: Iterable[recorder.Registered]) -> Picture:
    """The picture that the resources of a plan make."""
    return of_clusters(from_resources.clusters(as_declared(resources)))


def of_clusters(clusters: Sequence[Cluster]) -> Picture:
    """The picture of a stack's clusters."""
    by_name = {cluster.name: cluster for cluster in clusters}
    host = next((c for c in clusters if c.teams), None) or by_name.get(HOST, Cluster(HOST))
    teams = sorted(host.teams, key=lambda team: str(team.name))
    places = {HOST: host, **{str(team.name): by_name.get(team.name) for team in teams}}
    trees = {name: place.queues for name, place in places.items() if place and place.queues}
    return Picture([_row(team, host, trees.get(str(team.name), ())) for team in teams], trees)


def _row(team: Team, host: Cluster, queues: Sequence[DeclaredQueue]) -> TeamRow:
    schedulers = {
        "virtual": f"KAI {team.inside.scheduler.version or ''}",
        "host": f"the host's KAI {host.scheduler.version or ''}",
    }
    version = f"v{str(team.version).removeprefix('v')}" if team.version else "-"
    if any(chart.path == team.path and chart.why_another for chart in host.charts):
        version = "another chart"
    quotas = [_gpu_quota(queue) for queue in queues if not queue.parent]
    guaranteed = "unlimited" if UNLIMITED in quotas else f"{sum(quotas):g}" if quotas else "-"
    labels, gpus = sorted(pairs(team.node_pool).items()), "-"
    pool = ", ".join(f"{key}={value}" for key, value in labels) or "any"
    if isinstance(team.gpus, int | float):
        slices = [f"{count} {name.rpartition('/')[2]}" for name, count in team.slices.items()]
        gpus = ", ".join((f"{team.gpus - mig.gpus_of(team.slices):g}", *slices))
    scheduler = schedulers.get(team.mode, "kube-scheduler").strip()
    return (str(team.name), str(team.mode), scheduler, version, gpus, guaranteed, pool)


def _gpu_quota(queue: DeclaredQueue) -> float:
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
    return UNKNOWN if value in (recorder.UNKNOWN, SECRET) else value
