"""What needs no cluster: imports and settings, the offline plan, the diff of two plans."""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.figures import Figure, Table, exponent
from bench.program import run
from bench.stacks import host_queues, teams, text
from kai_fleet_cli.stack_file.reading import ROOT

_SDKS: Final = "import pulumi, pulumi_kubernetes.core.v1, pydantic"
_OURS: Final = (
    "import kai_fleet.host.platform, kai_fleet.team;"
    "import kai_fleet_policies.validation, pathlib; from kai_fleet_cli.stack_file import reading;"
    "kai_fleet_policies.validation.validate(reading.read(pathlib.Path('{file}')))"
)


def compare() -> Table:
    """Wanted: 100 teams and 1,000 queues planned in 5 s; imports and settings in half a second."""
    table = Table("Without a cluster", "limit")
    points = []
    with tempfile.TemporaryDirectory() as folder:
        for count, queues in ((4, 10), (20, 10), (100, 10)):
            file = Path(folder) / f"Pulumi.bench{count}.yaml"
            file.write_text(text({"config": teams(count, "v0.16.8", queues)}))
            took = _plan(file)
            limit = 5.0 if count == 100 else None
            what = f"offline plan: {count} teams, {count * queues} queues"
            table.figures.append(Figure(what, took, limit, 1.0 if limit else None))
            points.append((float(count), took))
        for count in (4, 100):
            took = _diff(Path(folder) / f"{count}", count)
            what = f"offline diff: {count} teams, {count * 10} queues, one version changed"
            table.figures.append(Figure(what, took))
        file = Path(folder) / "Pulumi.queues.yaml"
        file.write_text(text({"config": host_queues(5000)}))
        table.figures.append(Figure("offline plan: 5,000 queues on a host", _plan(file)))
        small = Path(folder) / "Pulumi.bench4.yaml"
        ours = _seconds(_OURS.format(file=small), after=_SDKS)
        table.figures += [
            Figure("imports and settings, without the SDKs'", ours, 0.5, 1.0),
            Figure("imports of Pulumi's SDKs and pydantic", _seconds(_SDKS)),
        ]
    table.notes.append(
        f"The plan grows with teams^{exponent(points[1:]):.2f} (1 is linear). Each is the best of"
        " three."
    )
    return table


def _plan(file: Path) -> float:
    """The best of three."""
    plan = ("plan", "--stack", "bench", "--config", str(file))
    command = [sys.executable, "-m", "kai_fleet_cli", *plan]
    runs = [run([*command, "--format", "json"], os.environ, ROOT) for _ in range(3)]
    assert json.loads(runs[0].printed)["ok"], runs[0].printed[-2000:]
    return min(ran.seconds for ran in runs)


def _diff(project: Path, count: int) -> float:
    """A copy of the project, committed with so many teams; then one of them has another version."""
    project.mkdir()
    for part in ("kubectl", "components", "policies", "cli"):
        shutil.copytree(ROOT / part, project / part)
    for part in ("__main__.py", "Pulumi.yaml"):
        shutil.copy(ROOT / part, project)
    stack, config = project / "Pulumi.bench.yaml", teams(count, "v0.16.8", 10)
    stack.write_text(text({"config": config}))
    me = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    for command in (("init", "-q"), ("add", "-A"), (*me, "commit", "-q", "-m", "before")):
        run(["git", *command], os.environ, project)
    config["kai-fleet:teams"]["team0"]["scheduler"]["version"] = "v0.17.0"
    stack.write_text(text({"config": config}))
    asked = [sys.executable, "-m", "kai_fleet_cli", "diff", "--stack", "bench", "--base", "HEAD"]
    ran = run([*asked, "--format", "json"], os.environ, project, fine=(3,))
    assert "v0.17.0" in ran.printed, ran.printed[-2000:]
    return ran.seconds


def _seconds(code: str, after: str = "pass") -> float:
    """What code takes in a new Python, once `after` has run there: the better of three."""
    clock = "time.perf_counter()"
    timed = f"import time\n{after}\nbegun = {clock}\n{code}\nprint({clock} - begun)"
    return min(
        float(run([sys.executable, "-c", timed], os.environ, ROOT).printed) for _ in range(3)
    )
