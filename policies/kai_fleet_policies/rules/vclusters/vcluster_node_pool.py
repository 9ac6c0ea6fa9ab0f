"""A control plane that is on no other team's nodes."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, Problems, Severity, called
from kai_fleet_policies.rules.teams import claims, labels
from kai_fleet_policies.rules.vclusters import of_vcluster

LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = (
    "Pods of the team whose nodes these are can fill them, and another team's API server with its"
    " Secrets runs beside them."
)
REMEDY = (
    "Write the labels of nodes of no team; or leave nodePool of vcluster out: then each control"
    " plane is on its own team's nodes."
)


def check(cluster: DeclaredCluster) -> Problems:
    """The nodes of each control plane against the node pools of the other teams."""
    pools = [(team.name, team.node_pool) for team in claims(cluster)]
    known = [(name, pool) for name, pool in pools if pool and pool is not UNKNOWN]
    for team in cluster.teams:
        place = team.control_pool
        if place == team.node_pool:
            continue
        for owner, pool in known:
            if owner != team.name and pool.items() <= place.items():
                yield of_vcluster(team, "nodePool").advisory(
                    f"would run on {labels(place)}, the nodes of team {called(owner)}; write"
                    " the labels of nodes of no team, or drop the key: then the team's own nodes"
                    " run it"
                )
                break
