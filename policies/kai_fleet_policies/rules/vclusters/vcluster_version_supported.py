"""vCluster lines that still get fixes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from kai_fleet.fleet.model import DeclaredCluster
from kubectl_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER, vcluster_support
from kubectl_fleet.rules.problem import Level, Problem, Severity, advisory, called
from kubectl_fleet.wording import agreeing, listed, plural

NAME = "vcluster-version-supported"
LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = "A line past its end of life gets no more fixes, security fixes included."
REMEDY = "Go up one line at a time, to one that gets fixes."


def check(cluster: DeclaredCluster, today: date | None = None) -> Iterator[Problem]:
    """The end of life of each known version against `today`, once for each key that names one."""
    teams: dict[tuple[str, str], list[str]] = {}
    for team in cluster.virtual_clusters:
        version = str(team.version or DEFAULT_VCLUSTER)
        if version in VCLUSTER and not vcluster_support(version, today).maintained:
            teams.setdefault((team.version_path, version), []).append(called(team.name))
    newest = vcluster_support(DEFAULT_VCLUSTER, today)
    for (path, version), names in teams.items():
        advice = (
            f"go up one line at a time, to {DEFAULT_VCLUSTER} ({newest.words})"
            if newest.maintained
            else "no version known here is maintained any more, look for a newer kai-fleet"
        )
        words, number = vcluster_support(version, today).words, len(names)
        subject = f"{plural(number, 'vCluster')} {listed(names, 'and')}"
        verb = agreeing(number, "is")
        yield advisory(subject, path, f"{verb} {version}: {words}; {advice}")
