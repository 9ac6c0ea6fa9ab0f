"""Finding a version in the tables, and saying what to write where it is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from kai_fleet.releases.kai_table import KAI, KaiRelease
from kai_fleet.releases.vcluster_table import VCLUSTER, VclusterRelease

T = TypeVar("T")
RETRACTED: Final = "v0.20.1"
# From here on KAI leaves pods in a PodGroup that somebody else made, and takes its queue.
_EXTERNAL_POD_GROUPS: Final = (0, 15)


class UnknownVersionError(LookupError):
    """A version that is not in the table; its text names the nearest ones that are."""


def version_key(version: str) -> tuple[int, ...]:
    """Order of versions by their numbers; text that has none sorts first."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def takes_external_pod_groups(version: str) -> bool:
    """Whether a KAI takes a pod's queue from a PodGroup that it did not make itself."""
    return version_key(version) >= _EXTERNAL_POD_GROUPS


def nearest(table: Mapping[str, Any], version: str, count: int = 2) -> list[str]:
    """The supported versions closest to `version`, nearest first."""
    wanted = (*version_key(version), 0, 0, 0)[:3]
    if table and wanted > max(map(version_key, table)):
        return sorted(table, key=version_key, reverse=True)[:count]

    def distance(known: str) -> tuple[int, ...]:
        return tuple(abs(a - b) for a, b in zip(version_key(known), wanted, strict=True))

    return sorted(table, key=distance)[:count]


def nearest_kai(version: str) -> list[str]:
    """The two supported KAI versions closest to `version`."""
    return nearest(KAI, version)


def kai(version: str, *, untested: bool = False) -> KaiRelease:
    """The table's entry for a KAI version such as `v0.9.3`.

    `untested` lets a version through that is newer than the newest known one of its line, or of
    all: it is taken for that one. Raises UnknownVersionError for anything else, also for the
    highest tag there is, v0.20.1, which is a retracted one (K1).
    """
    known = taken_for(KAI, version)
    if untested and known is not None:
        return replace(KAI[known], version=version, support_end=None)
    return _find("KAI", KAI, version)


def taken_for(table: Mapping[str, Any], version: str) -> str | None:
    """The known version that a newer one, which nobody tried here, is taken for.

    None for a version that is known, and for one that is older than what is known of its line.
    """
    if version in table or version == RETRACTED:
        return None
    wanted = version_key(version)
    line = [known for known in table if version_key(known)[:2] == wanted[:2]]
    newest = (line or list(table))[-1]
    return newest if wanted > version_key(newest) else None


def vcluster(version: str, *, untested: bool = False) -> VclusterRelease:
    """The table's entry for a vCluster version such as `v0.36.1`.

    `untested` is as for KAI. Raises UnknownVersionError.
    """
    known = taken_for(VCLUSTER, version)
    if untested and known is not None:
        return replace(VCLUSTER[known], version=version, support_end=None)
    return _find("vCluster", VCLUSTER, version)


def _find(what: str, table: Mapping[str, T], version: str) -> T:
    if version in table:
        return table[version]
    near = " or ".join(nearest(table, version))
    hint = " (it is retracted: its chart equals v0.10.2)" if version == RETRACTED else ""
    raise UnknownVersionError(
        f"{what} {version} is not a version this program knows{hint}; write {near}"
        f" (all: {', '.join(table)})"
    )
