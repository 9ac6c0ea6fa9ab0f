"""The quotas of a declared team."""

from typing import Any

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards import quotas as of_args
from kai_fleet.settings.sections.isolation import Isolation


def quotas(team: DeclaredTeam) -> dict[str, Any]:
    """By name: each its spec."""
    isolation = team.isolation or Isolation()
    gpu, kinds = team.inside.gpu_resource, team.kinds
    return of_args.quotas(
        {
            "gpus": kinds[gpu],
            "gpu_resource": gpu,
            "slices": {name: count for name, count in kinds.items() if name != gpu},
            "devices": isolation.devices,
            "device_classes": isolation.device_classes,
            "isolation": isolation.model_dump(exclude_none=True),
        }
    )
