"""The arguments of monitoring components for a resolved fleet."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.monitoring import FleetMonitoring
from kai_fleet.options import noted
from kai_fleet.settings.sections.monitoring import Monitoring

if TYPE_CHECKING:
    from kai_fleet.host.platform import Platform


def parents(queues: Iterable[DeclaredQueue]) -> list[str]:
    """Names of queues with others below them."""
    every = list(queues)
    above = {queue.parent for queue in every}
    return [queue.name for queue in every if queue.name in above]


def monitoring_of(platform: "Platform") -> None:
    """What a platform's stack tells Prometheus; nothing where it is off, or in a team stack."""
    fleet = platform.args.fleet
    host = fleet.host
    if host.monitoring is None:
        return
    args: Any = {
        **host.monitoring.model_dump(),
        "gpu_resource": host.gpu_resource,
        "host_kai": bool(host.kai),
        "parent_queues": parents(host.queues),
    }
    args.pop("certificates")
    FleetMonitoring("host", args, noted(platform.once_ready(), fleet.labels, fleet.annotations))


def team_args(team: DeclaredTeam, monitoring: Monitoring) -> dict[str, Any]:
    """What TeamMonitoring reads of a TeamNamespace's arguments."""
    queue = team.parent_queue if team.granted else team.queue
    return {
        "scheduler": "inside" if team.mode == "virtual" else "host",
        "queues": [queue] if queue else [],
        "isolation": team.isolation.model_dump(exclude_none=True) if team.isolation else {},
        "monitoring": {
            **monitoring.model_dump(),
            "scheduler": bool(team.kai),
            "parent_queues": parents(team.inside.queues),
        },
    }
