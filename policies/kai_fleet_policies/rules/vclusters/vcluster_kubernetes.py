"""A Kubernetes inside a vCluster that knows the policies of the guard there."""

import re
from collections.abc import Iterator
from typing import Final

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.guards.policies import OLDEST_KUBERNETES, POLICY
from kai_fleet.values import value_at
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity
from kai_fleet_policies.rules.vclusters import of_vcluster

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "The guard inside a vCluster is made of ValidatingAdmissionPolicies. An API server without them"
    " refuses the update after the vCluster is made, and any pod may name any queue (W10)."
)
REMEDY = f"Write Kubernetes {OLDEST_KUBERNETES} or newer, or leave it to vCluster's version."

# Where chart values say it, which go before the key.
_VALUES: Final = ("controlPlane.distro.k8s.image.tag", "controlPlane.distro.k8s.version")


def check(cluster: DeclaredCluster) -> Problems:
    """The version inside each vCluster that has a guard, where it is written."""
    for team in cluster.teams:
        if not team.guard:
            continue
        default = releases.VCLUSTER[releases.DEFAULT_VCLUSTER]
        known = releases.VCLUSTER.get(team.version or "", default)
        for place, version in _written(team):
            if _is_older(version):
                yield place.mandatory(
                    f"is {version}, and the guard inside needs Kubernetes {OLDEST_KUBERNETES} or"
                    f" newer, for {POLICY}: write {known.kubernetes}, which this vCluster has of"
                    " itself, or kai-fleet:guard: {mode: off} to do without the guard"
                )


def _written(team: DeclaredTeam) -> Iterator[tuple[ProblemPlace, str]]:
    """The place and the version, as far as the stack says one."""
    for key in _VALUES:
        if isinstance(version := value_at(team.values, key), str):
            yield of_vcluster(team, "values", key), version
            return
    if team.kubernetes_version:
        yield of_vcluster(team, "kubernetesVersion"), team.kubernetes_version


def _is_older(version: str) -> bool:
    number = re.match(r"v?([0-9]+\.[0-9]+)", version)
    return number is not None and releases.version_key(number[1]) < releases.version_key(
        OLDEST_KUBERNETES
    )
