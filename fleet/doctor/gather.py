"""Reading what the checks judge: each API server of a stack within its own time."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import yaml
from cryptography import x509

from components.kubeconfig import NoKubeconfig, of_secret
from fleet.api_reader import SECONDS, Reader, Refused, Unreachable
from fleet.doctor.objects import Object, labels_of, name_of, namespace_of, spec
from fleet.doctor.seen import Look, Seen, TeamSeen
from fleet.doctor.wanted import HOST, Wanted, WantedTeam, found_team
from policies.model import KAI_NAMESPACE

TEAM_LABEL: Final = "kai-fleet/team"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_KAI: Final = f"/namespaces/{KAI_NAMESPACE}"
# What is asked of every API server: plural, path, and a selector that keeps the answer small.
_KINDS: Final[tuple[tuple[str, str, dict[str, str]], ...]] = (
    ("nodes", "/api/v1/nodes", {}),
    ("namespaces", "/api/v1/namespaces", {}),
    ("pods", "/api/v1/pods", {}),
    ("services", "/api/v1/services", {}),
    ("events", "/api/v1/events", {"fieldSelector": "type=Warning"}),
    ("bound", "/api/v1/events", {"fieldSelector": "reason=Bound"}),
    ("resourcequotas", "/api/v1/resourcequotas", {}),
    ("deployments", "/apis/apps/v1/deployments", {}),
    ("statefulsets", "/apis/apps/v1/statefulsets", {"labelSelector": "app=vcluster"}),
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
_CLUSTER_POLICIES: Final = (
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpolicies.nvidia.com"
)
_UNAUTHORIZED, _ABSENT, _FAILS = 401, 404, 500
_NOT_LET_IN: Final = "it does not accept the credentials (401)"


@dataclass(frozen=True)
class Sources:
    """Where to look, and how a stack speaks of it.

    `host` opens the host cluster. `kubeconfigs` asks the stack's state for those of the teams,
    which is slow: it is only asked where the host does not give them. `seconds` is for each API.
    """

    host: Callable[[], Reader]
    wanted: Wanted = field(default_factory=Wanted)
    teams: Mapping[str, WantedTeam] | None = None
    only: str | None = None
    kubeconfigs: Callable[[], Mapping[str, str]] = dict
    update: str = "pulumi up"
    host_kubectl: str = "kubectl"
    seconds: float = SECONDS


def gather(sources: Sources) -> Look:
    """Everything that the checks want to know. Raises Unreachable where the host is not reached.

    A vCluster that is not reached is a part of the answer.
    """
    reader = sources.host()
    try:
        host = see(reader, HOST, sources.wanted, sources.update, sources.host_kubectl)
        teams = dict(sources.teams) if sources.teams is not None else _found(host)
        if sources.only is not None:
            teams = {name: team for name, team in teams.items() if name == sources.only}
        ways = {name: _way_in(reader, host, team) for name, team in teams.items()}
    finally:
        reader.close()
    if any(not way.kubeconfig and way.forbidden for way in ways.values()):
        known = sources.kubeconfigs()
        ways = {
            name: _Way(kubeconfig=known[name]) if name in known and not way.kubeconfig else way
            for name, way in ways.items()
        }
    with ThreadPoolExecutor(max_workers=8) as pool:
        seen = pool.map(lambda name: _team(teams[name], ways[name], sources), teams)
        return Look(host, dict(zip(teams, seen, strict=True)))


def see(reader: Reader, name: str, wanted: Wanted, update: str, kubectl: str) -> Seen:
    """One API server. Raises Unreachable when it does not answer, or stops answering."""
    try:
        reader.get("/version")
    except Refused as why:
        if why.status == _UNAUTHORIZED:
            raise Unreachable(_NOT_LET_IN) from None
        if why.status >= _FAILS:
            raise Unreachable(f"it answers {why.status} {why}") from None
    objects: dict[str, Any] = {}
    unreadable: dict[str, str] = {}
    for kind, path, query in _KINDS:
        try:
            objects[kind] = reader.list(path, **query)
        except Refused as why:
            if why.status == _UNAUTHORIZED:
                raise Unreachable(_NOT_LET_IN) from None
            if why.status != _ABSENT:
                unreadable[kind] = f"{why.status} {why}"
    try:
        objects["clusterpolicycrd"] = [reader.get(_CLUSTER_POLICIES)]
    except Refused as why:
        if why.status != _ABSENT:
            unreadable["clusterpolicycrd"] = f"{why.status} {why}"
        else:
            objects["clusterpolicycrd"] = []
    return Seen(name, wanted, objects, unreadable, datetime.now(UTC), update, kubectl)


@dataclass(frozen=True)
class _Way:
    """How to a vCluster: its kubeconfig, or why there is none."""

    kubeconfig: str = ""
    missing: str = ""
    forbidden: bool = False


def _found(host: Seen) -> dict[str, WantedTeam]:
    """The teams that a host has, by the label that this program puts on their namespaces."""
    return {
        team: found_team(team, name_of(item))
        for item in host.all("namespaces")
        if (team := labels_of(item).get(TEAM_LABEL))
    }


def _way_in(reader: Reader, host: Seen, team: WantedTeam) -> _Way:
    """The kubeconfig that the vCluster itself wrote, at the address that it has from here."""
    path = f"/api/v1/namespaces/{team.namespace}/secrets/vc-{team.name}"
    try:
        secret = reader.get(path)
    except Refused as why:
        if why.status == _ABSENT:
            return _Way(missing=f"its Secret vc-{team.name} is not there")
        return _Way(missing=f"its Secret vc-{team.name} cannot be read ({why})", forbidden=True)
    except Unreachable as why:
        return _Way(missing=f"the host does not tell its kubeconfig: {why}")
    service = host.named("services", team.name, team.namespace)
    if service is None:
        return _Way(missing=f"its Service {team.name} is not there")
    address = _address(service, team)
    if address is None:
        return _Way(missing=f"its Service {team.name} has no address")
    try:
        return _Way(of_secret(secret.get("data") or {}, f"https://{address}"))
    except NoKubeconfig as why:
        return _Way(missing=f"its Secret vc-{team.name} {why}")


def _address(service: Object, team: WantedTeam) -> str | None:
    ports = spec(service).get("ports") or [{}]
    host = team.access.host if team.access else None
    match spec(service).get("type"):
        case "NodePort":
            port = ports[0].get("nodePort")
            return f"{host or '127.0.0.1'}:{port}" if port else None
        case "LoadBalancer":
            ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
            given = next((entry.get("hostname") or entry.get("ip") for entry in ingress), None)
            return f"{host or given}:{ports[0].get('port')}" if given else None
    return f"{name_of(service)}.{namespace_of(service)}.svc:{ports[0].get('port')}"


def _team(team: WantedTeam, way: _Way, sources: Sources) -> TeamSeen:
    if not way.kubeconfig:
        return TeamSeen(team, unreached=way.missing)
    ends = _certificate_end(way.kubeconfig)
    kubectl = f"kubectl --kubeconfig {team.name}.kubeconfig"
    try:
        reader = Reader.of_kubeconfig(way.kubeconfig, sources.seconds)
    except Unreachable as why:
        return TeamSeen(team, unreached=str(why), certificate_ends=ends)
    try:
        inside = see(reader, team.name, team.inside, sources.update, kubectl)
    except Unreachable as why:
        return TeamSeen(team, unreached=str(why), certificate_ends=ends)
    finally:
        reader.close()
    return TeamSeen(team, inside, certificate_ends=ends)


def _certificate_end(kubeconfig: str) -> datetime | None:
    """When the first client certificate of a kubeconfig runs out; None where there is none."""
    try:
        users = yaml.safe_load(kubeconfig).get("users") or []
        data = next(
            user["user"]["client-certificate-data"]
            for user in users
            if "client-certificate-data" in user.get("user", {})
        )
        return x509.load_pem_x509_certificate(base64.b64decode(data)).not_valid_after_utc
    except (StopIteration, KeyError, TypeError, ValueError, AttributeError, yaml.YAMLError):
        return None
