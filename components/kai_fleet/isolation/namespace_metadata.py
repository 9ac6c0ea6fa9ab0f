"""What a team's namespace on the host carries: by it the API server and the guards judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards.policies import ISOLATION_LABEL, as_annotations

if TYPE_CHECKING:
    from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict

TEAM_LABEL: Final = "kai-fleet/team"
ENFORCED: Final = "pod-security.kubernetes.io/enforce"


def namespace_metadata(team: DeclaredTeam) -> ObjectMetaArgsDict:
    """Name, labels, and as annotations what the host's policies let the team's pods do.

    What a stack file adds to them changes neither: these come last.
    """
    labels = {**team.labels, TEAM_LABEL: team.name}
    bounds = team.host_guard.parameters() if team.host_guard is not None else {}
    if team.isolation is not None and team.isolation.on:
        # `restricted` is held by the guard: the label knows no exceptions, and needs some.
        labels[ENFORCED] = "baseline"
        labels[f"{ENFORCED}-version"] = "latest"
        labels[ISOLATION_LABEL] = team.isolation.level
        bounds |= team.rules.parameters() if team.rules is not None else {}
    return {
        "name": f"team-{team.name}",
        "labels": labels,
        "annotations": {**team.annotations, **as_annotations(bounds)},
    }
