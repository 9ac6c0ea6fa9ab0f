"""The host of a team's own stack, as far as its platform tells of it."""

from typing import Final

from kai_fleet.fleet.declared import granted_queues
from kai_fleet.fleet.model import HOST, DeclaredCluster, DeclaredKai, DeclaredTeam
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.team_stack import Facts

# What is the platform's carries a path outside the team's file: the platform's own preview
# reports it.
PLATFORM: Final = "platform stack:"


def host(settings: Settings, platform: Facts, own: tuple[DeclaredTeam, ...]) -> DeclaredCluster:
    """The platform's host with the team alone; above its queues are those of the platform."""
    (team,) = own
    kai = platform.kai
    name = str(team.name)
    above = granted_queues(platform, name, queue_path(team.parent_queue or ""))
    return DeclaredCluster(
        HOST,
        path=key_path(("cluster",)),
        kai=(DeclaredKai(kai.version, sharing=kai.sharing_mode, path=PLATFORM),) if kai else (),
        queues=(*above, *team.host_queues),
        teams=own,
        platform=settings.platform_stack,
        sources=settings.sources.known,
        gpu_resource=settings.gpu.resource,
    )


def queue_path(name: str) -> str:
    """Where a queue of the platform's stands."""
    return f"{PLATFORM}queues.{name}"
