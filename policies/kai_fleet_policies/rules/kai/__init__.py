"""Rules about KAI and its values."""

from kai_fleet.fleet.model import DeclaredCluster, DeclaredKai
from kubectl_fleet.rules.problem import ProblemPlace
from kubectl_fleet.values import at


def of_kai(release: DeclaredKai, cluster: DeclaredCluster, *keys: str) -> ProblemPlace:
    """For example `KAI of ml`; `keys` are below where it stands."""
    return ProblemPlace(f"KAI of {cluster.name}", at(release.path, *keys))
