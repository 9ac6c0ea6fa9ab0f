"""Only KAI versions of the release table."""

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.kai import of_kai

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Charts differ by version in names, hooks and defects, and the highest tag, v0.20.1, is a"
    " retracted one (K1)."
)
REMEDY = "Write one of the versions that the message names."


def check(cluster: DeclaredCluster) -> Problems:
    """The version of each KAI in the cluster."""
    for release in cluster.kai:
        place, version = of_kai(release, cluster, "version"), release.version
        if version is UNKNOWN:
            yield place.undecided("its version is known")
        elif not version:
            begin = releases.advised(releases.KAI) or list(releases.KAI)[-1]
            yield place.mandatory(
                "has no version, and the highest published one (v0.20.1) is retracted;"
                f" write version: {begin}"
            )
        elif release.untested and (known := releases.taken_for(releases.KAI, version)):
            yield place.advisory(
                f"is {version}, which nobody tried with this program; it is taken for {known}"
            )
        elif version not in releases.KAI:
            yield place.mandatory(_message(version))


def _message(version: str) -> str:
    if f"v{version}" in releases.KAI:
        return f"has version {version}, and KAI's chart versions keep their v; write v{version}"
    retracted = ", which is retracted (its chart is that of v0.10.2)"
    why = retracted if version.removeprefix("v") == "0.20.1" else ", which is not supported here"
    write = releases.instead(releases.KAI, version)
    return f"has version {version}{why}; write {write} (all: {', '.join(releases.KAI)})"
