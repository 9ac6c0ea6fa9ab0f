"""KAI lines that still get fixes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from components import releases
from policies.model import Cluster
from policies.problem import Level, Problem, Severity, advisory, at

NAME = "kai-version-supported"
LEVEL = Level.ADVISORY
SEVERITY = Severity.MEDIUM
WHY = "A line out of support gets no more fixes, security fixes included (K18)."
REMEDY = "Move to the maintained line that the message names."


def check(cluster: Cluster, today: date | None = None) -> Iterator[Problem]:
    """The support end of each known version against `today`."""
    day = today or date.today()
    for release in cluster.kai:
        known = releases.KAI.get(str(release.version))
        if known is None or (known.support_end is not None and known.support_end >= day):
            continue
        maintained = {
            version: entry
            for version, entry in releases.KAI.items()
            if entry.support_end is not None and entry.support_end >= day
        }
        if known.support_end is None:
            state = f"is {known.version}, a line that KAI's support list does not name"
        else:
            state = f"is {known.version}, whose line {known.line} is out of support since"
            state += f" {known.support_end.isoformat()}"
        advice = "; no version known here is maintained any more, look for a newer kai-fleet"
        if maintained:
            near = releases.nearest(maintained, known.version, count=1)[0]
            advice = f"; the nearest maintained one is {near}"
            advice += f" (until {maintained[near].support_end})"
        yield advisory(NAME, f"KAI of {cluster.name}", at(release.path, "version"), state + advice)
