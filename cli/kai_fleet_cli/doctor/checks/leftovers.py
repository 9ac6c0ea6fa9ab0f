"""Checks of what is left over: namespaces that do not go, and what removed teams left.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.terminating import api_service_cause, causes, is_silent, why
from kai_fleet.names import TEAM_LABEL
from kai_fleet_cli.doctor.faults import NAMES, Affected, Faults, join_commands
from kai_fleet_cli.doctor.read import API_SERVICES, READS
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot
from kai_fleet_policies.finding import Fix
from kai_usage.times import seconds_since

STUCK_SECONDS = 120.0  # for a deletion if no condition says what keeps the namespace


def stuck(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield namespaces whose deletion hangs: at once if a cause is known, else after 2 minutes.

    Of what was not read no cause is known.
    """

    def read_objects(group: str, resource: str, namespace: str) -> list[KubeObject]:
        """Return what was read of a resource, in all namespaces for ""; nothing if it was not, or
        if what was read is of another API group.
        """
        path = READS.get(resource, API_SERVICES)
        if f"/{group or 'api'}/" not in path or cluster.unread(resource):
            return []
        return [
            item for item in cluster.all(resource) if not namespace or item.namespace == namespace
        ]

    for namespace in cluster.all("namespaces"):
        deletion_causes = causes(namespace, read_objects, cluster.now)
        deleted = namespace["metadata"].get("deletionTimestamp")
        if not deletion_causes and seconds_since(deleted, cluster.now) < STUCK_SECONDS:
            continue
        commands = [cluster.command(cause.kubectl) for cause in deletion_causes if cause.kubectl]
        look = cluster.command(f"get namespace {namespace.name} -o yaml")
        fix = join_commands(commands, ", then ") or ("look with: ", look)
        keeps = why(namespace, deletion_causes) or "no condition of it says why"
        yield Affected(cluster, "namespace", namespace.name).broken(
            f"is being deleted and does not go: {keeps}", *fix
        )


def api_services(cluster: Cluster, _: Snapshot) -> Faults:
    """Yield warnings for APIServices that do not answer: they keep each namespace that is deleted.

    Nothing if a namespace is being deleted, which `stuck` reports, nor if APIServices were refused,
    which few accounts may read.
    """
    deleting = any(namespace.is_being_deleted for namespace in cluster.all("namespaces"))
    if deleting or cluster.unread("apiservices"):
        return
    for service in cluster.all("apiservices"):
        if not is_silent(service):
            continue
        cause = api_service_cause(service)
        fix: Fix = ("look with: ", cluster.command(f"describe apiservice {service.name}"))
        if cause.kubectl:
            fix = (cluster.command(cause.kubectl),)
        yield Affected(cluster, "APIService", service.name).warning(
            f"{cause.words}; until then no namespace that is deleted goes, a team's not either",
            *fix,
        )


def cluster_roles(host: Cluster, _: Snapshot) -> Faults:
    """Yield warnings for ClusterRoles of vClusters whose namespace was deleted by hand.

    Its chart names them `vc-TEAM-v-NAMESPACE`, and Helm notes the release and its namespace in
    annotations: a name may have `-v-` in itself. Others are left out.
    """
    for role in host.all("clusterroles"):
        release = role.annotations.get("meta.helm.sh/release-name")
        namespace = role.annotations.get("meta.helm.sh/release-namespace", "")
        if role.name != f"vc-{release}-v-{namespace}":
            continue
        if host.find("namespaces", namespace) is None:
            yield Affected(host, "ClusterRole", role.name).warning(
                "is of a vCluster whose namespace is gone",
                host.command(f"delete clusterrole,clusterrolebinding {NAMES} --ignore-not-found"),
            )


def undeclared_namespaces(host: Cluster, _: Snapshot) -> Faults:
    """Yield warnings for namespaces of teams that the stack file does not have, by their label.

    Not those that are being deleted, and nothing for a team's own stack.
    """
    if not host.desired.declared:
        return
    declared = {team.name for team in (*host.desired.teams, *host.desired.grants)}
    for namespace in host.all("namespaces"):
        team = namespace.labels.get(TEAM_LABEL)
        if team is None or team in declared or namespace.is_being_deleted:
            continue
        yield Affected(host, "namespace", namespace.name).warning(
            f"is of team {team}, which is not in the stack's file: another program has the team, or"
            " this stack had it",
            "if this stack had it, put the team back, or its name into kai-fleet:removed, then ",
            host.update_command,
            "; else leave it to whoever has it",
        )
