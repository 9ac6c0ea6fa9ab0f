"""Read the API servers of a stack into a snapshot: the host, then all vClusters at once.

All requests are GETs, bounded in time and size. A resource that this user may not read is recorded
with the reason, and raises nothing here.
"""

import json
import shlex
import subprocess
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus

from kai_fleet.cluster.kube.api import Api, Lists
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, UnreachableError
from kai_fleet.cluster.kube.identity import SYSTEM, uid_at
from kai_fleet.cluster.kube.objects import MALFORMED, malformed, well_named
from kai_fleet.cluster.store_use import store_use
from kai_fleet.cluster.tenant_kubeconfig import (
    Pieces,
    TenantKubeconfigError,
    address_of,
    pieces,
)
from kai_fleet.cluster.terminating import AGGREGATION
from kai_fleet.releases import table
from kai_fleet.values import get
from kai_fleet_cli.diff import lost_vclusters
from kai_fleet_cli.doctor.required import required_objects
from kai_fleet_cli.doctor.snapshot import UPDATE, Cluster, Snapshot, TeamState, UnreadError
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import SECONDS, HostAddress, host_address, pulumi_output
from kai_fleet_cli.recovery.state import KnownVcluster, State, of_export
from kai_fleet_cli.stack_file.reading import settings_of
from kai_fleet_policies.finding import Command
from kai_fleet_policies.model.cluster import HOST, ClusterModel, DeclaredTeam
from kai_fleet_stack.declared import host_of
from kai_fleet_stack.settings import Settings

_STORE_SECONDS = 4.0  # for the kubelets and etcds of all teams together
_CLUSTERS_AT_ONCE = 8
_REQUESTS_AT_ONCE = 6  # to one API server
# Bounds for a vCluster's queues, which are judged and drawn. KAI is run with some hundred queues on
# two to four levels.
_MOST_QUEUES = 5000
_MOST_LEVELS = 32
# Few accounts may read them. They tell why namespaces of others are not deleted.
API_SERVICES = f"/apis/{AGGREGATION}/v1/apiservices"
# The API path of each resource.
READS: Mapping[str, str] = table("reads", __package__)


@dataclass(frozen=True)
class Source:
    """A stack, and how to read its clusters.

    Args:
        settings: The settings of the stack.
        host: Opens the host's API server; the caller closes it. Raises UnreachableError, also for
            an unusable kubeconfig.
        read_state: Reads the stack's state; gives an empty one if it cannot be read.
        team: The one team to read; None for all. A name that the stack does not have: no team.
        kubectl: The kubectl command for the host, as fixes show it: without a context it has a
            placeholder for the kubeconfig.
        update_command: The command that updates the host; for a team's own stack the platform's.
        team_update_command: The command that updates what is in vClusters.
    """

    settings: Settings
    host: Callable[[], Api]
    read_state: Callable[[], State] = State
    team: str | None = None
    kubectl: str = "kubectl"
    update_command: Command = UPDATE
    team_update_command: Command = UPDATE


def source_of_stack(stack: str, team: str | None = None, context: str | None = None) -> Source:
    """Return how to read a stack's clusters. No cluster is asked yet.

    Raises UserError if there is no such stack or team, if `settings_of` refuses the stack file, or
    if its sandbox does not run or is not installed.

    Args:
        stack: Name of the stack.
        team: The one team to read; None for all.
        context: Context of the host's kubeconfig; None or "" for what the stack file says.
    """
    settings = settings_of(stack)
    teams = settings.all_teams
    if team not in (None, *teams):
        names = ", ".join(teams) or "none"
        raise UserError(f"stack {stack} has no team {team}; its teams: {names}")
    address = host_address(stack, settings, context)
    # The stack of the platform declares the host, for a team's own stack, too.
    platform = settings.platform_stack.rpartition("/")[2] or stack
    flag = "--kubeconfig <the host's>"
    if address.context:
        flag = f"--context {shlex.quote(address.context)}"
    return Source(
        settings=settings,
        host=address.open,
        read_state=partial(_state, address),
        team=team,
        kubectl=f"kubectl {flag}",
        update_command=_update_command(platform),
        team_update_command=_update_command(stack),
    )


def _update_command(stack: str) -> Command:
    """Return the command that updates a stack, and refreshes it first to see changes by hand."""
    return Command(f".venv/bin/fleet up --refresh --stack {stack}")


def _state(address: HostAddress) -> State:
    """Return the stack's state, which Pulumi exports; an empty one if it cannot be read.

    So it is for JSON of another form.
    """
    try:
        exported = pulumi_output(address.stack, address.variables, "stack", "export")
        return of_export(json.loads(exported))
    except (OSError, subprocess.SubprocessError, *MALFORMED):
        return State()


def vcluster_uids(source: Source, known: Mapping[str, KnownVcluster]) -> dict[str, str]:
    """Return the UIDs of vClusters by name, each asked at the address that the last update used.

    Without those that do not answer within 3 seconds, or whose Secret the host does not give or
    vCluster did not write. The result is empty if the host's kubeconfig is of no use.
    """
    if not known:
        return {}
    try:
        with closing(source.host()) as host, ThreadPoolExecutor(_CLUSTERS_AT_ONCE) as pool:
            answers = pool.map(partial(_uid, host), known.keys(), known.values())
            uids_or_empty = dict(zip(known, answers, strict=True))
    except KubeError:
        return {}
    return {name: uid for name, uid in uids_or_empty.items() if uid}


def _uid(host: Api, name: str, vcluster: KnownVcluster) -> str:
    """Return the UID of a vCluster; "" if the host gives no Secret, or `uid_at` no UID."""
    path = f"/api/v1/namespaces/{vcluster.namespace}/secrets/vc-{name}"
    try:
        secret = host.get(path)
    except KubeError:
        return ""
    return uid_at(vcluster.server, secret.get("data") or {})


def read_clusters(source: Source, resources_before_update: Collection[str] = ()) -> Snapshot:
    """Read the host and the vClusters of the source's teams, or before an update only some
    resources of the host.

    A vCluster that does not answer is part of the result. A state that cannot be read is taken for
    an empty one: then no vCluster counts as lost.

    Args:
        source: How to read the clusters.
        resources_before_update: The host's resources to read before an update, keys of READS; then
            no vCluster is read. Empty: all resources, and the vClusters.

    Raises:
        UnreachableError: The host's kubeconfig is of no use, or `_read` refuses the host.
        One of MALFORMED: Objects of the host are malformed, or the state has a wait that kai-fleet
            did not write.
    """
    settings = source.settings
    declared = host_of(settings)
    teams = {
        team.name: team
        for team in (*declared.teams, *declared.grants)
        if source.team in (None, team.name)
    }
    resources = resources_before_update or READS
    with closing(source.host()) as api:
        paths = {resource: READS[resource] for resource in resources}
        host = _read_host(api, source, declared, paths)
        snapshot = Snapshot(
            settings,
            host,
            teams={name: TeamState(team) for name, team in teams.items()},
            required=tuple(required_objects(settings, declared, teams)),
            update_command=source.team_update_command,
            before_update=bool(resources_before_update),
        )
        if resources_before_update:
            return snapshot
        states = _states(api, host, teams.values())
    with ThreadPoolExecutor(max_workers=_CLUSTERS_AT_ONCE) as pool:
        state = pool.submit(source.read_state)
        read = pool.map(lambda team: _with_inside(team, source), states)
        by_name = dict(zip(teams, read, strict=True))
        lost = lost_vclusters.lost_contents(state.result(), _uids(by_name))
    return replace(snapshot, teams=by_name, lost=lost)


def _read_host(
    api: Api,
    source: Source,
    declared: ClusterModel,
    paths: Mapping[str, str],
) -> Cluster:
    """Return the host with the objects at these paths, API paths by resource.

    A team's own stack reads what it may not list everywhere in the team's namespace. Raises
    UnreachableError as `_read`.
    """
    namespace = None
    if source.settings.platform_stack:
        namespace = str(declared.teams[0].namespace)
    blank = Cluster(
        name=HOST,
        desired=declared,
        update_command=source.update_command,
        kubectl=source.kubectl,
        host_kubectl=source.kubectl,
    )
    return _read(api, blank, namespace, paths)


def _states(api: Api, host: Cluster, teams: Iterable[DeclaredTeam]) -> list[TeamState]:
    """Return the state of each team, in the order of `teams`.

    The states are without inside, and say how full the stores are. The requests for that, and all
    later ones of `api`, have `_STORE_SECONDS` together. Raises one of MALFORMED for malformed
    objects of the host.
    """
    with ThreadPoolExecutor(max_workers=_REQUESTS_AT_ONCE) as pool:
        states = list(pool.map(partial(_access, api, host), teams))
        api.restart_limits(_STORE_SECONDS)
        return list(pool.map(partial(_with_store, api, host), states))


def _uids(states: Mapping[str, TeamState]) -> dict[str, str]:
    """Return the UIDs of the vClusters whose namespaces were read and have a UID, by name."""
    uids_by_name = dict[str, str]()
    for name, state in states.items():
        if state.inside is None or state.inside.unread("namespaces"):
            continue
        uid = get(state.inside.find("namespaces", SYSTEM), "metadata", "uid")
        if isinstance(uid, str):
            uids_by_name[name] = uid
    return uids_by_name


def _read(
    api: Api,
    blank: Cluster,
    namespace: str | None,
    paths: Mapping[str, str],
) -> Cluster:
    """Return a cluster with its objects: an empty list for a resource that the API does not serve.

    Raises UnreachableError if the API server stops answering, refuses the credentials (401),
    answers its version with a server error, or is not Kubernetes'.

    Args:
        api: The API server.
        blank: The cluster without objects.
        namespace: The namespace to read where this user may not list all; None: that is unreadable.
        paths: API paths by resource. With all of READS, APIServices are read as well.
    """
    _require_healthy(api)
    objects, refused = api.lists(paths, _REQUESTS_AT_ONCE)
    if paths.keys() == READS.keys():
        with suppress(RefusedError):
            objects["apiservices"] = api.list(API_SERVICES)
    partial = dict[str, str]()
    if namespace is not None:
        partial_objects = _of_namespace(api, refused, namespace)
        partial = dict.fromkeys(partial_objects, namespace)
        objects |= partial_objects
    absent = _refused_with(refused, HTTPStatus.NOT_FOUND)
    unreadable = {
        resource: str(error)
        for resource, error in refused.items()
        if resource not in absent and resource not in objects
    }
    if not objects and not unreadable:
        raise UnreachableError("what answers there is no Kubernetes API")
    for resource in absent:
        objects[resource] = []
    return replace(
        blank,
        objects=objects,
        unreadable=unreadable,
        now=datetime.now(UTC),
        unserved=frozenset(absent),
        partial=partial,
    )


def _require_healthy(api: Api) -> None:
    """Ask for the version of the API server, which may refuse to give it.

    Raises UnreachableError if it does not answer, refuses the credentials (401), or answers with a
    server error.
    """
    _, refused = api.lists({"version": "/version"}, 1)
    for error in refused.values():
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnreachableError(f"it answers {error}")


def _refused_with(refused: Mapping[str, RefusedError], status: HTTPStatus) -> list[str]:
    """Return the resources whose list was refused with this HTTP status."""
    return [resource for resource, error in refused.items() if error.status == status]


def _of_namespace(api: Api, refused: Mapping[str, RefusedError], namespace: str) -> Lists:
    """Return the objects of forbidden keys of READS that this user may list in one namespace.

    For `namespaces` that is the namespace itself. Other cluster-scoped resources are left out, and
    those that are refused in the namespace, too.

    Raises UnreachableError if the API server stops answering, or refuses the credentials (401).
    """
    resources = _refused_with(refused, HTTPStatus.FORBIDDEN)
    paths = {resource: READS[resource] for resource in resources if "{}" in READS[resource]}
    objects, _ = api.lists(paths, _REQUESTS_AT_ONCE, namespace)
    if "namespaces" in resources:
        with suppress(RefusedError):
            objects["namespaces"] = [api.get(f"{READS['namespaces']}/{namespace}")]
    return objects


class _NoAccessError(Exception):
    """An object that leads to a vCluster is absent, or gives no address. The message says which."""


def _access(api: Api, host: Cluster, team: DeclaredTeam) -> TeamState:
    """Return a team's state, with the kubeconfig of its vCluster, still without inside and store.

    The kubeconfig's server is the vCluster's address from here. The kubeconfig is "" if another
    stack declares the vCluster, of which the state says nothing more, or if it cannot be built:
    then the state's `unreached` says why, and `foreign` or `hidden` may be set.

    Raises one of MALFORMED for malformed objects of the host.
    """
    state = TeamState(team)
    if state.declared_elsewhere:
        return state
    try:
        credentials, address = _credentials_and_address(api, host, team)
    except _NoAccessError as error:
        return replace(state, unreached=str(error))
    except TenantKubeconfigError as error:
        why = f"its Secret vc-{team.name} {error}"
        return replace(state, unreached=why, foreign=True)
    except RefusedError as error:
        hidden = f"its Secret vc-{team.name} cannot be read ({error})"
    except UnreadError as error:
        hidden = f"its Service {team.name} cannot be read: {error}"
    except UnreachableError as error:
        hidden = f"the host does not give its kubeconfig: {error}"
    else:
        kubeconfig = credentials.kubeconfig(f"https://{address}", team.name)
        return replace(state, certificate_ends=credentials.expires, kubeconfig=kubeconfig)
    return replace(state, unreached=hidden, hidden=True)


def _credentials_and_address(api: Api, host: Cluster, team: DeclaredTeam) -> tuple[Pieces, str]:
    """Return what the vCluster wrote into its Secret, and `HOST:PORT` of its Service.

    Raises:
        _NoAccessError: The Secret or the Service is absent, or the Service gives no address.
        RefusedError: The host refuses to give the Secret, other than by 404.
        UnreachableError: The host does not answer.
        UnreadError: The Services were not read.
        TenantKubeconfigError: Somebody else than the vCluster wrote the Secret. It completes "its
            Secret vc-NAME".
        One of MALFORMED: The Secret or the Service is malformed.

    Without a declared endpoint a NodePort is asked at 127.0.0.1.
    """
    secret = api.find(f"/api/v1/namespaces/{team.namespace}/secrets/vc-{team.name}")
    service = host.find("services", team.name, team.namespace)
    if secret is None:
        raise _NoAccessError(f"its Secret vc-{team.name} is not there")
    if service is None:
        raise _NoAccessError(f"its Service {team.name} is not there")
    # The declared type of access counts: the tenant can change the Service.
    access_type = team.access.type if team.access else "NodePort"
    endpoint = team.access.endpoint if team.access else None
    if not endpoint and access_type == "NodePort":
        endpoint = "127.0.0.1"
    address = address_of(service, access_type, endpoint or None)
    if address is None:
        raise _NoAccessError(f"its Service {team.name} has no address")
    return pieces(secret.get("data") or {}), address


def _with_store(api: Api, host: Cluster, state: TeamState) -> TeamState:
    """Return a team's state with how full the store of its vCluster is; as it was if the host does
    not tell, or if another stack declares the vCluster. Raises one of MALFORMED for a malformed
    pod.
    """
    if state.declared_elsewhere:
        return state
    try:
        pods = state.control_plane_pods(host)
    except UnreadError:
        return state
    nodes = {str(pod.spec.get("nodeName") or "") for pod in pods}
    store = store_use(api, state.team.name, state.team.store, sorted(nodes - {""}))
    return replace(state, store=store)


def _with_inside(state: TeamState, source: Source) -> TeamState:
    """Return a team's state with the inside of its vCluster, or with why that was not read.

    It is as it was without a kubeconfig. Objects and labels whose names Kubernetes does not allow
    are left out. A vCluster counts as not read if an object of COUNTED is malformed, or if it has
    too many queues or levels of them. What this user may not list there is not judged so.
    """
    if not state.kubeconfig:
        return state
    blank = Cluster(
        name=state.team.name,
        desired=state.team.inside,
        update_command=source.team_update_command,
        kubectl=f"kubectl --kubeconfig {state.team.name}.kubeconfig",
        host_kubectl=source.kubectl,
    )
    try:
        with closing(Api.of_kubeconfig(state.kubeconfig, total_seconds=SECONDS)) as api:
            inside = _read(api, blank, None, READS)
        # The tenant's API server may send names that no Kubernetes allows.
        objects = {resource: list(well_named(items)) for resource, items in inside.objects.items()}
        inside = replace(inside, objects=objects)
        with suppress(UnreadError):
            _require_countable(inside)
    except UnreachableError as error:
        return replace(state, unreached=str(error))
    except MALFORMED as error:
        return replace(state, unreached=malformed(error))
    return replace(state, inside=inside)


def _require_countable(inside: Cluster) -> None:
    """Count the pods and queues of a vCluster, so that malformed ones are noticed here.

    Raises UnreachableError for more than 5000 queues, or for more than 32 levels of them and of the
    declared ones; UnreadError if one of COUNTED was not read; and one of MALFORMED.
    """
    count = len(inside.all("queues"))
    if count > _MOST_QUEUES:
        raise UnreachableError(f"it has {count} queues; at most {_MOST_QUEUES} are judged")
    levels = max(inside.tree.levels.values(), default=0)
    if levels > _MOST_LEVELS:
        raise UnreachableError(
            f"its queues have {levels} levels; at most {_MOST_LEVELS} are judged. Have the team"
            " hang them higher"
        )
    _ = inside.usage
