"""What the host's guard of each team lets through, by the settings of the platform's stack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kai_fleet.guards.host_rules import KAI_PRIORITIES, HostRules, KaiPlace
from kai_fleet.settings import Settings
from kai_fleet.settings.sections.team_stack import Grant
from kai_fleet.settings.sections.teams import Mode, Team

_PLACES: Final[Mapping[Mode, KaiPlace]] = {"virtual": "inside", "host": "host", "default": "none"}


def of_declared(settings: Settings, name: str) -> HostRules:
    """Of a team that the platform's stack runs."""
    team = settings.teams[name]
    return _rules(settings, name, team, _PLACES[team.scheduler.mode])


def of_granted(settings: Settings, name: str) -> HostRules:
    """Of a team with a stack of its own, which chooses the mode."""
    grant = settings.team_stacks[name]
    on_host: KaiPlace = "host" if grant.parent_queue else "none"
    return _rules(settings, name, grant, "inside" if settings.kai is None else on_host)


def _rules(settings: Settings, name: str, has: Team | Grant, place: KaiPlace) -> HostRules:
    isolation, kai = settings.isolation_of(name), place == "host"
    queue = has.parent_queue if isinstance(has, Grant) else has.queue
    queues = [queue] if kai and queue else []
    return HostRules(
        name,
        devices=(settings.gpu.resource, *isolation.devices),
        pool=has.node_pool,
        control_pool=settings.control_pool_of(name),
        foreign_pools=[] if has.node_pool else _foreign_pools(settings, name),
        names_nodes=place == "inside",
        # A team whose scheduler is inside has its nodes to itself: the rules see to that.
        shared_nodes=place != "inside" or not has.node_pool,
        kai=place,
        device_classes=tuple(isolation.device_classes),
        priorities=(*(KAI_PRIORITIES if kai else ()), *isolation.priority_classes),
        queues_only=kai,
        restricted=isolation.level == "restricted",
        platform_images=_images(settings),
        runtime_classes=isolation.runtime_classes,
        beside_kai=settings.kai is not None,
        queues=queues,
        queue_prefix=f"{name}-" if kai and name in settings.team_stacks else None,
        foreign_queues=settings.queues_like(name),
        attachments=isolation.network.attachments or not isolation.network.enabled,
        endpoints=isolation.network.endpoints or not isolation.network.enabled,
        private=isolation.network.private,
        annotations=isolation.annotations,
        volumes=isolation.volumes,
        grace_seconds=isolation.bounds.grace_seconds,
    )


def _foreign_pools(settings: Settings, name: str) -> list[dict[str, str]]:
    """The pools of the platform's control planes and of other teams, each once."""
    pools: list[dict[str, str]] = [settings.vcluster.node_pool or {}]
    pools += [team.node_pool for other, team in settings.teams.items() if other != name]
    pools += [grant.node_pool for grant in settings.team_stacks.values()]
    for other in (*settings.teams, *settings.team_stacks):
        if other != name:
            pools.append(settings.control_pool_of(other))
    found: list[dict[str, str]] = []
    for pool in (dict(each) for each in pools if each):
        if pool not in found:
            found.append(pool)
    return sorted(found, key=lambda each: sorted(each.items()))


def _images(settings: Settings) -> tuple[str, ...]:
    """What the names of KAI's images begin with: the tables' places, and the platform's own ones.

    Nothing that a team's values say: images with such names pass where others do not.
    """
    return tuple(f"{place}/" for place in settings.sources.known.kai_images)
