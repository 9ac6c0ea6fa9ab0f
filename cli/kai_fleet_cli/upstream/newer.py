"""What is newer upstream than the tables here: a newer patch of a line, or a newer line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from kai_fleet.releases import KAI, VCLUSTER, version_key
from kai_fleet.releases.kai_table import KAI_CHART
from kai_fleet.releases.lookup import RETRACTED
from kai_fleet_cli.upstream import registry

# The chart of vCluster is in no OCI registry; each of its versions has an image of that version.
VCLUSTER_IMAGE: Final = "oci://ghcr.io/loft-sh/vcluster-oss"
_FINAL: Final = re.compile(r"v?(\d+\.\d+\.\d+)")


@dataclass(frozen=True)
class Home:
    """A project: its name, where its versions are, and those that are known here."""

    project: str
    reference: str
    known: tuple[str, ...]

    @property
    def registry(self) -> str:
        """The registry's name."""
        return self.reference.removeprefix("oci://").partition("/")[0]


@dataclass(frozen=True)
class Found:
    """The versions of a project that are newer, oldest first; or, in `silent`, why nobody knows."""

    project: str
    newer: tuple[str, ...] = ()
    silent: str = ""

    @property
    def words(self) -> str:
        """One sentence."""
        if self.silent:
            return f"{self.project} upstream: {self.silent}"
        if not self.newer:
            return f"{self.project} upstream: nothing newer than what is known here"
        return f"{self.project} upstream: newer than what is known here: {', '.join(self.newer)}"

    def record(self) -> dict[str, Any]:
        """For machines."""
        return {"project": self.project, "newer": list(self.newer), "silent": self.silent}


HOMES: Final = (
    Home("KAI", KAI_CHART, tuple(KAI)),
    Home("vCluster", VCLUSTER_IMAGE, tuple(VCLUSTER)),
)


def newer(tags: Iterable[str], known: Iterable[str]) -> list[str]:
    """The newest final version of each line that is known or newer, where it is newer than the
    known ones. Pre-releases and what was retracted are none.
    """
    lines = _newest_by_line(known)
    last = max(lines)
    there = _newest_by_line(f"v{it[1]}" for tag in tags if (it := _FINAL.fullmatch(tag)))
    found = [
        version
        for line, version in there.items()
        if line > last or (line in lines and version_key(version) > version_key(lines[line]))
    ]
    return sorted(found, key=version_key)


def _newest_by_line(versions: Iterable[str]) -> dict[tuple[int, ...], str]:
    wanted = (version for version in versions if version != RETRACTED)
    return {version_key(version)[:2]: version for version in sorted(wanted, key=version_key)}


def look(homes: Iterable[Home]) -> list[Found]:
    """Ask all registries at once."""
    with ThreadPoolExecutor(4) as pool:
        return [*pool.map(_ask, homes)]


def _ask(home: Home) -> Found:
    try:
        tags = registry.tags(home.reference)
    except registry.NoTags as why:
        return Found(home.project, silent=f"{home.registry} {why}")
    return Found(home.project, tuple(newer(tags, home.known)))
