"""Read the API servers of a stack into a snapshot: the host, then every vCluster at once.

All requests are GETs, bounded in time and size. What this user may not read is noted.
"""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Final

import yaml

from kai_fleet.cluster.kube.api import Api, Lists
from kai_fleet.cluster.kube.errors import KubeError, RefusedError, UnreachableError
from kai_fleet.cluster.kube.identity import LOOK_SECONDS, SYSTEM, uid_of
from kai_fleet.cluster.kube.objects import MALFORMED, malformed, well_named
from kai_fleet.cluster.store_use import StoreUse, store_use
from kai_fleet.cluster.tenant_kubeconfig import (
    TenantKubeconfigError,
    address_of,
    kubeconfig_of_secret,
    pieces,
)
from kai_fleet.cluster.terminating import AGGREGATION
from kai_fleet.settings import Settings
from kai_fleet.values import get
from kai_fleet_cli.diff import another
from kai_fleet_cli.doctor.required import required_objects
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState, UnreadError
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import SECONDS, context_of, opener, pulumi_output, variables_of
from kai_fleet_cli.recovery.state import KnownVcluster, State, of_export
from kai_fleet_cli.stack_file.reading import settings_of
from kai_fleet_policies.model.cluster import HOST, Team
from kai_fleet_policies.model.declared import host_of

_STORE_SECONDS: Final = 4.0  # for kubelets and etcds of all teams, which may be away
_CLUSTERS_AT_ONCE: Final = 8
_REQUESTS_AT_ONCE: Final = 6  # to one API server
# Of a vCluster, to be judged and drawn. KAI is run with some hundred queues on two to four levels.
_MOST_QUEUES: Final = 5000
_MOST_LEVELS: Final = 32
_API_SERVICES: Final = f"/apis/{AGGREGATION}/v1/apiservices"
# The path of each kind, by its plural.
READS: Final[Mapping[str, str]] = yaml.safe_load((files(__package__) / "reads.yaml").read_bytes())


@dataclass(frozen=True)
class Source:
    """A stack, and how its host is read.

    Args:
        host: Opens the host's API server.
        known: Reads the stack's state; an empty one where it cannot be read.
        only: The one team to read; None for all.
        update: The command that updates the host; `team_update` is that of a team's own stack.
    """

    settings: Settings
    host: Callable[[], Api]
    known: Callable[[], State] = State
    only: str | None = None
    kubectl: str = "kubectl"
    update: str = "an update of its stack"
    team_update: str = "an update of its stack"


def of_stack(stack: str, only: str | None = None, context: str | None = None) -> Source:
    """The clusters of a stack. Raises UserError for a stack, or a team of it, that is not there."""
    settings = settings_of(stack)
    names = (*settings.teams, *settings.team_stacks)
    if only not in (None, *names):
        known = ", ".join(names) or "none"
        raise UserError(f"stack {stack} has no team {only}; its teams: {known}")
    where = context_of(settings, context)
    variables = variables_of(settings, where)
    host = opener(stack, settings, where)
    update = "`.venv/bin/fleet up --refresh --stack {}`"
    # The host of a team's own stack is as the platform's stack declares it.
    platform = settings.platform_stack.rpartition("/")[2] or stack
    of_host = f"--context {shlex.quote(where)}" if where else "--kubeconfig <the host's>"
    kubectl = f"kubectl {of_host}"
    commands = (kubectl, update.format(platform), update.format(stack))
    return Source(settings, host, partial(_state, stack, variables), only, *commands)


def _state(stack: str, variables: Mapping[str, str]) -> State:
    """The stack's state; an empty one where it cannot be read."""
    try:
        return of_export(json.loads(pulumi_output(stack, variables, "stack", "export")))
    except (OSError, ValueError, subprocess.SubprocessError):
        return State()


def uids(source: Source, known: Mapping[str, KnownVcluster]) -> dict[str, str]:
    """The UIDs of the vClusters that answer where the last update saw them, by name.

    Of a vCluster that does not answer, and of all where the host does not, nothing is said.
    """
    if not known:
        return {}
    try:
        with closing(source.host()) as host, ThreadPoolExecutor(_CLUSTERS_AT_ONCE) as pool:
            found = pool.map(lambda item: _uid(host, *item), known.items())
            return {name: uid for name, uid in zip(known, found, strict=True) if uid}
    except KubeError:
        return {}


def _uid(host: Api, name: str, vcluster: KnownVcluster) -> str:
    path = f"/api/v1/namespaces/{vcluster.namespace}/secrets/vc-{name}"
    try:
        content = kubeconfig_of_secret(host.get(path).get("data") or {}, vcluster.server, name)
        with closing(Api.of_kubeconfig(content, total_seconds=LOOK_SECONDS)) as inside:
            return uid_of(inside)
    except (KubeError, TenantKubeconfigError):
        return ""


def read_clusters(source: Source, ahead: Iterable[str] = ()) -> Snapshot:
    """Read every cluster; `ahead` of an update these kinds of the host alone.

    A vCluster that does not answer is part of the result, a host raises UnreachableError.
    """
    settings = source.settings
    on_host = host_of(settings)
    every = (*on_host.teams, *on_host.grants)
    teams = {team.name: team for team in every if source.only in (None, team.name)}
    required = tuple(required_objects(settings, on_host, teams))
    kubectl = source.kubectl
    blank = Cluster(HOST, on_host, update=source.update, kubectl=kubectl, host=kubectl)
    own = f"team-{next(iter(settings.teams))}" if settings.platform_stack else None
    with closing(source.host()) as api:
        host = _read(api, blank, own, {kind: READS[kind] for kind in ahead or READS})
        if ahead:
            states = {name: TeamState(team) for name, team in teams.items()}
            return Snapshot(settings, host, states, required, source.team_update, ahead=True)
        with ThreadPoolExecutor(max_workers=_REQUESTS_AT_ONCE) as pool:
            accesses = list(pool.map(lambda team: _access(api, host, team), teams.values()))
            api.begin(_STORE_SECONDS)
            stores = list(pool.map(lambda access: _store(api, host, access[0]), accesses))
        with_stores = zip(accesses, stores, strict=True)
        accesses = [(replace(state, store=store), own) for (state, own), store in with_stores]

    with ThreadPoolExecutor(max_workers=_CLUSTERS_AT_ONCE) as pool:
        known = pool.submit(source.known)
        read = pool.map(lambda access: _with_inside(access, source), accesses)
        states = dict(zip(teams, read, strict=True))
        lost = another.losses(known.result(), _uids(states))
    return Snapshot(settings, host, states, required, source.team_update, lost=lost)


def _uids(states: Mapping[str, TeamState]) -> dict[str, str]:
    """The UIDs of the vClusters that were read."""
    found: dict[str, str] = {}
    for name, state in states.items():
        if state.inside is None or state.inside.unread("namespaces"):
            continue
        uid = get(state.inside.named("namespaces", SYSTEM), "metadata", "uid")
        if isinstance(uid, str):
            found[name] = uid
    return found


def _read(api: Api, blank: Cluster, namespace: str | None, kinds: Mapping[str, str]) -> Cluster:
    """A cluster with its objects; those of one `namespace` where this user may not list all.

    Raises UnreachableError where it stops answering.
    """
    _, refused = api.lists({"version": "/version"}, 1)
    for error in refused.values():
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnreachableError(f"it answers {error}")
    objects, refused = api.lists(kinds, _REQUESTS_AT_ONCE)
    partial: dict[str, str] = {}
    if kinds.keys() == READS.keys():
        with suppress(RefusedError):  # few accounts may: it says why others' namespaces do not go
            objects["apiservices"] = api.list(_API_SERVICES)
    if namespace is not None:
        denied = [kind for kind, error in refused.items() if error.status == HTTPStatus.FORBIDDEN]
        own = _of_namespace(api, denied, namespace)
        partial = dict.fromkeys(own, namespace)
        objects |= own
    absent = {kind for kind, error in refused.items() if error.status == HTTPStatus.NOT_FOUND}
    unreadable = {
        kind: str(error)
        for kind, error in refused.items()
        if kind not in absent and kind not in partial
    }
    if not objects and not unreadable:
        raise UnreachableError("what answers there is no Kubernetes API")
    objects |= {kind: [] for kind in absent}
    return replace(
        blank,
        objects=objects,
        unreadable=unreadable,
        now=datetime.now(UTC),
        unserved=frozenset(absent),
        partial=partial,
    )


def _of_namespace(api: Api, kinds: Iterable[str], namespace: str) -> Lists:
    """The objects of one namespace, of those kinds that this user may list there."""
    inside = {kind: READS[kind] for kind in kinds if "{}" in READS[kind]}
    own, _ = api.lists(inside, _REQUESTS_AT_ONCE, namespace)
    if "namespaces" in kinds:
        with suppress(RefusedError):
            own["namespaces"] = [api.get(f"{READS['namespaces']}/{namespace}")]
    return own


def _access(api: Api, host: Cluster, team: Team) -> tuple[TeamState, str]:
    """A team, and the kubeconfig that its vCluster wrote at the address that it has from here; ""
    where there is none, or the vCluster is another stack's.
    """
    state, secret_name = TeamState(team), f"its Secret vc-{team.name}"
    if state.granted:
        return state, ""
    try:
        secret = api.find(f"/api/v1/namespaces/{team.namespace}/secrets/vc-{team.name}")
        service = host.named("services", team.name, team.namespace)
        if secret is None or service is None:
            absent = f"its Service {team.name}" if secret else secret_name
            return replace(state, unreached=f"{absent} is not there"), ""
        # The declared type of access: the tenant can change its Service.
        access = team.access.type if team.access else "NodePort"
        here = "127.0.0.1" if access == "NodePort" else None
        address = address_of(service, access, (team.access and team.access.endpoint) or here)
        if address is None:
            return replace(state, unreached=f"its Service {team.name} has no address"), ""
        credentials = pieces(secret.get("data") or {})
    except RefusedError as error:
        why = f"{secret_name} cannot be read ({error})"
        return replace(state, unreached=why, hidden=True), ""
    except UnreadError as error:
        why = f"its Service {team.name} cannot be read: {error}"
        return replace(state, unreached=why, hidden=True), ""
    except UnreachableError as error:
        why = f"the host does not give its kubeconfig: {error}"
        return replace(state, unreached=why, hidden=True), ""
    except TenantKubeconfigError as error:
        return replace(state, unreached=f"{secret_name} {error}", foreign=True), ""
    content = credentials.kubeconfig(f"https://{address}", team.name)
    return replace(state, certificate_ends=credentials.ends), content


def _store(api: Api, host: Cluster, state: TeamState) -> StoreUse:
    """How full the store of a team's vCluster is, as the host tells."""
    if state.granted:
        return StoreUse()
    try:
        pods = state.control_plane_pods(host)
    except UnreadError:
        return StoreUse()
    nodes = {str(pod.spec.get("nodeName") or "") for pod in pods}
    return store_use(api, state.team.name, state.team.store, sorted(nodes - {""}))


def _with_inside(access: tuple[TeamState, str], source: Source) -> TeamState:
    """A team with the inside of its vCluster, or why that is not read."""
    state, kubeconfig = access
    name, kubectl = state.team.name, f"kubectl --kubeconfig {state.team.name}.kubeconfig"
    blank = Cluster(name, state.team.inside, update=source.team_update, kubectl=kubectl)
    blank = replace(blank, host=source.kubectl)
    if not kubeconfig:
        return state
    try:
        with closing(Api.of_kubeconfig(kubeconfig, total_seconds=SECONDS)) as api:
            inside = _read(api, blank, None, READS)
        # Its tenant's own API server answered these.
        objects = {kind: list(well_named(items)) for kind, items in inside.objects.items()}
        inside = replace(inside, objects=objects)
        with suppress(UnreadError):
            _require_drawable(inside)
            _ = inside.usage
    except UnreachableError as error:
        return replace(state, unreached=str(error))
    except MALFORMED as error:
        return replace(state, unreached=malformed(error))
    return replace(state, inside=inside)


def _require_drawable(inside: Cluster) -> None:
    """Raise UnreachableError for more queues, or levels of them, than are judged."""
    count = len(inside.all("queues"))
    if count > _MOST_QUEUES:
        raise UnreachableError(f"it has {count} queues; at most {_MOST_QUEUES} are judged")
    levels = max(inside.tree.levels.values(), default=0)
    if levels > _MOST_LEVELS:
        raise UnreachableError(
            f"its queues have {levels} levels; at most {_MOST_LEVELS} are judged. Have the team"
            " hang them higher"
        )
