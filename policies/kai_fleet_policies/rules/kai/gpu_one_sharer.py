"""GPUs are shared by KAI or by the device plugin, not by both."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.releases import DISABLED
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Time-slicing and MPS make the device plugin advertise more GPUs than there are; KAI then"
    " splits those once more, and pods run out of GPU memory (W9)."
)
REMEDY = "Take the sharing section out of the device plugin's config, or switch KAI's sharing off."


def check(cluster: DeclaredCluster) -> Problems:
    """The device plugins of a host against its KAI and the KAIs inside its vClusters."""
    sharers: list[str] = []
    unclear: list[str] = []
    for owner, kai in (
        ("the host", cluster.kai),
        *((f"team {called(team.name)}", team.kai) for team in cluster.teams),
    ):
        if any(release.sharing not in (DISABLED, UNKNOWN) for release in kai):
            sharers.append(owner)
        elif any(release.sharing is UNKNOWN for release in kai):
            unclear.append(owner)
    for plugin in cluster.device_plugins:
        place = ProblemPlace(f"device plugin of {cluster.name}", plugin.path)
        if plugin.sharing is UNKNOWN:
            if sharers or unclear:
                yield place.undecided("the device plugin's config is known")
        elif plugin.sharing and sharers:
            yield place.mandatory(
                f"shares GPUs by {plugin.sharing} while the KAI of {listed(sharers, 'and')} shares"
                " them too; remove the sharing section from the device plugin's config, or set"
                " gpuSharing: false for that KAI"
            )
        elif plugin.sharing and unclear:
            until = f"it is known whether the KAI of {listed(unclear, 'and')} shares GPUs"
            yield place.undecided(until)
