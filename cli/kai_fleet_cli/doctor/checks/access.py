"""Checks of how a team's vCluster is reached: its identity, its kubeconfig, its certificate.

The checks and their helpers raise UnreadError if a list was not read that they need, and one of
MALFORMED for a malformed object.
"""

from datetime import timedelta

from kai_fleet.cluster.tenant_kubeconfig import name_writer, repair_commands
from kai_fleet_cli.diff import lost_vclusters
from kai_fleet_cli.doctor.faults import NAME, Affected, Fault, Faults, join_commands
from kai_fleet_cli.doctor.snapshot import Cluster, Snapshot, TeamState
from kai_fleet_policies.finding import Command
from kai_fleet_policies.model.cluster import DeclaredTeam

_EXPIRES_SOON = timedelta(days=30)


def identity(inside: Cluster, snapshot: Snapshot) -> Faults:
    """Yield a vCluster that is another one than the last update saw: its old content is lost."""
    lost = snapshot.lost.get(inside.name)
    if lost:
        yield Affected(inside, "vCluster", inside.name).broken(
            f"{lost_vclusters.WORDS}{lost}",
            "if there is a backup, restore it; to have this one filled, which asks first: ",
            inside.apply_command,
        )


def kubeconfig(state: TeamState, host: Cluster) -> Faults:
    """Yield a kubeconfig Secret that the vCluster did not write, as broken, or a vCluster whose
    Secret or Service could not be read, as a warning.
    """
    team = state.team
    if state.foreign:
        lines = repair_commands(team.name, team.namespace, host.kubectl, team.store.workload)
        yield Affected(host, "kubeconfig of vCluster", team.name).broken(
            f"{state.unreached}. {name_writer(team.name)}, so nothing in the vCluster was checked",
            "have it written again: ",
            *join_commands(map(Command, lines), ", then "),
        )
    if state.hidden:
        yield Affected(host, "vCluster", team.name).warning(
            f"is not looked at: {state.unreached}",
            "run the doctor again in a minute, or as a user who may read it",
        )


def unreached(state: TeamState, host: Cluster) -> Fault:
    """Return the fault of a vCluster whose control plane is ready and whose API is not reached.

    `state.unreached` says why.
    """
    team = state.team
    return Affected(host, "vCluster", team.name).broken(
        f"its API: {state.unreached}{_access_hint(team)}",
        "look with: ",
        host.command(f"-n {team.namespace} get pods,services,secrets"),
        " and ",
        logs(team, host),
    )


def _access_hint(team: DeclaredTeam) -> str:
    """Return what the type of access needs, to append to why a vCluster was not reached; or ""."""
    access = team.access
    if access is None:
        return ""
    if access.type == "ClusterIP":
        return "; access type ClusterIP is reached from inside the host only"
    if access.routes_by_hostname:
        return (
            f"; {access.endpoint} has to resolve to the {access.type}'s controller, which has to"
            " pass TLS through"
        )
    return ""


def logs(team: DeclaredTeam, host: Cluster) -> Command:
    """Return the command that prints the logs of a team's control plane; of several pods those of
    the one that kubectl picks.
    """
    return host.command(f"-n {team.namespace} logs {team.store.workload}/{team.name}")


def certificate(state: TeamState, snapshot: Snapshot) -> Faults:
    """Yield a client certificate that has expired, or, as a warning, expires within 30 days.

    Nothing if its end is unknown.
    """
    host = snapshot.host
    team = state.team
    ends = state.certificate_ends
    if ends is None or ends > host.now + _EXPIRES_SOON:
        return
    path = team.key_path_of("vcluster", "version")
    fix = (
        "renew it by a restart: ",
        host.command(f"-n {team.namespace} rollout restart {team.store.workload} {NAME}"),
        "; then ",
        snapshot.update_command,
        f". A vCluster renews it from v0.31.3 on: of an older one first raise {path}, one line at a"
        " time",
    )
    subject = Affected(host, "vCluster", team.name)
    day = f"{ends:%Y-%m-%d %H:%M}"
    if ends <= host.now:
        yield subject.broken(f"its certificate expired on {day} UTC: nobody gets in", *fix)
    else:
        yield subject.warning(f"its certificate expires on {day} UTC", *fix)
