"""Finding a version in the tables, and saying what to write where it is not there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from components.releases.kai_table import KAI, KaiRelease
from components.releases.vcluster_table import VCLUSTER, VclusterRelease

T = TypeVar("T")
RETRACTED: Final = "v0.20.1"


class UnknownVersion(LookupError):  # noqa: N818 - reads better where it is raised
    """A version that is not in the table; its text names the nearest ones that are."""


def version_key(version: str) -> tuple[int, ...]:
    """Order of versions by their numbers; text that has none sorts first."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def nearest(table: Mapping[str, Any], version: str, count: int = 2) -> list[str]:
    """The supported versions closest to `version`, nearest first."""
    wanted = (*version_key(version), 0, 0, 0)[:3]

    def distance(known: str) -> tuple[int, ...]:
        return tuple(abs(a - b) for a, b in zip(version_key(known), wanted, strict=True))

    return sorted(table, key=distance)[:count]


def nearest_kai(version: str) -> list[str]:
    """The two supported KAI versions closest to `version`."""
    return nearest(KAI, version)


def kai(version: str, *, untested: bool = False) -> KaiRelease:
    """The table's entry for a KAI version such as `v0.9.3`.

    `untested` lets a version through that is newer than all of them; it is treated as the newest
    known line. Raises UnknownVersion for anything else, also for the highest tag there is,
    v0.20.1, which is a retracted one (K1).
    """
    newest = list(KAI)[-1]
    newer = version_key(version) > version_key(newest) and version != RETRACTED
    if untested and version not in KAI and newer:
        return replace(KAI[newest], version=version, support_end=None)
    return _find("KAI", KAI, version)


def vcluster(version: str) -> VclusterRelease:
    """The table's entry for a vCluster version such as `v0.36.1`; raises UnknownVersion."""
    return _find("vCluster", VCLUSTER, version)


def _find(what: str, table: Mapping[str, T], version: str) -> T:
    if version in table:
        return table[version]
    near = " or ".join(nearest(table, version))
    hint = " (it is retracted: its chart equals v0.10.2)" if version == RETRACTED else ""
    raise UnknownVersion(
        f"{what} {version} is not a version this program knows{hint}; write {near}"
        f" (all: {', '.join(table)})"
    )
