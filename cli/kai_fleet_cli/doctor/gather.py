"""Reading what the checks judge: each API server of a stack within its own time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from kai_fleet.cluster.address import address_of
from kai_fleet.cluster.tenant_kubeconfig import (
    TenantKubeconfigError,
    pieces,
    rebuild,
)
from kai_fleet.guards.policies import QUEUES
from kai_fleet.kai.keys import KAI_NAMESPACE
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, RefusedError, UnreachableError
from kai_fleet.releases import helm_record
from kai_fleet_cli.doctor.cluster_state import OF_ITS_STACK, ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.declared import HOST, DeclaredCluster, DeclaredTeam, found_team
from kai_fleet_cli.doctor.objects import Object, labels_of, name_of, spec
from kai_fleet_cli.doctor.tenant_objects import ODD, named_well, odd

TEAM_LABEL: Final = "kai-fleet/team"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_KAI: Final = f"/namespaces/{KAI_NAMESPACE}"
# What is asked of every API server: plural, path, and a selector that keeps the answer small.
_Question = tuple[str, str, dict[str, str]]
_KINDS: Final[tuple[_Question, ...]] = (
    ("nodes", "/api/v1/nodes", {}),
    ("namespaces", "/api/v1/namespaces", {}),
    ("pods", "/api/v1/pods", {}),
    ("services", "/api/v1/services", {}),
    ("events", "/api/v1/events", {"fieldSelector": "type=Warning"}),
    ("bound", "/api/v1/events", {"fieldSelector": "reason=Bound"}),
    ("resourcequotas", "/api/v1/resourcequotas", {}),
    ("networkpolicies", "/apis/networking.k8s.io/v1/networkpolicies", {}),
    ("validatingadmissionpolicies", f"{_ADMISSION}/validatingadmissionpolicies", {}),
    ("validatingadmissionpolicybindings", f"{_ADMISSION}/validatingadmissionpolicybindings", {}),
    ("deployments", "/apis/apps/v1/deployments", {}),
    ("daemonsets", "/apis/apps/v1/daemonsets", {}),
    ("statefulsets", "/apis/apps/v1/statefulsets", {}),
    ("replicasets", "/apis/apps/v1/replicasets", {}),
    ("jobs", "/apis/batch/v1/jobs", {}),
    ("endpointslices", f"/apis/discovery.k8s.io/v1{_KAI}/endpointslices", {}),
    ("runtimeclasses", "/apis/node.k8s.io/v1/runtimeclasses", {}),
    ("clusterroles", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {}),
    ("validatingwebhookconfigurations", f"{_ADMISSION}/validatingwebhookconfigurations", {}),
    ("mutatingwebhookconfigurations", f"{_ADMISSION}/mutatingwebhookconfigurations", {}),
    ("queues", "/apis/scheduling.run.ai/v2/queues", {}),
    ("podgroups", "/apis/scheduling.run.ai/v2alpha2/podgroups", {}),
    ("configs", "/apis/kai.scheduler/v1/configs", {}),
    ("schedulingshards", "/apis/kai.scheduler/v1/schedulingshards", {}),
    ("topologies", "/apis/kai.scheduler/v1alpha1/topologies", {}),
    ("releases", f"/api/v1{_KAI}/secrets", {"labelSelector": "owner=helm,name=kai-scheduler"}),
)
# What is asked besides where a stack tells Prometheus something.
_OF_MONITORING: Final[tuple[_Question, ...]] = (
    (
        "podmonitors",
        "/apis/monitoring.coreos.com/v1/podmonitors",
        {"fieldSelector": "metadata.name=kai-fleet"},
    ),
)
# Where a user may list these in one namespace only, that is asked.
_NAMESPACED: Final = frozenset(
    {"pods", "services", "events", "bound", "resourcequotas", "networkpolicies", "deployments"}
    | {"daemonsets", "statefulsets", "replicasets", "jobs"}
)
_CLUSTER_POLICIES: Final = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com"
)
_AT_ONCE: Final = 6  # questions to one API server
SECONDS: Final = 10.0  # for everything that is asked of one API server
_UNAUTHORIZED, _FORBIDDEN, _ABSENT, _FAILS = 401, 403, 404, 500
_VCLUSTER_DNS: Final = "vcluster-kube-dns"  # the label of the DNS that vCluster brings
OF_THE_PLATFORM: Final = "an update of the platform's stack"
_NOT_LET_IN: Final = "it does not accept the credentials (401)"


Heard = Callable[[int, int], None]  # how many clusters have answered, of how many


def nobody(done: int, of: int) -> None:
    """Who is told nothing."""


@dataclass(frozen=True)
class Sources:
    """Where to look, and how a stack speaks of it.

    `host` opens the host cluster. `kubeconfigs` asks the stack's state for those of the teams,
    which is slow: it is only asked where the host does not give them. `update` and `team_update`
    say what makes the stack of the host, and that of the teams, as declared. `seconds` is for each
    API. `context` is what a cluster without a stack's file is called by. `heard` is told how many
    of all clusters have answered. `kinds` are those that are asked for, None is all.
    """

    host: Callable[[], Api]
    wanted: DeclaredCluster = field(default_factory=DeclaredCluster)
    teams: Mapping[str, DeclaredTeam] | None = None
    only: str | None = None
    kubeconfigs: Callable[[], Mapping[str, str]] = dict
    update: str = OF_ITS_STACK
    team_update: str = ""
    host_kubectl: str = "kubectl"
    namespace: str | None = None
    context: str = ""
    heard: Heard = nobody
    kinds: frozenset[str] | None = None
    seconds: float = SECONDS


def gather(sources: Sources) -> Snapshot:
    """Everything that the checks want to know. Raises UnreachableError for the host.

    A vCluster that is not reached is a part of the answer.
    """
    reader = sources.host()
    try:
        host = see(
            reader,
            HOST,
            sources.wanted,
            sources.update,
            sources.host_kubectl,
            sources.namespace,
            sources.kinds,
        )
        if sources.teams is None:
            host = own_name(host, sources.context)
        teams = dict(sources.teams) if sources.teams is not None else _found(host)
        if sources.only is not None:
            teams = {name: team for name, team in teams.items() if name == sources.only}
        asked_for = [team for team in teams.values() if not team.granted]
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            found = pool.map(lambda team: _way_in(reader, host, team), asked_for)
            ways = {team.name: way for team, way in zip(asked_for, found, strict=True)}
            records: dict[str, Sequence[helm_record.Forged] | None] = {}
            if sources.kinds is None:
                judged = pool.map(lambda team: _records(reader, team), teams.values())
                records = dict(zip(teams, judged, strict=True))
    finally:
        reader.close()
    if any(way.forbidden for way in ways.values()):
        known = sources.kubeconfigs()
        ways = {
            name: _Way.of_state(known[name]) if name in known and way.forbidden else way
            for name, way in ways.items()
        }
    sources.heard(1, 1 + len(teams))
    with ThreadPoolExecutor(max_workers=8) as pool:
        asked = {
            pool.submit(_team, team, ways.get(name), sources): name for name, team in teams.items()
        }
        for count, _ in enumerate(as_completed(asked), 2):
            sources.heard(count, 1 + len(teams))
    done = {name: each.result() for each, name in asked.items()}
    return Snapshot(host, {n: replace(it, records=records.get(n)) for n, it in done.items()})


def see(
    reader: Api,
    name: str,
    wanted: DeclaredCluster,
    update: str,
    kubectl: str,
    namespace: str | None = None,
    kinds: frozenset[str] | None = None,
) -> ClusterState:
    """One API server. Raises UnreachableError when it does not answer, or stops answering.

    `namespace` is asked for what this user may not list in all. `kinds` is as in `Sources`.
    """
    try:
        reader.get("/version")
    except RefusedError as why:
        if why.status == _UNAUTHORIZED:
            raise UnreachableError(_NOT_LET_IN) from None
        if why.status >= _FAILS:
            raise UnreachableError(f"it answers {why}") from None
    objects: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        every = [*_KINDS, *(_OF_MONITORING if wanted.monitoring else ())]
        questions = [asked for asked in every if kinds is None or asked[0] in kinds]
        answers = pool.map(lambda asked: _answer(reader, asked, namespace), questions)
        for (kind, _, _), answer in zip(questions, answers, strict=True):
            if not isinstance(answer, RefusedError):
                objects[kind] = answer
            elif answer.status == _UNAUTHORIZED:
                raise UnreachableError(_NOT_LET_IN)
            elif answer.status != _ABSENT:
                unreadable[kind] = str(answer)
    if kinds is None:
        try:
            found = reader.find(_CLUSTER_POLICIES)
            objects["clusterpolicycrd"] = [] if found is None else [found]
        except RefusedError as why:
            unreadable["clusterpolicycrd"] = str(why)
    return ClusterState(name, wanted, objects, unreadable, datetime.now(UTC), update, kubectl)


def _answer(reader: Api, asked: _Question, namespace: str | None) -> list[Object] | RefusedError:
    try:
        return _listed(reader, *asked, namespace)
    except RefusedError as why:
        return why


def _listed(
    reader: Api, kind: str, path: str, query: dict[str, str], namespace: str | None
) -> list[Object]:
    """A whole collection in one answer: what pages cost is more than they save."""
    try:
        return reader.get(path, **query).get("items") or []
    except RefusedError as why:
        if why.status != _FORBIDDEN or namespace is None:
            raise
        if kind == "namespaces":
            return [reader.get(f"{path}/{namespace}")]
        if kind not in _NAMESPACED:
            raise
        above, _, plural = path.rpartition("/")
        return reader.get(f"{above}/namespaces/{namespace}/{plural}", **query).get("items") or []


@dataclass(frozen=True)
class _Way:
    """How to a vCluster: its kubeconfig, or why there is none. `foreign`: what is in place of it
    was written by somebody else. `ends` is when its certificate does.
    """

    kubeconfig: str = field(default="", repr=False)
    missing: str = ""
    forbidden: bool = False
    foreign: bool = False
    ends: datetime | None = None

    @classmethod
    def of_state(cls, content: str) -> _Way:
        try:
            text, found = rebuild(content)
        except TenantKubeconfigError as why:
            return cls(missing=f"its kubeconfig in the stack's state {why}")
        return cls(text, ends=found.ends)


def own_name(host: ClusterState, context: str) -> ClusterState:
    """A cluster without a stack's file: a host has teams; a vCluster goes by its team's name, which
    its guard has, and its queues are declared at the team's.
    """
    if any(labels_of(item).get(TEAM_LABEL) for item in host.all("namespaces")):
        return host
    guards = [name_of(item) for item in host.all("validatingadmissionpolicies")]
    named = [name.removeprefix(QUEUES) for name in guards if name.startswith(QUEUES)]
    dns = host.within("deployments", "kube-system")
    if len(named) == 1:
        name = named[0]
    elif any(labels_of(item).get("k8s-app") == _VCLUSTER_DNS for item in dns):
        name = context  # a vCluster without a guard
    else:
        return host
    wanted = replace(host.wanted, key=f"teams.{name}.scheduler", queues_key=f"teams.{name}.queues")
    return replace(host, name=name, wanted=wanted, update=OF_THE_PLATFORM)


def _found(host: ClusterState) -> dict[str, DeclaredTeam]:
    """The teams that a host has, by the label that this program puts on their namespaces."""
    return {
        team: found_team(team, name_of(item))
        for item in host.all("namespaces")
        if (team := labels_of(item).get(TEAM_LABEL))
    }


def _way_in(reader: Api, host: ClusterState, team: DeclaredTeam) -> _Way:
    """The kubeconfig that the vCluster itself wrote, at the address that it has from here."""
    path = f"/api/v1/namespaces/{team.namespace}/secrets/vc-{team.name}"
    try:
        secret = reader.get(path)
    except RefusedError as why:
        if why.status == _ABSENT:
            return _Way(missing=f"its Secret vc-{team.name} is not there")
        return _Way(missing=f"its Secret vc-{team.name} cannot be read ({why})", forbidden=True)
    except UnreachableError as why:
        return _Way(missing=f"the host does not tell its kubeconfig: {why}")
    service = host.named("services", team.name, team.namespace)
    if service is None:
        return _Way(missing=f"its Service {team.name} is not there")
    # The declared type of access where there is one: the tenant can change its Service.
    access = str(team.access.type if team.access else spec(service).get("type"))
    given = team.access.host if team.access else None
    here = "127.0.0.1" if access == "NodePort" else None
    address = address_of(service, access, given or here)
    if address is None:
        return _Way(missing=f"its Service {team.name} has no address")
    try:
        found = pieces(secret.get("data") or {})
    except TenantKubeconfigError as why:
        return _Way(missing=f"its Secret vc-{team.name} {why}", foreign=why.foreign)
    return _Way(found.kubeconfig(f"https://{address}", team.name), ends=found.ends)


def _records(reader: Api, team: DeclaredTeam) -> Sequence[helm_record.Forged] | None:
    """Helm's records of its release that the chart did not make; None where they are not read."""
    if team.isolation is not None and not team.isolation.on:
        return None
    path = f"/api/v1/namespaces/{team.namespace}/secrets"
    try:
        found = reader.list(path, labelSelector=helm_record.SELECTOR.format(team.name))
    except KubeError:
        return None
    return helm_record.forged(found, team.name, team.namespace)


def _team(team: DeclaredTeam, way: _Way | None, sources: Sources) -> TeamState:
    update = sources.team_update or sources.update
    if way is None or not way.kubeconfig:
        foreign = way is not None and way.foreign
        said = way.missing if way else ""
        return TeamState(team, unreached=said, update=update, foreign=foreign)
    ends = way.ends
    kubectl = f"kubectl --kubeconfig {team.name}.kubeconfig"
    try:
        with closing(Api.of_kubeconfig(way.kubeconfig, in_all=sources.seconds)) as reader:
            seen = see(reader, team.name, team.inside, update, kubectl, kinds=sources.kinds)
    except UnreachableError as why:
        return TeamState(team, unreached=str(why), certificate_ends=ends, update=update)
    # Its tenant's own API server said so.
    inside = replace(seen, objects={kind: named_well(it) for kind, it in seen.objects.items()})
    try:
        _ = inside.usage
    except ODD as why:
        return TeamState(team, unreached=odd(why), certificate_ends=ends, update=update)
    return TeamState(team, inside, certificate_ends=ends, update=update)
