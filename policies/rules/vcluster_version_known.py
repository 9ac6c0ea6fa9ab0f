"""Only vCluster versions of the release table."""

from __future__ import annotations

from collections.abc import Iterator

from components import releases
from policies.model import UNKNOWN, Cluster, called
from policies.problem import Level, Problem, Severity, at, mandatory, undecided
from policies.wording import listed

NAME = "vcluster-version-known"
LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = "The keys of vCluster's chart differ by version, its virtual scheduler's among them (V2)."
REMEDY = "Write one of the versions that the message names."


def check(cluster: Cluster) -> Iterator[Problem]:
    """The version of each vCluster on this host; one that names none gets the newest known."""
    for team in cluster.virtual_clusters:
        subject, path = f"vCluster {called(team.name)}", at(team.path, "vcluster", "version")
        if team.version is UNKNOWN:
            yield undecided(NAME, subject, path, "its version is known")
        elif team.version and team.version not in releases.VCLUSTER:
            near = listed(releases.nearest(releases.VCLUSTER, team.version))
            known = ", ".join(releases.VCLUSTER)
            yield mandatory(
                NAME,
                subject,
                path,
                f"has version {team.version}, which is not supported here; write {near}"
                f" (all: {known})",
            )
