"""A plan for a reviewer: a row for each team, and the queue trees."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kai_fleet.releases.chart_stores import REPLICAS, store_of
from kai_fleet.values import UNKNOWN, known_or, pairs, value_at
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.stack_file.reading import SECRET
from kai_fleet_policies.adapters import from_resources
from kai_fleet_policies.adapters.resource import DeclaredResource
from kai_fleet_policies.model.cluster import HOST, ClusterModel, TeamModel
from kai_fleet_policies.model.queues import UNLIMITED, DeclaredQueue
from kai_usage import mig

# Columns of the team table. "-" is unknown or none. GPUs are the most that a team's pods may hold,
# first the whole ones, then each MIG profile: `8, 14 mig-1g.10gb`. `guaranteed` are GPUs, too.
TEAM_COLUMNS = ("team", "mode", "scheduler", "vCluster", "GPUs", "guaranteed", "nodes")
_REQUESTS = "controlPlane.statefulSet.resources.requests"
TeamRow = tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A stack for a reviewer.

    `teams` has a row of TEAM_COLUMNS for each team, sorted by name. `trees` has the queues of the
    host, under `host`, and of each team that has some, under its name.
    """

    teams: Sequence[TeamRow]
    trees: Mapping[str, Sequence[DeclaredQueue]]


def picture(resources: Iterable[recorder.Registered]) -> Picture:
    """The picture of a plan's resources."""
    return of_clusters(from_resources.clusters(as_declared(resources)))


def of_clusters(clusters: Sequence[ClusterModel]) -> Picture:
    """The picture of a stack's clusters. The first one with teams is the host.

    If none has teams, it is the one whose name is `host`, else an empty one. The cluster of a
    team's vCluster has the team's name.
    """
    by_name = {str(cluster.name): cluster for cluster in clusters}
    with_teams = [cluster for cluster in clusters if cluster.teams]
    host = with_teams[0] if with_teams else by_name.get(HOST, ClusterModel(HOST))
    queues_by_cluster = {HOST: host.queues}
    rows = list[TeamRow]()
    for team in sorted(host.teams, key=lambda team: str(team.name)):
        name = str(team.name)
        queues = by_name[name].queues if name in by_name else ()
        queues_by_cluster[name] = queues
        rows.append(_team_row(team, host, queues))
    return Picture(rows, {name: queues for name, queues in queues_by_cluster.items() if queues})


def _team_row(team: TeamModel, host: ClusterModel, queues: Sequence[DeclaredQueue]) -> TeamRow:
    """The cells of TEAM_COLUMNS; `queues` are those inside the team's vCluster."""
    return (
        str(team.name),
        str(team.mode),
        _scheduler(team, host),
        _vcluster_version(team, host),
        _gpus(team),
        _guaranteed_gpus(queues),
        _node_labels(team),
    )


def _scheduler(team: TeamModel, host: ClusterModel) -> str:
    """What schedules a team's pods, with the version of KAI if that is known.

    `kube-scheduler` for every mode but virtual and host, also if the mode is UNKNOWN.
    """
    if team.mode == "virtual":
        return f"KAI {known_or(team.inside.scheduler.version, None) or ''}".strip()
    if team.mode == "host":
        return f"the host's KAI {known_or(host.scheduler.version, None) or ''}".strip()
    return "kube-scheduler"


def _vcluster_version(team: TeamModel, host: ClusterModel) -> str:
    """The version of a team's vCluster, with a `v`; "another chart" if a chart at the team's path
    is not vCluster's, "-" if the version is unknown or left open.
    """
    for chart in host.charts:
        if chart.path == team.path and chart.why_another:
            return "another chart"
    version = known_or(team.version, None)
    return f"v{version.removeprefix('v')}" if version else "-"


def _gpus(team: TeamModel) -> str:
    """The cell of a team's GPUs, as at TEAM_COLUMNS; "-" if they are unknown or not limited."""
    if not isinstance(team.gpus, int | float):
        return "-"
    whole_gpus = team.gpus - mig.gpus_of(team.slices)
    cell = [f"{whole_gpus:g}"]
    cell += [f"{count} {name.rpartition('/')[2]}" for name, count in team.slices.items()]
    return ", ".join(cell)


def _guaranteed_gpus(queues: Iterable[DeclaredQueue]) -> str:
    """The sum of the GPU quotas of top-level queues; children's are within those.

    "-" without queues, `unlimited` if one of the quotas is. Unknown quotas count as 0.
    """
    quotas = [_gpu_quota(queue) for queue in queues if not queue.parent]
    if not quotas:
        return "-"
    if UNLIMITED in quotas:
        return "unlimited"
    return f"{sum(quotas):g}"


def _gpu_quota(queue: DeclaredQueue) -> float:
    """The GPUs that a queue is guaranteed, or UNLIMITED; 0 if unknown or not written."""
    share = known_or(queue.shares, {}).get("gpu")
    return 0.0 if share is None else known_or(share.quota, 0.0)


def _node_labels(team: TeamModel) -> str:
    """The labels of a team's nodes, `key=value, …`, sorted; `any` without labels, and if all are
    UNKNOWN.
    """
    labels = sorted(pairs(team.node_pool).items())
    return ", ".join(f"{key}={value}" for key, value in labels) or "any"


def costs(resources: Iterable[recorder.Registered]) -> Iterator[str]:
    """A sentence for each vCluster with several etcd members: what it asks of the host."""
    for resource in resources:
        cost = cost_of(resource)
        if cost:
            yield f"vCluster {resource.inputs['name']}: {cost}"


def cost_of(resource: recorder.Registered) -> str:
    """What a vCluster's release with several etcd members asks of the host; "" for all else.

    What is not set is the chart's, the same from v0.27 to v0.36 (chart/values.yaml).
    """
    values = resource.inputs.get("values")
    store = store_of(values)
    if store.members <= 1:
        return ""
    return (
        f"{value_at(values, REPLICAS)} control planes"
        f" that request {value_at(values, _REQUESTS) or '200m CPU and 256Mi'} each, and"
        f" {store.members} etcd members that request 20m CPU and 150Mi, with a volume of"
        f" {store.claim.get('size', '5Gi')} each"
    )


def as_declared(resources: Iterable[recorder.Registered]) -> list[DeclaredResource]:
    """A plan's resources as the rules read them: masked and unknown values are UNKNOWN."""
    return [
        DeclaredResource(
            urn=resource.urn,
            type=resource.type,
            name=resource.name,
            props=_with_unknowns(resource.inputs),
            provider=resource.provider,
        )
        for resource in resources
    ]


def _with_unknowns(value: Any) -> Any:
    """A recorded value with UNKNOWN in place of each masked or unknown one, at any depth."""
    if isinstance(value, dict):
        return {key: _with_unknowns(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_unknowns(element) for element in value]
    return UNKNOWN if value in (recorder.UNKNOWN, SECRET) else value
