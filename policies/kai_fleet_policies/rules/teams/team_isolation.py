"""Isolation that is off is a warning, and refused for a team with a stack of its own."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import at
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called, of_team

LEVEL = Level.ADVISORY
SEVERITY = Severity.CRITICAL
WHY = (
    "Without it, whoever holds the kubeconfig of the team's vCluster is root on its nodes with one"
    " pod, and sees every GPU there (T1, T2). The account of a team's own stack makes pods on the"
    " host itself, and no cluster role, which the vCluster's chart would bring then (T9)."
)
REMEDY = (
    "Write isolation: {level: baseline}, or drop level: off. Run a team that is meant to be open in"
    " the platform's stack."
)


def check(cluster: DeclaredCluster) -> Problems:
    """Teams, and grants of team stacks, whose isolation is off."""
    for team in cluster.teams:
        if team.level == "off":
            place = ProblemPlace(f"team {called(team.name)}", team.written_at("isolation", "level"))
            yield place.advisory(
                "is off: nothing on the host but a quota of GPUs keeps the team from the nodes, the"
                " GPUs and the pods of others; write baseline"
            )
    for grant in () if cluster.platform else cluster.grants:
        if grant.level == "off":
            yield of_team(grant, "isolation", "level").mandatory(
                "is off, and the team has a stack of its own: its account could not install the"
                " vCluster, whose chart brings a cluster role then, and with one pod it would be"
                f" root on the nodes; write {at(grant.path, 'isolation')}: {{level: baseline}}, or"
                f" run the team in this stack, under kai-fleet:teams.{grant.name}"
            )
