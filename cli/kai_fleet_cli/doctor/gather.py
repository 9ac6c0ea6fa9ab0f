"""Reading what the checks judge: each API server of a stack within its own time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from kai_fleet.cluster.address import address_of
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, pieces, rebuild
from kai_fleet.fleet.model import HOST, DeclaredCluster, DeclaredTeam
from kai_fleet.guards.policies import QUEUES
from kai_fleet.releases import helm_record
from kai_fleet_cli.doctor.cluster_state import OF_ITS_STACK, ClusterState, Snapshot, TeamState
from kai_fleet_cli.doctor.declared import found_team
from kai_fleet_cli.doctor.identity_provider import is_unanswered
from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import KubeError, RefusedError, UnreachableError
from kubectl_fleet.live.objects import MALFORMED, malformed, well_named
from kubectl_fleet.releases.keys import KAI_NAMESPACE

SECONDS: Final = 10.0  # for everything that is asked of one API server
TEAM_LABEL: Final = "kai-fleet/team"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_KAI: Final = f"namespaces/{KAI_NAMESPACE}"
# What is read of every API server, by kind; a selector keeps the answer small. `{}` is where the
# namespace goes for a user who may list the kind in one only.
READS: Final[Mapping[str, str]] = {
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "pods": "/api/v1/{}pods",
    "services": "/api/v1/{}services",
    "events": "/api/v1/{}events?fieldSelector=type=Warning",
    "bound": "/api/v1/{}events?fieldSelector=reason=Bound",
    "resourcequotas": "/api/v1/{}resourcequotas",
    "networkpolicies": "/apis/networking.k8s.io/v1/{}networkpolicies",
    "validatingadmissionpolicies": f"{_ADMISSION}/validatingadmissionpolicies",
    "validatingadmissionpolicybindings": f"{_ADMISSION}/validatingadmissionpolicybindings",
    "deployments": "/apis/apps/v1/{}deployments",
    "daemonsets": "/apis/apps/v1/{}daemonsets",
    "statefulsets": "/apis/apps/v1/{}statefulsets",
    "replicasets": "/apis/apps/v1/{}replicasets",
    "jobs": "/apis/batch/v1/{}jobs",
    "endpointslices": f"/apis/discovery.k8s.io/v1/{_KAI}/endpointslices",
    "runtimeclasses": "/apis/node.k8s.io/v1/runtimeclasses",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "validatingwebhookconfigurations": f"{_ADMISSION}/validatingwebhookconfigurations",
    "mutatingwebhookconfigurations": f"{_ADMISSION}/mutatingwebhookconfigurations",
    "queues": "/apis/scheduling.run.ai/v2/queues",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2/podgroups",
    "configs": "/apis/kai.scheduler/v1/configs",
    "schedulingshards": "/apis/kai.scheduler/v1/schedulingshards",
    "topologies": "/apis/kai.scheduler/v1alpha1/topologies",
    "releases": f"/api/v1/{_KAI}/secrets?labelSelector=owner=helm,name=kai-scheduler",
    "clusterpolicycrd": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    "?fieldSelector=metadata.name=clusterpolicies.nvidia.com",
}
# Of the host alone: what a control plane waits for. Who may not read it misses a cause only.
_OF_HOST: Final[Mapping[str, str]] = {
    "persistentvolumeclaims": "/api/v1/{}persistentvolumeclaims",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
}
# And where a stack tells Prometheus something.
_OF_MONITORING: Final[Mapping[str, str]] = {
    "podmonitors": "/apis/monitoring.coreos.com/v1/podmonitors"
    "?fieldSelector=metadata.name=kai-fleet"
}
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
# And where groups of an identity provider enter a vCluster.
_OF_GROUPS: Final[Mapping[str, str]] = {
    "clusterrolebindings": f"{_RBAC}/clusterrolebindings",
    "rolebindings": f"{_RBAC}/{{}}rolebindings",
}
# And where an Ingress or a Gateway leads to a vCluster: by the type of access.
_OF_ACCESS: Final[Mapping[str, tuple[str, str]]] = {
    "Ingress": ("ingressclasses", "/apis/networking.k8s.io/v1/ingressclasses"),
    "Gateway": ("gateways", "/apis/gateway.networking.k8s.io/v1/gateways"),
}
_AT_ONCE: Final = 6  # questions to one API server
_CLUSTERS_AT_ONCE: Final = 8
_UNAUTHORIZED, _FORBIDDEN, _ABSENT, _FAILS = 401, 403, 404, 500
_VCLUSTER_DNS: Final = "vcluster-kube-dns"  # the label of the DNS that vCluster brings
_NOT_LET_IN: Final = "it does not accept the credentials (401)"

Heard = Callable[[int, int], None]  # how many clusters have answered, of how many


def no_progress(done: int, of: int) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True)
class ClusterSources:
    """Where to look, and how a stack speaks of it.

    `host` opens the host cluster. `kubeconfigs` asks the stack's state for those of the teams,
    which is slow: it is only asked where the host does not give them. `update` and `team_update`
    say what makes the stack of the host, and that of the teams, as declared. `namespace` is read
    where this user may not list a kind in all. `context` is what a cluster without a stack's file
    is called by. `heard` is told how many of all clusters have answered. `kinds` are those that are
    read, None is all. `seconds` is for each API.
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
    heard: Heard = no_progress
    kinds: frozenset[str] | None = None
    seconds: float = SECONDS


def gather(sources: ClusterSources) -> Snapshot:
    """Everything that the checks want to know. Raises UnreachableError without a host.

    A vCluster that is not reached is a part of the answer.
    """
    blank = ClusterState(HOST, sources.wanted, update=sources.update, kubectl=sources.host_kubectl)
    with closing(sources.host()) as api:
        host = _filled(api, blank, sources.kinds, sources.namespace)
        if sources.teams is None:
            host = _named(host, sources.context)
        teams = _teams_on(host) if sources.teams is None else sources.teams
        teams = {name: it for name, it in teams.items() if sources.only in (None, name)}
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            accesses = {name: pool.submit(_access, api, host, it) for name, it in teams.items()}
            records = {
                name: pool.submit(_records, api, team)
                for name, team in teams.items()
                if sources.kinds is None
            }
            pulling = {
                name: pool.submit(_pull_secrets, api, team)
                for name, team in teams.items()
                if sources.kinds is None
            }
    access_of = {name: it.result() for name, it in accesses.items()}
    if any(access.forbidden for access in access_of.values()):
        known = sources.kubeconfigs()
        for name, access in access_of.items():
            if access.forbidden and name in known:
                access_of[name] = _Access.of_state(known[name])
    sources.heard(1, 1 + len(teams))
    with ThreadPoolExecutor(max_workers=_CLUSTERS_AT_ONCE) as pool:
        states = {
            name: pool.submit(_team, team, access_of[name], sources) for name, team in teams.items()
        }
        for count, _ in enumerate(as_completed(states.values()), 2):
            sources.heard(count, 1 + len(teams))
    return Snapshot(
        host,
        {
            name: replace(
                it.result(),
                records=records[name].result() if records else None,
                pull_secrets=pulling[name].result() if pulling else {},
            )
            for name, it in states.items()
        },
    )


def _filled(
    api: Api,
    blank: ClusterState,
    kinds: frozenset[str] | None,
    namespace: str | None = None,
    more: Mapping[str, str] | None = None,
) -> ClusterState:
    """A cluster with its objects. Raises UnreachableError where it stops answering.

    `kinds` and `namespace` are as in `ClusterSources`; `more` is read besides.
    """
    try:
        api.get("/version")
    except RefusedError as error:
        if error.status == _UNAUTHORIZED:
            raise UnreachableError(_NOT_LET_IN) from None
        if error.status >= _FAILS:
            raise UnreachableError(f"it answers {error}") from None
    reads = {**READS, **(_OF_MONITORING if blank.wanted.monitoring else {}), **(more or {})}
    optional = _optional(blank.wanted) if blank.name == HOST else {}
    reads |= optional
    objects: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        answers = {
            kind: pool.submit(_list, api, path, namespace)
            for kind, path in reads.items()
            if kinds is None or kind in kinds
        }
    for kind, answer in answers.items():
        try:
            objects[kind] = answer.result()
        except RefusedError as error:
            if error.status == _UNAUTHORIZED:
                raise UnreachableError(_NOT_LET_IN) from None
            if error.status != _ABSENT and kind not in optional:
                unreadable[kind] = str(error)
    if kinds is None and not objects and not unreadable:
        raise UnreachableError("what answers there is no Kubernetes API")
    return replace(blank, objects=objects, unreadable=unreadable, now=datetime.now(UTC))


def _optional(wanted: DeclaredCluster) -> dict[str, str]:
    """What is read of the host for a cause alone."""
    types = {team.access.type for team in wanted.virtual_clusters if team.access is not None}
    return {**_OF_HOST, **dict(it for kind, it in _OF_ACCESS.items() if kind in types)}


def _list(api: Api, path: str, namespace: str | None) -> list[Any]:
    """A whole collection in one answer: what pages cost is more than they save."""
    try:
        return api.get(path.format("")).get("items") or []
    except RefusedError as error:
        if error.status != _FORBIDDEN or namespace is None:
            raise
        if path == READS["namespaces"]:
            return [api.get(f"{path}/{namespace}")]
        if "{}" not in path:
            raise
        return api.get(path.format(f"namespaces/{namespace}/")).get("items") or []


def _named(host: ClusterState, context: str) -> ClusterState:
    """A cluster without a stack's file: a host has teams; a vCluster goes by its team's name, which
    its guard has, and its queues are declared at the team's.
    """
    if any(item.labels.get(TEAM_LABEL) for item in host.all("namespaces")):
        return host
    guards = [item.name for item in host.all("validatingadmissionpolicies")]
    names = [name.removeprefix(QUEUES) for name in guards if name.startswith(QUEUES)]
    dns = host.within("deployments", "kube-system")
    if len(names) == 1:
        name = names[0]
    elif any(item.labels.get("k8s-app") == _VCLUSTER_DNS for item in dns):
        name = context  # a vCluster without a guard
    else:
        return host
    wanted = replace(host.wanted, key=f"teams.{name}.scheduler", queues_key=f"teams.{name}.queues")
    return replace(host, name=name, wanted=wanted, update="an update of the platform's stack")


def _teams_on(host: ClusterState) -> dict[str, DeclaredTeam]:
    """The teams that a host has, by the label that this program puts on their namespaces."""
    return {
        team: found_team(team, item.name)
        for item in host.all("namespaces")
        if (team := item.labels.get(TEAM_LABEL))
    }


@dataclass(frozen=True)
class _Access:
    """The kubeconfig of a vCluster, or why there is none: `missing`.

    `forbidden`: this user may not read it. `foreign`: what is in place of it was written by
    somebody else than the vCluster. `ends` is when its certificate does.
    """

    kubeconfig: str = field(default="", repr=False)
    missing: str = ""
    forbidden: bool = False
    foreign: bool = False
    ends: datetime | None = None

    @classmethod
    def of_state(cls, content: str) -> _Access:
        try:
            text, credentials = rebuild(content)
        except TenantKubeconfigError as error:
            return cls(missing=f"its kubeconfig in the stack's state {error}")
        return cls(text, ends=credentials.ends)


def _access(api: Api, host: ClusterState, team: DeclaredTeam) -> _Access:
    """The kubeconfig that the vCluster itself wrote, at the address that it has from here.

    Empty for a vCluster of a stack of its own.
    """
    if team.granted:
        return _Access()
    path = f"/api/v1/namespaces/{team.namespace}/secrets/vc-{team.name}"
    try:
        secret = api.get(path)
    except RefusedError as error:
        if error.status == _ABSENT:
            return _Access(missing=f"its Secret vc-{team.name} is not there")
        missing = f"its Secret vc-{team.name} cannot be read ({error})"
        return _Access(missing=missing, forbidden=True)
    except UnreachableError as error:
        return _Access(missing=f"the host does not tell its kubeconfig: {error}")
    service = host.named("services", team.name, team.namespace)
    if service is None:
        return _Access(missing=f"its Service {team.name} is not there")
    # The declared type of access where there is one: the tenant can change its Service.
    access = str(team.access.type if team.access else service.spec.get("type"))
    declared = team.access.endpoint if team.access else None
    here = "127.0.0.1" if access == "NodePort" else None
    address = address_of(service, access, declared or here)
    if address is None:
        return _Access(missing=f"its Service {team.name} has no address")
    try:
        credentials = pieces(secret.get("data") or {})
    except TenantKubeconfigError as error:
        missing = f"its Secret vc-{team.name} {error}"
        return _Access(missing=missing, foreign=error.foreign)
    content = credentials.kubeconfig(f"https://{address}", team.name)
    return _Access(content, ends=credentials.ends)


def _records(api: Api, team: DeclaredTeam) -> Sequence[helm_record.Forged] | None:
    """Helm's records of its release that the chart did not make; None where they are not read."""
    if team.isolation is not None and not team.isolation.on:
        return None
    path = f"/api/v1/namespaces/{team.namespace}/secrets"
    try:
        secrets = api.list(path, labelSelector=helm_record.SELECTOR.format(team.name))
    except KubeError:
        return None
    return helm_record.forged(secrets, team.name, team.namespace)


def _pull_secrets(api: Api, team: DeclaredTeam) -> dict[str, str]:
    """The types of its Secrets for images; "" of one that is not there. Of others nothing."""
    found: dict[str, str] = {}
    for name in team.image_pull_secrets:
        try:
            secret = api.get(f"/api/v1/namespaces/{team.namespace}/secrets/{name}")
            found[name] = str(secret.get("type"))
        except RefusedError as error:
            if error.status == _ABSENT:
                found[name] = ""
        except UnreachableError:
            break
    return found


def _team(team: DeclaredTeam, access: _Access, sources: ClusterSources) -> TeamState:
    update = sources.team_update or sources.update
    state = TeamState(
        team,
        unreached=access.missing,
        certificate_ends=access.ends,
        update=update,
        foreign=access.foreign,
    )
    if not access.kubeconfig:
        return state
    kubectl = f"kubectl --kubeconfig {team.name}.kubeconfig"
    blank = ClusterState(team.name, team.inside, update=update, kubectl=kubectl)
    try:
        with closing(Api.of_kubeconfig(access.kubeconfig, in_all=sources.seconds)) as api:
            more = _OF_GROUPS if team.groups else {}
            inside = _filled(api, blank, sources.kinds, more=more)
            oidc = team.oidc if sources.kinds is None else None
            unreached = oidc is not None and is_unanswered(api, oidc.issuer)
    except UnreachableError as error:
        return replace(state, unreached=str(error))
    # Its tenant's own API server answered these.
    objects = {kind: list(well_named(items)) for kind, items in inside.objects.items()}
    inside = replace(inside, objects=objects)
    try:
        _ = inside.usage
    except MALFORMED as error:
        return replace(state, unreached=malformed(error))
    return replace(state, inside=inside, provider_unreached=unreached)
