"""Read the API servers of a stack into a snapshot: the host, then every vCluster at once.

All requests are GETs, bounded in time and size. What this user may not read is noted.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.resources import files
from typing import Final

import yaml

from kai_fleet.cluster.service_address import address_of
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, pieces
from kai_fleet.fleet.cluster import HOST
from kai_fleet.guards.policies import QUEUES, TEAM_LABEL
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import RefusedError, UnreachableError
from kai_fleet.kube.objects import MALFORMED, malformed, well_named
from kai_fleet.wording import plural
from kai_fleet_cli.doctor.desired import DesiredCluster, DesiredTeam
from kai_fleet_cli.doctor.snapshot import OF_ITS_STACK, Cluster, Snapshot, TeamState

SECONDS: Final = 10.0  # for all requests to one API server
_CLUSTERS_AT_ONCE: Final = 8
_REQUESTS_AT_ONCE: Final = 6  # to one API server
_VCLUSTER_DNS: Final = "vcluster-kube-dns"  # label of the DNS that vCluster brings
# What is read, by the plural of each kind: of every API server, of those where something required
# is of the kind, and of the host for the cause of what else is found.
_READS: Final = yaml.safe_load((files(__package__) / "reads.yaml").read_text(encoding="utf-8"))
READS: Final[Mapping[str, str]] = _READS["always"]
_WHERE_REQUIRED: Final[Mapping[str, str]] = _READS["required"]
_OF_HOST: Final[Mapping[str, str]] = _READS["host"]

Progress = Callable[[int, int], None]  # how many clusters have answered, of how many


def no_progress(done: int, of: int) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True)
class Sources:
    """Where the clusters are, and how their stack is named."""

    host: Callable[[], Api]  # opens it
    desired: DesiredCluster = field(default_factory=DesiredCluster)
    teams: Mapping[str, DesiredTeam] | None = None  # None for those that the host has
    only: str | None = None  # the one of these to read
    update: str = OF_ITS_STACK
    team_update: str = ""
    host_kubectl: str = "kubectl"
    namespace: str | None = None  # read where this user may not list a kind in all
    context: str = ""  # name of a cluster without a stack file
    progress: Progress = no_progress


def read_clusters(sources: Sources) -> Snapshot:
    """Read all. A vCluster that does not answer is part of the result.

    Raises:
        UnreachableError: The host does not answer.
    """
    blank = Cluster(HOST, sources.desired, update=sources.update, kubectl=sources.host_kubectl)
    with closing(sources.host()) as api:
        host = read(api, blank, sources.namespace)
        teams = sources.teams
        if teams is None:
            host = _named(host, sources.context)
            teams = _teams_on(host)
        teams = {name: team for name, team in teams.items() if sources.only in (None, name)}
        with ThreadPoolExecutor(max_workers=_REQUESTS_AT_ONCE) as pool:
            found = pool.map(lambda team: _access(api, host, team), teams.values())
            accesses = dict(zip(teams, found, strict=True))
    sources.progress(1, 1 + len(teams))
    update = sources.team_update or sources.update
    with ThreadPoolExecutor(max_workers=_CLUSTERS_AT_ONCE) as pool:
        states = {
            name: pool.submit(_team, team, accesses[name], update) for name, team in teams.items()
        }
        for done, _ in enumerate(as_completed(states.values()), 2):
            sources.progress(done, 1 + len(teams))
    return Snapshot(host, {name: state.result() for name, state in states.items()})


def read(api: Api, blank: Cluster, namespace: str | None = None) -> Cluster:
    """A cluster with its objects. Raises UnreachableError where it stops answering."""
    _, refused = api.lists({"version": "/version"}, 1)
    for error in refused.values():
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnreachableError(f"it answers {error}")
    optional = _OF_HOST if blank.name == HOST else {}
    kinds = {plural(2, row.kind).lower() for row in blank.desired.required}
    required = {kind: path for kind, path in _WHERE_REQUIRED.items() if kind in kinds}
    paths = {**READS, **optional, **required}
    objects, refused = api.lists(paths, _REQUESTS_AT_ONCE)
    if namespace is not None:
        denied = [kind for kind, error in refused.items() if error.status == HTTPStatus.FORBIDDEN]
        inside = {kind: paths[kind] for kind in denied if "{}" in paths[kind]}
        own, still = api.lists(inside, _REQUESTS_AT_ONCE, namespace)
        if "namespaces" in denied:
            with suppress(RefusedError):
                own["namespaces"] = [api.get(f"{paths['namespaces']}/{namespace}")]
        objects |= own
        refused = {kind: still.get(kind, why) for kind, why in refused.items() if kind not in own}
    unreadable = {
        kind: str(error)
        for kind, error in refused.items()
        if error.status != HTTPStatus.NOT_FOUND and kind not in optional
    }
    if not objects and not unreadable:
        raise UnreachableError("what answers there is no Kubernetes API")
    return replace(blank, objects=objects, unreadable=unreadable, now=datetime.now(UTC))


def _named(host: Cluster, context: str) -> Cluster:
    """A cluster without a stack file: a host has teams; a vCluster is named after its team, which
    its guard names, and declares its queues at the team's key.
    """
    if any(item.labels.get(TEAM_LABEL) for item in host.all("namespaces")):
        return host
    guards = [item.name for item in host.all("validatingadmissionpolicies")]
    names = [name.removeprefix(QUEUES) for name in guards if name.startswith(QUEUES)]
    dns = host.within("deployments", "kube-system")
    if len(names) != 1 and not any(item.labels.get("k8s-app") == _VCLUSTER_DNS for item in dns):
        return host
    name = names[0] if len(names) == 1 else context
    key = f"teams.{name}"
    desired = replace(host.desired, key=f"{key}.scheduler", queues_key=f"{key}.queues")
    return replace(host, name=name, desired=desired, update="an update of the platform's stack")


def _teams_on(host: Cluster) -> dict[str, DesiredTeam]:
    """The teams that a host has, by the label of their namespaces."""
    return {
        team: DesiredTeam(team, namespace=item.name, path=f"kai-fleet:teams.{team}")
        for item in host.all("namespaces")
        if (team := item.labels.get(TEAM_LABEL))
    }


@dataclass(frozen=True)
class _Access:
    """The kubeconfig of a vCluster, or why there is none: `missing`."""

    kubeconfig: str = field(default="", repr=False)
    missing: str = ""
    foreign: bool = False  # somebody else than the vCluster wrote what is there
    ends: datetime | None = None


def _access(api: Api, host: Cluster, team: DesiredTeam) -> _Access:
    """The kubeconfig that the vCluster itself wrote, at the address that it has from here."""
    if team.granted:
        return _Access()
    name = f"its Secret vc-{team.name}"
    try:
        secret = api.find(f"/api/v1/namespaces/{team.namespace}/secrets/vc-{team.name}")
    except RefusedError as error:
        return _Access(missing=f"{name} cannot be read ({error})")
    except UnreachableError as error:
        return _Access(missing=f"the host does not give its kubeconfig: {error}")
    if secret is None:
        return _Access(missing=f"{name} is not there")
    service = host.named("services", team.name, team.namespace)
    if service is None:
        return _Access(missing=f"its Service {team.name} is not there")
    # The declared type of access where there is one: the tenant can change its Service.
    own = team.access
    access = own.type if own is not None else str(service.spec.get("type"))
    here = "127.0.0.1" if access == "NodePort" else None
    address = address_of(service, access, (own and own.endpoint) or here)
    if address is None:
        return _Access(missing=f"its Service {team.name} has no address")
    try:
        credentials = pieces(secret.get("data") or {})
    except TenantKubeconfigError as error:
        return _Access(missing=f"{name} {error}", foreign=error.foreign)
    content = credentials.kubeconfig(f"https://{address}", team.name)
    return _Access(content, ends=credentials.ends)


def _team(team: DesiredTeam, access: _Access, update: str) -> TeamState:
    """A team with the inside of its vCluster, or why that is not read."""
    state = TeamState(team, None, access.missing, access.ends, update, access.foreign)
    if not access.kubeconfig:
        return state
    kubectl = f"kubectl --kubeconfig {team.name}.kubeconfig"
    blank = Cluster(team.name, team.inside, update=update, kubectl=kubectl)
    try:
        with closing(Api.of_kubeconfig(access.kubeconfig, in_all=SECONDS)) as api:
            inside = read(api, blank)
        # Its tenant's own API server answered these.
        inside = replace(inside, objects=_well_named(inside.objects))
        _ = inside.usage
    except UnreachableError as error:
        return replace(state, unreached=str(error))
    except MALFORMED as error:
        return replace(state, unreached=malformed(error))
    return replace(state, inside=inside)


def _well_named(objects: Mapping[str, Iterable[object]]) -> dict[str, list[dict[str, object]]]:
    return {kind: list(well_named(items)) for kind, items in objects.items()}
