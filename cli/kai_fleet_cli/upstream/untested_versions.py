"""Versions that were seen in the registries and that nobody tried with this program.

`.github/workflows/releases.yml` proposes this list's changes as a pull request.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from kai_fleet.releases import KAI, VCLUSTER, taken_for

FILE: Final = Path(__file__).with_suffix(".json")


def untried() -> dict[str, list[str]]:
    """The list, by project; without what is in a table by now."""
    tables: dict[str, Any] = {"KAI": KAI, "vCluster": VCLUSTER}
    listed = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        project: [version for version in listed.get(project, ()) if taken_for(table, version)]
        for project, table in tables.items()
    }
