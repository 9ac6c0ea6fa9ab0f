"""Who enters a vCluster by an identity provider: its groups' roles, and whether it is reached."""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet.vcluster.oidc import group_roles
from kai_fleet_cli.doctor.cluster_state import ClusterState, Findings, Snapshot, TeamState

KINDS: Final = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "RoleBinding": "rolebindings",
}


def check(snapshot: Snapshot) -> Findings:
    """Every vCluster that has an identity provider; who administers it can change its roles."""
    for team in snapshot.teams.values():
        inside, oidc = team.inside, team.wanted.oidc
        if inside is None or oidc is None:
            continue
        declared = [it for body in group_roles(team.wanted) for it in _unlike(inside, body)]
        found = (*declared, *_unreached(snapshot.host, team, oidc.issuer))
        yield from inside.or_well(found, f"groups of team {team.wanted.name}")


def _unlike(inside: ClusterState, declared: Mapping[str, Any]) -> Findings:
    kind, metadata = declared["kind"], declared["metadata"]
    if KINDS[kind] in inside.unreadable:
        return
    item = inside.named(KINDS[kind], metadata["name"], metadata.get("namespace"))
    where = f" in namespace {metadata['namespace']}" if "namespace" in metadata else ""
    subject = f"{kind} {metadata['name']}{where}"
    if item is None:
        cause = "it is not there: groups may do less than declared"
        yield inside.warning(subject, cause, inside.update)
        return
    fields = ("rules", "roleRef", "subjects")
    changed = [it for it in fields if it in declared and item.get(it) != declared[it]]
    if changed:
        cause = f"it has other {changed[0]} than declared: groups may do something else"
        yield inside.warning(subject, cause, inside.update)


def _unreached(host: ClusterState, team: TeamState, issuer: str) -> Findings:
    if not team.provider_unreached:
        return
    name, namespace = team.wanted.name, team.wanted.namespace
    yield host.warning(
        f"identity provider of team {name}",
        f"the vCluster's API server has no answer from {issuer}, so that no token is taken",
        f"`{host.kubectl} -n {namespace} logs {name}-0 | grep oidc` says why. Where a NetworkPolicy"
        " is between, add the provider's address to isolation.network.cidrs; where its certificate"
        " is of an authority of yours, write that at vcluster.oidc.ca",
    )
