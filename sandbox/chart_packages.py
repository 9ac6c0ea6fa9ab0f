"""Packaging the stand-in charts: one archive for each version that they stand in for."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kai_fleet.components.releases import DEVICE_PLUGIN_VERSION, GPU_OPERATOR_VERSION, KAI, VCLUSTER
from sandbox.tools.specs import Say, ToolError

SOURCES: Final = Path(__file__).parent / "charts"

# Every version that the release tables know.
KAI_VERSIONS: Final = tuple(KAI)
VCLUSTER_VERSIONS: Final = tuple(release.chart_version for release in VCLUSTER.values())
_OLD_VCLUSTER_SCHEMA: Final = "values.schema.before-v0.32.json"


@dataclass(frozen=True)
class ChartPackage:
    """One archive. `without` are glob patterns of files that this version does not have;
    `renamed` moves a file over another one.
    """

    name: str
    version: str
    without: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """As Helm names it, and as KAI_FLEET_CHARTS wants it."""
        return f"{self.name}-{self.version}.tgz"


def packages() -> list[ChartPackage]:
    """Every archive that `package` makes."""
    return [
        *map(_kai, KAI_VERSIONS),
        *map(_vcluster, VCLUSTER_VERSIONS),
        ChartPackage("gpu-operator", GPU_OPERATOR_VERSION),
        ChartPackage("nvidia-device-plugin", DEVICE_PLUGIN_VERSION),
    ]


def package(directory: Path, helm: Path, say: Say) -> None:
    """Package every stand-in chart into `directory`; archives that are there are replaced.

    Raises ToolError when Helm does not take a chart.
    """
    directory.mkdir(parents=True, exist_ok=True)
    everything = packages()
    say(f"packaging {len(everything)} stand-in charts")
    with tempfile.TemporaryDirectory(prefix="kai-fleet-charts-") as scratch:
        for number, chart in enumerate(everything):
            source = _stage(chart, Path(scratch) / str(number) / chart.name)
            _run(helm, chart, source, directory)


def _kai(version: str) -> ChartPackage:
    # Before v0.9 there is no operator, and so no Config.
    operator = ("crds/kai.scheduler_*.yaml",) if version.startswith(("v0.7.", "v0.8.")) else ()
    return ChartPackage("kai-scheduler", version, without=operator)


def _vcluster(version: str) -> ChartPackage:
    if tuple(map(int, version.split("."))) < (0, 32):
        renamed = {_OLD_VCLUSTER_SCHEMA: "values.schema.json"}
        return ChartPackage("vcluster", version, renamed=renamed)
    return ChartPackage("vcluster", version, without=(_OLD_VCLUSTER_SCHEMA,))


def _stage(chart: ChartPackage, into: Path) -> Path:
    shutil.copytree(SOURCES / chart.name, into)
    for pattern in chart.without:
        for path in into.glob(pattern):
            path.unlink()
    for old, new in chart.renamed.items():
        (into / old).replace(into / new)
    return into


def _run(helm: Path, chart: ChartPackage, source: Path, directory: Path) -> None:
    done = subprocess.run(
        [
            *(helm, "package", source, "--destination", directory),
            *("--version", chart.version, "--app-version", chart.version),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise ToolError(f"{helm} cannot package the stand-in chart {chart.file_name}: {said}")
