"""vCluster names are unique on a host."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called, of_team
from kai_fleet_policies.rules.teams import claims

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "vCluster tells its pods from the others' by its name alone, in all namespaces: two of one name"
    " count each other's pods as their own (V9)."
)
REMEDY = "Give each vCluster on the host a name of its own."


def check(cluster: DeclaredCluster) -> Problems:
    """The names of all vClusters on one host, and of those that team stacks may make."""
    first: dict[str, str] = {}
    for team in claims(cluster):
        place = ProblemPlace(f"vCluster {called(team.name)} in {cluster.name}", team.path)
        namespace = called(team.namespace) if team.namespace else "default"
        if team.name is UNKNOWN:
            yield place.undecided("its name is known")
        elif team.name in first and team.granted:
            yield of_team(team).mandatory(
                "is granted to a team stack and is a team of this stack too; drop one of the two"
                " (to give a running team its own stack, remove it first: docs/team-stacks.md)"
            )
        elif team.name in first and team.own_stack:
            yield of_team(team, "name").mandatory(
                f"is a team of the platform stack {cluster.platform} already; write another name,"
                f" or take it out of kai-fleet:teams there"
            )
        elif team.name in first:
            yield place.mandatory(
                f"is declared in namespace {namespace} and again in {first[team.name]}: names are"
                f" unique on a host; write another name, for example {team.name}-2"
            )
        else:
            first[team.name] = namespace
