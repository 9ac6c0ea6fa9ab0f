"""What a team's namespace on the host carries: by it the API server and the guards judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pulumi

from kai_fleet.cluster.existing_objects import ExistingObjects
from kai_fleet.fleet.model import DeclaredTeam
from kai_fleet.guards.policies import ISOLATION_LABEL, as_annotations
from kai_fleet.state.deployed_state import NAMESPACE, NAMESPACE_PATCH

if TYPE_CHECKING:
    from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict

TEAM_LABEL: Final = "kai-fleet/team"
# On a namespace that others made: an update that was cut off finds by it whose the namespace is.
USED: Final = {"kai-fleet/namespace": "used"}
ENFORCED: Final = "pod-security.kubernetes.io/enforce"


def namespace_metadata(team: DeclaredTeam) -> ObjectMetaArgsDict:
    """Name, labels, and as annotations what the host's policies let the team's pods do.

    What a stack file adds to them changes neither: these come last.
    """
    bounds = team.host_guard.parameters() if team.host_guard is not None else {}
    if team.isolation is not None and team.isolation.on:
        bounds |= team.rules.parameters() if team.rules is not None else {}
    return {
        "name": f"team-{team.name}",
        "labels": labels_of(team),
        "annotations": {**team.annotations, **as_annotations(bounds)},
    }


def is_of_others(team: DeclaredTeam, existing: ExistingObjects) -> bool:
    """Whether the team's namespace was there before the stack, which then uses it.

    One with the team's label alone was made by an update of the stack that was cut off, or by
    another stack. Raises pulumi.RunError where it has other values of labels than the team gets.
    """
    resource = f"{team.name}-namespace"
    if existing.holds(NAMESPACE_PATCH, resource):
        return True
    name = f"team-{team.name}"
    found = existing.of_others(NAMESPACE, name, resource)
    if found is None:
        return False
    if TEAM_LABEL in found["labels"]:
        return all(found["labels"].get(key) == it for key, it in USED.items())
    wanted = labels_of(team)
    differ = {key: it for key, it in found["labels"].items() if wanted.get(key, it) != it}
    if differ:
        has = ", ".join(f"{key}={value}" for key, value in sorted(differ.items()))
        wants = ", ".join(f"{key}={wanted[key]}" for key in sorted(differ))
        raise pulumi.RunError(
            f"namespace {name} was on the cluster before this stack and is used for team"
            f" {team.name}, but it has {has}, and the team's labels are {wants}. Nothing was"
            " made. Agree with its owner and set the label: kubectl label namespace"
            f" {name} --overwrite {wants.replace(', ', ' ')}; or give the team another name"
        )
    return True


def labels_of(team: DeclaredTeam) -> dict[str, str]:
    """The labels of the team's namespace: the file's, and over them those that decide."""
    labels = {**team.labels, TEAM_LABEL: team.name}
    if team.isolation is not None and team.isolation.on:
        # `restricted` is held by the guard: the label knows no exceptions, and needs some.
        labels[ENFORCED] = "baseline"
        labels[f"{ENFORCED}-version"] = "latest"
        labels[ISOLATION_LABEL] = team.isolation.level
    return labels
