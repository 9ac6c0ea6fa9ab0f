"""What is newer upstream than the tables here: a newer patch of a line, or a newer line."""

import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kai_fleet_cli.upstream import registry
from kubectl_fleet.releases import KAI, RETRACTED, VCLUSTER, taken_for, version_key
from kubectl_fleet.releases.tables import KAI_CHART

TABLES: Final[Mapping[str, Mapping[str, Any]]] = {"KAI": KAI, "vCluster": VCLUSTER}
# The chart of vCluster is in no OCI registry; each of its versions has an image of that version.
HOMES: Final = {"KAI": KAI_CHART, "vCluster": "oci://ghcr.io/loft-sh/vcluster-oss"}
# Versions that were seen in the registries and not tried with this program: proposed as a pull
# request by .github/workflows/releases.yml.
UNTESTED: Final = Path(__file__).with_name("untested_versions.json")
_FINAL: Final = re.compile(r"v?(\d+\.\d+\.\d+)")


@dataclass(frozen=True)
class NewerVersions:
    """The newer versions of a project, oldest first; or, in `silent`, why none are known."""

    project: str
    newer: tuple[str, ...] = ()
    silent: str = ""

    @property
    def words(self) -> str:
        """One sentence."""
        newer = f"newer than what is known here: {', '.join(self.newer)}"
        nothing = "nothing newer than what is known here"
        return f"{self.project} upstream: {self.silent or (newer if self.newer else nothing)}"


def look(homes: Mapping[str, str]) -> list[NewerVersions]:
    """Ask the registries of all projects at once."""
    with ThreadPoolExecutor(4) as pool:
        return [*pool.map(_ask, homes, homes.values())]


def _ask(project: str, reference: str) -> NewerVersions:
    try:
        tags = registry.tags(reference)
    except registry.NoTagsError as error:
        host = reference.removeprefix("oci://").partition("/")[0]
        return NewerVersions(project, silent=f"{host} {error}")
    return NewerVersions(project, tuple(newer(tags, TABLES[project])))


def newer(tags: Iterable[str], known: Iterable[str]) -> list[str]:
    """The newest final version of each line that is known or newer, where it is newer than the
    known ones. Pre-releases and what was retracted are none.
    """
    lines = _newest_by_line(known)
    last = max(lines)
    final = _newest_by_line(f"v{it[1]}" for tag in tags if (it := _FINAL.fullmatch(tag)))
    versions = [
        version
        for line, version in final.items()
        if line > last or (line in lines and version_key(version) > version_key(lines[line]))
    ]
    return sorted(versions, key=version_key)


def untested() -> dict[str, list[str]]:
    """The versions that were seen and not tried, by project, without what is in a table by now."""
    listed = json.loads(UNTESTED.read_text(encoding="utf-8"))
    return {
        project: [version for version in listed.get(project, ()) if taken_for(table, version)]
        for project, table in TABLES.items()
    }


def _newest_by_line(versions: Iterable[str]) -> dict[tuple[int, ...], str]:
    wanted = (version for version in versions if version != RETRACTED)
    return {version_key(version)[:2]: version for version in sorted(wanted, key=version_key)}
