"""Packaging the stand-in charts: one archive for each version that they stand in for."""

import io
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from kai_fleet.releases import GPU_PROVIDERS, KAI, VCLUSTER
from sandbox.directory import SandboxError
from sandbox.tools.table import Say

SOURCES: Final = Path(__file__).parent / "charts"
# Every version that the release tables know.
KAI_VERSIONS: Final = tuple(KAI)
VCLUSTER_VERSIONS: Final = tuple(release.chart_version for release in VCLUSTER.values())


@dataclass(frozen=True)
class ChartPackage:
    """A stand-in chart in one version."""

    name: str
    version: str

    @property
    def file_name(self) -> str:
        """The archive's name, by Helm's convention."""
        return f"{self.name}-{self.version}.tgz"

    def files(self) -> dict[str, bytes]:
        """Path in the archive and content of everything that this version has."""
        sources = [path for path in sorted((SOURCES / self.name).rglob("*")) if path.is_file()]
        found = {str(path.relative_to(SOURCES)): path.read_bytes() for path in sources}
        about = yaml.safe_load(found[f"{self.name}/Chart.yaml"])
        about |= {"version": self.version, "appVersion": self.version}
        found[f"{self.name}/Chart.yaml"] = yaml.safe_dump(about).encode()
        if self.version.startswith(("v0.7.", "v0.8.")):  # KAI without an operator, and so no Config
            found = {path: found[path] for path in found if "/crds/kai.scheduler_" not in path}
        schema = found.pop("vcluster/values.schema.before-v0.32.json", None)
        if schema and tuple(map(int, self.version.split("."))) < (0, 32):
            found["vcluster/values.schema.json"] = schema
        return found


def packages() -> list[ChartPackage]:
    """Every chart that `package` writes."""
    return [
        *(ChartPackage("kai-scheduler", version) for version in KAI_VERSIONS),
        *(ChartPackage("vcluster", version) for version in VCLUSTER_VERSIONS),
        *(ChartPackage(each.chart, each.version) for each in GPU_PROVIDERS.values() if each.chart),
    ]


def package(directory: Path, say: Say) -> None:
    """Package every stand-in chart into `directory` that is missing or older than its sources.

    Raises SandboxError where one cannot be written.
    """
    newest = max(path.stat().st_mtime for path in (Path(__file__), *SOURCES.rglob("*")))
    files = {chart: directory / chart.file_name for chart in packages()}
    outdated = [
        chart for chart, file in files.items() if not file.exists() or file.stat().st_mtime < newest
    ]
    if outdated:
        say(f"packaging {len(outdated)} stand-in charts")
    for chart in outdated:
        try:
            _write(chart, files[chart])
        except OSError as why:
            raise SandboxError(
                f"the stand-in chart {chart.file_name} cannot be packaged: {why.strerror}"
            ) from why


def _write(chart: ChartPackage, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    with tarfile.open(new, "w:gz") as archive:
        for path, content in chart.files().items():
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    new.replace(file)
