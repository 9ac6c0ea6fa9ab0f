"""How long a version gets fixes: the same words in the plan, the doctor and the commands.

The dates are those of KAI's support list (SUPPORT.md), the last day of the month that it names, and
the ends of life on vCluster's page of supported versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from kai_fleet.releases.kai_table import KAI, KaiRelease
from kai_fleet.releases.lookup import RETRACTED, nearest, taken_for
from kai_fleet.releases.vcluster_table import VCLUSTER, VclusterRelease

_WORTH_A_MOVE: Final = timedelta(days=90)


@dataclass(frozen=True)
class Support:
    """Whether a version gets fixes, and what is said of it after its number."""

    maintained: bool
    words: str


def support(version: str, today: date | None = None) -> Support:
    """What is to be said of a KAI version on a day."""
    if version == RETRACTED:
        return Support(False, "retracted: its chart is that of v0.10.2")
    return _of(KAI, version, today)


def vcluster_support(version: str, today: date | None = None) -> Support:
    """The same of a vCluster version."""
    return _of(VCLUSTER, version, today)


def _of(
    table: Mapping[str, KaiRelease] | Mapping[str, VclusterRelease],
    version: str,
    today: date | None,
) -> Support:
    known, day = table.get(version), today or date.today()
    if known is None:
        newer = taken_for(table, version) is not None
        return Support(False, "not tried with this program" if newer else "not supported here")
    if known.support_end is None:
        return Support(False, f"no support dates are published for line {known.line}")
    if known.support_end < day:
        return Support(False, f"line {known.line} is out of support since {known.support_end}")
    return Support(True, f"supported until {known.support_end}")


def maintained(today: date | None = None) -> list[str]:
    """The versions that get fixes, oldest first."""
    return [version for version in KAI if support(version, today).maintained]


def nearest_maintained(version: str, today: date | None = None) -> str | None:
    """The nearest version that gets fixes for another quarter, if there is one, else at all.

    None where this table has none any more.
    """
    newest = {KAI[it].line: it for it in maintained(today)}  # oldest first: a line's newest stays
    until = (today or date.today()) + _WORTH_A_MOVE
    lasting = [it for it in newest.values() if (KAI[it].support_end or until) >= until]
    chosen = dict.fromkeys(lasting or newest.values())
    return nearest(chosen, version, count=1)[0] if chosen else None
