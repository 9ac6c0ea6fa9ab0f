"""Rules about access to a vCluster's API: host names, annotations and identity providers."""

import re
from collections.abc import Sequence

from kai_fleet.releases.allowed_values import READ
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.rules.rule import Findings, Subject, advisory, each_vcluster, mandatory

_READ = READ["every"]["annotations"]
_NGINX = "nginx.ingress.kubernetes.io/"
_HARMLESS_ANNOTATIONS = re.compile("|".join(_READ["own"]))
_HOST_ANNOTATIONS = re.compile("|".join(_READ["names"]))


@mandatory("vcluster-access", "critical", each_vcluster)
def vcluster_access(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """Each vCluster's API has a host name to itself, and its annotations take nothing of others.

    Ingresses and Gateways route a name to whoever claims it, so one team would answer the
    clients of another. Annotations make controllers share load balancers, take addresses and run
    configuration: a team may write those of a list, the platform all others. Without TLS
    passthrough nobody gets in: the client's certificate ends at the proxy.
    """
    access = team.access
    if access is None:
        return  # also from resources
    # A finding for the name, at the later of two teams, and one for each annotation.
    host = (access.host or "").lower()
    teams_before = cluster.teams[: cluster.teams.index(team)]
    other = _team_at(host, teams_before)
    if other is not None and access.type != "NodePort":
        domain = host.partition(".")[2]
        if "." not in domain:
            domain = host
        yield subject.at("access.host").refuse(
            f"is {host}, where team {other.name} is reached already: clients of the one would come"
            " to the other",
            f"write another name, such as {team.name}.{domain}",
        )
    for annotation, value in access.annotations.items():
        reason = _why_annotation_refused(team, annotation, str(value), host)
        if reason is not None:
            yield subject.at("access.annotations").refuse(
                f"has {annotation}, which {reason}",
                "drop it, or have the platform write it in kai-fleet:vcluster.access.annotations,"
                " or its domain in kai-fleet:keyDomains",
            )


def _team_at(host: str, teams: Sequence[TeamModel]) -> TeamModel | None:
    """The last of the teams whose API is reached by this name, which is in small letters.

    None if there is none, or for the name "". Node ports do not count: there the port decides.
    """
    for team in reversed(teams):
        access = team.access
        if not host or access is None or access.type == "NodePort":
            continue
        if (access.host or "").lower() == host:
            return team
    return None


def _why_annotation_refused(
    team: TeamModel,
    annotation: str,
    value: str,
    host: str,
) -> str | None:
    """Why an annotation of an API whose name is `host` is refused; None if it is allowed.

    The text completes "has X, which"; the first reason counts. `host` is in small letters, "" for
    none. Only TLS passthrough is judged for a team that is not isolated.
    """
    if annotation == f"{_NGINX}ssl-passthrough" and value.lower() != "true":
        return "ends TLS before the API, and nobody is let in"
    if not team.isolated:
        return None
    if _HOST_ANNOTATIONS.fullmatch(annotation):
        names = value.lower().split(",")
        if all(name.strip().rstrip(".") == host for name in names):
            return None
        return "asks for a name that is not access.host, the API's own"
    if annotation in team.own_annotations and not _HARMLESS_ANNOTATIONS.fullmatch(annotation):
        return "is none of those that take nothing of other teams"
    return None


@advisory("vcluster-provider-reached", "high", each_vcluster)
def vcluster_provider_reached(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """A vCluster's API server reaches its identity provider.

    It reads the provider's keys before it takes a token: where network policies keep it away,
    nobody gets in by an account of the provider, and nothing but its log says why.
    """
    if not team.unreached_issuer:
        return
    cidrs = team.key_path_of("isolation", "network", "cidrs")
    yield subject.at("oidc", "issuer").warn(
        f"is {team.unreached_issuer}, which its API server does not reach: with"
        " isolation.network.apiCidrs it reaches these addresses, and what its pods reach",
        f"write the provider's address at {cidrs}, such as [10.20.0.10/32]",
    )
