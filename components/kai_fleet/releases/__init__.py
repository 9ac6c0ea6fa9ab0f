"""What each supported version of KAI and vCluster needs: finding one in the tables, what to write
where it is not there, and how long it gets fixes.

The dates are those of KAI's support list (SUPPORT.md), the last day of the month that it names, and
the ends of life on vCluster's page of supported versions.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final, TypeVar

from kai_fleet.releases.tables import DEFAULT_VCLUSTER as DEFAULT_VCLUSTER
from kai_fleet.releases.tables import KAI as KAI
from kai_fleet.releases.tables import VCLUSTER as VCLUSTER
from kai_fleet.releases.tables import VCLUSTER_REPOSITORY as VCLUSTER_REPOSITORY
from kai_fleet.releases.tables import KaiRelease as KaiRelease
from kai_fleet.releases.tables import Release
from kai_fleet.releases.tables import VclusterRelease as VclusterRelease

R = TypeVar("R", bound=Release)
RETRACTED: Final = "v0.20.1"
DISABLED: Final = "Disabled"  # the mode without sharing
_QUARTER: Final = timedelta(days=90)


class UnknownVersionError(LookupError):
    """A version that is not in the table; its text names the nearest ones that are."""


def version_key(version: str) -> tuple[int, ...]:
    """Order of versions by their numbers; text that has none sorts first."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def takes_external_pod_groups(version: str) -> bool:
    """Whether a KAI takes a pod's queue from a PodGroup that it did not make itself."""
    return version_key(version) >= (0, 15)


def has_sharing_modes(version: str) -> bool:
    """Whether the chart of a KAI takes `global.gpuSharingMode` in place of `global.gpuSharing`.

    It then shares GPUs where neither is set.
    """
    return version_key(version) >= (0, 18)


def nearest(table: Mapping[str, Any], version: str) -> list[str]:
    """The two advisable versions closest to `version`, nearest first; where its line and newer ones
    have none, the advised one. Of a line such as `v0.16` its newest two.
    """
    numbers = (*version_key(version), 0, 0, 0)[:3]
    advisable = [known for known, release in table.items() if not release.caveat]
    newer = [known for known in advisable if version_key(known)[:2] >= numbers[:2]]
    line = [known for known in newer if version_key(known)[:2] == version_key(version)]
    if line or not newer:
        return line[-2:][::-1] or [advised(table) or advisable[-1]]
    return sorted(
        newer, key=lambda one: [abs(a - b) for a, b in zip(version_key(one), numbers, strict=True)]
    )[:2]


def instead(table: Mapping[str, Any], version: str) -> str:
    """What to write in place of a version that the table lacks; it follows "write"."""
    trial = ", or add untested: true beside it to try it" if taken_for(table, version) else ""
    return " or ".join(nearest(table, version)) + trial


def taken_for(table: Mapping[str, Any], version: str) -> str | None:
    """The known version that a newer one, which was not tried here, is taken for.

    None for a version that is known, and for one that is older than what is known of its line.
    """
    if version in table or version == RETRACTED:
        return None
    numbers = version_key(version)
    line = [known for known in table if version_key(known)[:2] == numbers[:2]]
    newest = (line or list(table))[-1]
    return newest if numbers > version_key(newest) else None


def kai(version: str, *, untested: bool = False) -> KaiRelease:
    """The table's entry for a KAI version such as `v0.9.3`.

    `untested` lets a version through that is newer than the newest known one of its line, or of
    all: it is taken for that one. Raises UnknownVersionError for anything else, also for the
    highest tag there is, v0.20.1, which is a retracted one.
    """
    return _entry("KAI", KAI, version, untested)


def vcluster(version: str, *, untested: bool = False) -> VclusterRelease:
    """The table's entry for a vCluster version such as `v0.36.1`; as for KAI."""
    return _entry("vCluster", VCLUSTER, version, untested)


def _entry(what: str, table: Mapping[str, R], version: str, untested: bool) -> R:
    if version in table:
        return table[version]
    known = taken_for(table, version)
    if untested and known is not None:
        return replace(table[known], version=version, support_end=None, caveat="")
    hint = " (it is retracted: its chart equals v0.10.2)" if version == RETRACTED else ""
    raise UnknownVersionError(
        f"{what} {version} is not a version this program knows{hint}; write"
        f" {instead(table, version)} (all: {', '.join(table)})"
    )


@dataclass(frozen=True)
class Support:
    """Whether a version gets fixes, and the words for it that follow its number."""

    maintained: bool
    words: str


def support(version: str, today: date | None = None) -> Support:
    """The support of a KAI version on a day."""
    if version == RETRACTED:
        return Support(False, "retracted: its chart is that of v0.10.2")
    return _support(KAI, version, today)


def vcluster_support(version: str, today: date | None = None) -> Support:
    """The support of a vCluster version on a day."""
    return _support(VCLUSTER, version, today)


def _support(table: Mapping[str, Release], version: str, today: date | None) -> Support:
    known, day = table.get(version), today or date.today()
    if known is None:
        newer = taken_for(table, version) is not None
        return Support(False, "not tried with this program" if newer else "not supported here")
    if known.support_end is None:
        return Support(False, f"no support dates are published for line {known.line}")
    if known.support_end < day:
        return Support(False, f"line {known.line} is out of support since {known.support_end}")
    return Support(True, f"supported until {known.support_end}")


def advised(
    table: Mapping[str, Release], version: str = "", today: date | None = None
) -> str | None:
    """The version to move to, or to begin with: the newest that may be advised and gets fixes, for
    another quarter if any does.

    None where none does that is newer than `version`: no advice leads down.
    """
    soon = (today or date.today()) + _QUARTER
    advisable = [known for known, release in table.items() if not release.caveat]
    kept = [known for known in advisable if _support(table, known, today).maintained]
    best = [known for known in kept if _support(table, known, soon).maintained] or kept
    return best[-1] if best and version_key(best[-1]) > version_key(version) else None


def advice(table: Mapping[str, Release], version: str, today: date | None = None) -> str:
    """What to do where a version gets no fixes, as a clause that follows a semicolon."""
    if to := advised(table, version, today):
        up = "go up one line at a time," if table is VCLUSTER else "move"
        return f"{up} to {to} ({_support(table, to, today).words})"
    if advised(table, today=today):
        return "nothing newer here gets fixes: stay, and look for a newer kai-fleet"
    return "no version known here is maintained any more: look for a newer kai-fleet"
