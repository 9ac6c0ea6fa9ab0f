"""Looking at all API servers of a stack: the host, then each vCluster by the way that it tells."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Self

from kai_fleet.cluster.service_address import address_of
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError, pieces, rebuild
from kai_fleet.fleet.model import HOST, DeclaredCluster, DeclaredTeam
from kai_fleet.guards.policies import QUEUES, TEAM_LABEL
from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError, RefusedError, UnreachableError
from kai_fleet.kube.objects import MALFORMED, malformed, well_named
from kai_fleet.releases import helm_record
from kai_fleet.wording import on_one_line
from kai_fleet_cli.doctor.cluster_state import (
    AT_ONCE,
    OF_ITS_STACK,
    ClusterState,
    Snapshot,
    TeamState,
    read,
)

SECONDS: Final = 10.0  # for everything that is asked of one API server
_CLUSTERS_AT_ONCE: Final = 8
_VCLUSTER_DNS: Final = "vcluster-kube-dns"  # the label of the DNS that vCluster brings
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_NO_PROVIDER: Final = "oidc: authenticator not initialized"

Heard = Callable[[int, int], None]  # how many clusters have answered, of how many


def no_progress(done: int, of: int) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True)
class ClusterSources:
    """Where to look, and how a stack speaks of it.

    `host` opens the host cluster. `teams` are those to look at, None is those that the host has,
    and of these `only` one. `kubeconfigs` asks the stack's state for those of the teams, which is
    slow: it is only asked where the host does not give them. `update` and `team_update` say what
    makes the stack of the host, and that of the teams, as declared. `namespace` is read where this
    user may not list a kind in all. `context` is what a cluster without a stack's file is called
    by. `heard` is told how many of all clusters have answered.
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


def gather(sources: ClusterSources) -> Snapshot:
    """Everything that the checks want to know. Raises UnreachableError without a host.

    A vCluster that is not reached is a part of the answer.
    """
    blank = ClusterState(HOST, sources.wanted, update=sources.update, kubectl=sources.host_kubectl)
    with closing(sources.host()) as api:
        host = read(api, blank, sources.namespace)
        teams = sources.teams
        if teams is None:
            host = _named(host, sources.context)
            teams = _teams_on(host)
        teams = {name: it for name, it in teams.items() if sources.only in (None, name)}
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            accesses = pool.map(lambda team: _access(api, host, team), teams.values())
            outside = pool.map(lambda team: _outside(api, team, sources), teams.values())
    ways = dict(zip(teams, accesses, strict=True))
    known = sources.kubeconfigs() if any(way.forbidden for way in ways.values()) else {}
    for name, way in ways.items():
        if way.forbidden and name in known:
            ways[name] = _Access.of_state(known[name])
    sources.heard(1, 1 + len(teams))
    with ThreadPoolExecutor(max_workers=_CLUSTERS_AT_ONCE) as pool:
        states = {
            it.wanted.name: pool.submit(_team, it, ways[it.wanted.name], sources) for it in outside
        }
        for count, _ in enumerate(as_completed(states.values()), 2):
            sources.heard(count, 1 + len(teams))
    return Snapshot(host, {name: it.result() for name, it in states.items()})


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
        team: DeclaredTeam(team, namespace=item.name, path=f"kai-fleet:teams.{team}")
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
    def of_state(cls, content: str) -> Self:
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
    try:
        secret = api.find(f"/api/v1/namespaces/{team.namespace}/secrets/vc-{team.name}")
    except RefusedError as error:
        missing = f"its Secret vc-{team.name} cannot be read ({error})"
        return _Access(missing=missing, forbidden=True)
    except UnreachableError as error:
        return _Access(missing=f"the host does not tell its kubeconfig: {error}")
    if secret is None:
        return _Access(missing=f"its Secret vc-{team.name} is not there")
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


def _outside(api: Api, team: DeclaredTeam, sources: ClusterSources) -> TeamState:
    """A team by what the host has of it."""
    return TeamState(
        team,
        update=sources.team_update or sources.update,
        records=_records(api, team),
        pull_secrets=_pull_secrets(api, team),
    )


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
            secret = api.find(f"/api/v1/namespaces/{team.namespace}/secrets/{name}")
            found[name] = "" if secret is None else on_one_line(str(secret.get("type")))
        except RefusedError:
            continue
        except UnreachableError:
            break
    return found


def _team(state: TeamState, access: _Access, sources: ClusterSources) -> TeamState:
    """The same with the inside of its vCluster, or why that is not reached."""
    state = replace(
        state, unreached=access.missing, certificate_ends=access.ends, foreign=access.foreign
    )
    if not access.kubeconfig:
        return state
    team, kubectl = state.wanted, f"kubectl --kubeconfig {state.wanted.name}.kubeconfig"
    blank = ClusterState(team.name, team.inside, update=state.update, kubectl=kubectl)
    try:
        with closing(Api.of_kubeconfig(access.kubeconfig, in_all=SECONDS)) as api:
            inside = read(api, blank, groups=bool(team.groups))
            unanswered = team.oidc is not None and is_unanswered(api, team.oidc.issuer)
    except UnreachableError as error:
        return replace(state, unreached=str(error))
    # Its tenant's own API server answered these.
    objects = {kind: list(well_named(items)) for kind, items in inside.objects.items()}
    inside = replace(inside, objects=objects)
    try:
        _ = inside.usage
    except MALFORMED as error:
        return replace(state, unreached=malformed(error))
    return replace(state, inside=inside, provider_unreached=unanswered)


def is_unanswered(api: Api, issuer: str) -> bool:
    """Whether a vCluster's API server waits for the identity provider of that issuer still; False
    where it does not tell.

    It says so of any token of the issuer, also of one that nobody signed.
    """
    header, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "RS256"}, {"iss": issuer})
    )
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": f"{header}.{body}.bm9uZQ"},
    }
    try:
        status = api.post(_REVIEWS, review).get("status")
    except KubeError:
        return False
    return isinstance(status, dict) and _NO_PROVIDER in str(status.get("error", ""))
