"""The host of a team's own stack: what its platform tells of it, and how the platform says so."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke

from kai_fleet.deployed import READ_OUTPUTS, full_name
from kai_fleet.fleet.model import HOST, DeclaredCluster, DeclaredKai, DeclaredTeam
from kai_fleet.fleet.queues import DeclaredQueue, shares
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.sections.gpu_share import counted, slices
from kai_fleet.settings.sections.team_stack import (
    Grant,
    HostCluster,
    HostQueue,
    HostScheduler,
    Neighbour,
    NoPlatformError,
    PlatformFacts,
)
from kai_fleet.settings.sections.teams import HostPlace

# What is the platform's carries a path outside the team's file: the platform's own preview
# reports it.
PLATFORM: Final = "platform stack:"
OUTPUT: Final = "platform"  # of a platform's stack
_UNKNOWN_STACK: Final = re.compile("unknown stack|no stack|not found|could not find", re.I)


def facts(settings: Settings, queues: Iterable[DeclaredQueue]) -> PlatformFacts:
    """What a platform's stack tells its team stacks; `queues` are the host's."""
    kai = settings.kai
    more: dict[str, Any] = {"monitoring": settings.monitoring} if settings.monitoring else {}
    if settings.registries:
        more["registries"] = [*settings.registries]
    return PlatformFacts(
        cluster=HostCluster(name=settings.cluster.name, context=settings.cluster.context),
        gpu_resource=settings.gpu.resource,
        gpu_provider=settings.gpu.provider,
        kai=HostScheduler(
            version=kai.version,
            gpu_sharing=settings.shares_gpus(kai),
            gpu_sharing_mode=settings.sharing_of(kai),
        )
        if kai
        else None,
        queues={
            queue.name: HostQueue(
                parent=queue.parent, shard=queue.shard, resources=queue.spec["resources"]
            )
            for queue in queues
        },
        vcluster=settings.vcluster,
        guard=settings.guard,
        isolation=settings.isolation,
        sources=settings.sources,
        **more,
        teams={
            name: Neighbour(
                mode=team.scheduler.mode,
                node_pool=team.node_pool,
                gpus=settings.gpus_of(name),
                queue=team.queue,
            )
            for name, team in settings.teams.items()
        },
        team_stacks={
            name: grant.model_copy(update=_over(grant, settings.place_of(name)))
            for name, grant in settings.team_stacks.items()
        },
    )


def _over(grant: Grant, place: HostPlace) -> dict[str, Any]:
    """What a team stack is told of its place: a grant as it is, with what all teams have."""
    told = {key: getattr(place, key) for key in HostPlace.model_fields if key != "isolation"}
    return {key: value for key, value in told.items() if value != getattr(grant, key)}


def host(
    settings: Settings, platform: PlatformFacts, own: tuple[DeclaredTeam, ...]
) -> DeclaredCluster:
    """The platform's host as far as it tells of it, with the team among the others."""
    (team,) = own
    kai = platform.kai
    return DeclaredCluster(
        HOST,
        path=key_path(("cluster",)),
        kai=(DeclaredKai(kai.version, sharing=kai.mode, path=PLATFORM),) if kai else (),
        queues=(*_host_queues(platform), *team.host_queues),
        teams=(*_neighbours(platform), *own),
        grants=tuple(_grants(platform)),
        platform=settings.platform_stack,
        sources=settings.sources.known,
        gpu_resource=settings.gpu.resource,
    )


def queue_path(name: str) -> str:
    """Where a queue of the platform's stands."""
    return f"{PLATFORM}queues.{name}"


def _neighbours(platform: PlatformFacts) -> Iterator[DeclaredTeam]:
    for name, team in platform.teams.items():
        yield DeclaredTeam(
            name,
            namespace=f"team-{name}",
            node_pool=team.node_pool,
            gpus=team.gpus,
            mode=team.mode,
            queue=team.queue,
            path=PLATFORM,
        )


def _grants(platform: PlatformFacts) -> Iterator[DeclaredTeam]:
    for name, grant in platform.team_stacks.items():
        devices = platform.isolation.over(grant.isolation).devices
        yield DeclaredTeam(
            name,
            namespace=f"team-{name}",
            node_pool=grant.node_pool,
            gpus=counted(grant.gpus, devices),
            slices=slices(grant.gpus, devices),
            mode="host" if platform.kai else "virtual",
            parent_queue=grant.parent_queue,
            path=PLATFORM,
            granted=True,
            inside=DeclaredCluster(gpu_resource=platform.gpu_resource),
        )


def _host_queues(platform: PlatformFacts) -> Iterator[DeclaredQueue]:
    for name, queue in platform.queues.items():
        of = shares(queue.resources)
        yield DeclaredQueue(name, queue.parent, of, path=queue_path(name), shard=queue.shard)


def read_platform(stack: str) -> PlatformFacts:
    """What the platform stack of that name said at its last update. Raises NoPlatformError."""
    bare = stack.rpartition("/")[2]
    update = f"update it first: {update_command(bare)}"
    if full_name(stack) == full_name(pulumi.get_stack()):
        raise NoPlatformError(f"is {stack}, which is this stack itself; write the platform's stack")
    try:
        # Not by a StackReference: the rules must have the answer before anything is declared.
        read: Any = invoke(READ_OUTPUTS, {"name": full_name(stack)}).value
    except Exception as why:
        if _UNKNOWN_STACK.search(str(why)):
            raise NoPlatformError(f"is {stack}, and there is no such stack; {update}") from None
        said = str(why).strip().rpartition("\n")[2][:200]
        raise NoPlatformError(f"is {stack}, whose outputs cannot be read ({said})") from None
    outputs = (read or {}).get("outputs") or {}
    if OUTPUT not in outputs:
        what = "exports no platform" if outputs else "has never been updated"
        raise NoPlatformError(
            f"is {stack}, which {what}: it is no platform stack of kai-fleet, or an older one;"
            f" {update}"
        )
    try:
        return PlatformFacts.read(outputs[OUTPUT])
    except NoPlatformError as why:
        raise NoPlatformError(f"is {stack}, which {why}") from None
