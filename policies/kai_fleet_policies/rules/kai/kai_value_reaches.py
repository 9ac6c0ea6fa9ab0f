"""Values that the chart reads and that do not reach KAI's parts."""

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN, get
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity
from kai_fleet_policies.rules.kai import of_kai

LEVEL = Level.ADVISORY
SEVERITY = Severity.LOW
WHY = (
    "From v0.9 through v0.12 global.nodeSelector and global.imagePullSecrets stop at the operator:"
    " the parts that it makes run anywhere, and pull without credentials (K17)."
)
REMEDY = "Move to v0.13 or newer, or put the pull secret on the namespace's service accounts."
_KEYS = ("nodeSelector", "imagePullSecrets")


def check(cluster: DeclaredCluster) -> Problems:
    """The values of each KAI of a version in which they stop at the operator."""
    for release in cluster.kai:
        known = releases.KAI.get(str(release.version))
        if known is None or known.operands_get_node_selector or release.values is UNKNOWN:
            continue
        if not known.has_operator:
            continue  # there the chart makes every part itself
        to = releases.advised(releases.KAI, known.version)
        remedy = f"move to {to} for it to reach them" if to else "drop it"
        for key in _KEYS:
            if get(release.values, "global", key):
                yield of_kai(release, cluster, "values", "global", key).advisory(
                    f"sets global.{key}, which {known.version} gives to its operator and not to the"
                    f" parts that the operator makes; {remedy}"
                )
        if release.registries:
            yield ProblemPlace(f"KAI of {cluster.name}", "kai-fleet:registries").advisory(
                f"reaches KAI's operator, and in {known.version} not the parts that it makes;"
                f" {remedy}"
            )
