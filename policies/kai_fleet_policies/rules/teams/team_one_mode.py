"""A host has one KAI for all its teams, or teams with a KAI each, never both."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity, called, of_team

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "Each start of a host's KAI deletes the running GPU-share pods of every KAI inside a vCluster"
    " of that host, and its admission breaks their new ones (V14)."
)
REMEDY = "Move all teams to one mode; default goes with both."


def check(cluster: DeclaredCluster) -> Problems:
    """Teams in virtual mode against the host's own KAI and the teams that use it.

    What a team stack runs is not known here: a grant without a queue of the host gets a warning.
    """
    host_teams = [called(t.name) for t in cluster.teams if t.mode == "host"]
    on_host = [
        f"KAI {called(release.version) if release.version else '(no version)'} on the host"
        for release in cluster.kai
    ]
    if host_teams:
        on_host.append(f"the host mode of {listed(host_teams)}")
    virtual = [t for t in cluster.teams if t.mode == "virtual"]
    for team in cluster.teams:
        place = of_team(team, "scheduler", "mode")
        if team.mode == "virtual" and on_host:
            yield place.mandatory(
                f"runs a KAI of its own beside {listed(on_host, 'and')}: each start of the host's"
                " KAI would delete this team's running pods; write mode host (or default) here, or"
                " take KAI off the host and give every team mode virtual"
            )
        elif team.mode is UNKNOWN and (on_host or virtual):
            yield place.undecided("its scheduler mode is known")
    for grant in () if cluster.platform else cluster.grants:
        if on_host and grant.parent_queue is None:
            yield of_team(grant).advisory(
                f"may have a stack of its own, which is not seen here, beside {on_host[0]}: if it"
                " runs in mode virtual, that KAI deletes its running pods; write parentQueue: for"
                " mode host, or make sure that it is in mode default"
            )
