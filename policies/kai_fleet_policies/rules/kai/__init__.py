"""Rules about KAI and its values."""

from kai_fleet.fleet.model import DeclaredCluster, DeclaredKai
from kai_fleet.values import at
from kai_fleet_policies.problem import ProblemPlace


def of_kai(release: DeclaredKai, cluster: DeclaredCluster, *keys: str) -> ProblemPlace:
    """For example `KAI of ml`; `keys` are below where it stands."""
    return ProblemPlace(f"KAI of {cluster.name}", at(release.path, *keys))
