"""`python -m bench`: the program beside bare `helm` and `kubectl`, in one run, on a sandbox.

The commands by hand use the same charts and values, and wait for the same conditions.
"""

import base64
import datetime
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.kai.chart_values import kai_values
from kai_fleet.releases import KAI
from sandbox import lifecycle
from sandbox.chart_packages import SOURCES
from sandbox.control_plane.command_lines import POD_SECONDS
from sandbox.lifecycle import Sandbox
from tests import stack_files
from tests.engine.sandbox_commands import kubectl, listed, nodes, run, synced, until
from tests.stack_files import BASE, VCLUSTER, queue, queue_tree, team, teams
from tests.temporary import temporary

ROOT: Final = Path(__file__).resolve().parent
PAGE: Final = ROOT / "docs" / "benchmarks.md"
MARK: Final = "<!-- `make bench` writes what follows. -->\n"
FLEET: Final = (sys.executable, "-m", "kai_fleet_cli")
STACK_FILE: Final = ROOT / "Pulumi.bench.yaml"
OLD, NEW, OTHER = "v0.14.7", "v0.16.8", "v0.9.3"  # upwards in place, then back by replacement
QUEUES: Final = 200
PATIENCE: Final = 600  # seconds; the program's own waits have as many
PATIENT: Final = f"--timeout={PATIENCE}s"
HAND: Final = "team-byhand"
HERE, IN_KAI = ("-n", HAND), ("-n", "kai-scheduler")
UNLIMITED: Final = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
# Operators of v0.9 wait for this kind.
CLUSTER_POLICIES: Final = SOURCES / "gpu-operator" / "crds" / "nvidia.com_clusterpolicies.yaml"
VCLUSTER_VALUES: Final = """\
policies: {resourceQuota: {enabled: false}, limitRange: {enabled: false}}
networking: {advanced: {proxyKubelets: {byHostname: false, byIP: false}}}
sync:
  toHost: {pods: {useSecretsForSATokens: true}}
  fromHost:
    runtimeClasses: {enabled: true}
    nodes: {enabled: true, selector: {labels: {kai-fleet/pool: vision}}}
controlPlane:
  statefulSet: {image: {repository: loft-sh/vcluster-oss}}
  distro: {k8s: {scheduler: {enabled: true}, image: {tag: v1.36.3}}}
  service: {spec: {type: NodePort}}
  proxy: {extraSANs: [127.0.0.1]}
"""


@dataclass(frozen=True)
class Row:
    """Seconds of a step; `at_most` is a ratio, or seconds where nothing is done by hand."""

    step: str
    program: float
    by_hand: float | None = None
    at_most: float | None = None

    def markdown(self) -> str:
        """The row of a Markdown table."""
        hand, ratio, limit, held = "", "", "", ""
        value, unit = self.program, " s"
        if self.by_hand:
            value, unit = self.program / self.by_hand, ""
            hand, ratio = f"{self.by_hand:.1f}", f"{value:.2f}"
        if self.at_most is not None:
            limit = f"{self.at_most:g}{unit}"
            held = "yes" if value <= self.at_most else "**no**"
        return f"| {self.step} | {self.program:.1f} | {hand} | {ratio} | {limit} | {held} |"


def write(page: Path, about: str, rows: Sequence[Row]) -> None:
    """Replace what follows the mark in a page by one table."""
    head = "| | program, s | by hand, s | ratio | at most | held |\n|---|---:|---:|---:|---:|---|\n"
    lines = "".join(f"{row.markdown()}\n" for row in rows)
    page.write_text(f"{page.read_text().partition(MARK)[0]}{MARK}\n{about}\n\n{head}{lines}")


def seconds(do: Callable[..., Any], *arguments: Any) -> float:
    """The time of one call."""
    started = time.monotonic()
    do(*arguments)
    return time.monotonic() - started


def up(sandbox: Sandbox, config: Mapping[str, Any]) -> float:
    """Write the stack file, and time `fleet up`."""
    STACK_FILE.write_text(stack_text(config))
    return seconds(run, sandbox, *FLEET, "up", "--yes", "bench", "--stack", "bench")


def destroy(sandbox: Sandbox) -> None:
    """Remove the stack."""
    run(sandbox, *FLEET, "destroy", "--yes", "--stack", "bench")


def stack_text(config: Mapping[str, Any]) -> str:
    """A stack file without YAML anchors: through JSON no two places share a part."""
    return yaml.safe_dump(json.loads(json.dumps({"config": config})), sort_keys=False)


def offline_plan(sandbox: Sandbox) -> list[Row]:
    """Plan twenty teams without a cluster; the best of three."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "Pulumi.plan.yaml"
        file.write_text(stack_text(teams(20, NEW, 10)))
        plan = (*FLEET, "plan", "--stack", "bench", "--config", str(file))
        best = min(seconds(run, sandbox, *plan) for _ in range(3))
    return [Row("offline plan of 20 teams, 200 queues", best, at_most=2)]


def queue_trees(sandbox: Sandbox) -> list[Row]:
    """The queues of a host with KAI, beside `kubectl` on a file of the same objects."""
    kai = {**BASE, "kai-fleet:kai": {"version": NEW}}
    trees = ({"all": queue(1)}, queue_tree(QUEUES), queue_tree(QUEUES, first=0.5))
    none, many, changed = ({**kai, "kai-fleet:queues": tree} for tree in trees)
    up(sandbox, none)
    ours = [up(sandbox, config) for config in (many, many, changed, none)]
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "queues.json", Path(folder) / "changed.json"
        before.write_text(listed(queue_objects(trees[1])))
        after.write_text(listed(queue_objects(trees[2])))
        apply = ("kubectl", "apply", "--server-side", "-f")
        by_hand = [seconds(run, sandbox, *apply, str(file)) for file in (before, before, after)]
        by_hand.append(seconds(kubectl, sandbox, "delete", "--wait=false", "-f", str(before)))
    destroy(sandbox)
    steps = ("first `up`", "`up`, nothing changed", "`up`, one changed", "all removed")
    rows = zip(steps, ours, by_hand, strict=True)
    return [Row(f"{QUEUES} queues: {step}", *times) for step, *times in rows]


def queue_objects(tree: Mapping[str, Any], parent: str | None = None) -> Iterator[dict[str, Any]]:
    """The queues of a stack file as `kubectl` takes them, under names of their own."""
    for key, declared in tree.items():
        name = f"by-hand-{key}"
        yield queue_object(name, {**UNLIMITED, **declared["gpu"]}, parent)
        yield from queue_objects(declared.get("children", {}), name)


def queue_object(name: str, gpu: Mapping[str, Any], parent: str | None = None) -> dict[str, Any]:
    """A Queue as its API has it."""
    resources = {"cpu": UNLIMITED, "memory": UNLIMITED, "gpu": gpu}
    return stack_files.queue_object(name, resources, parent)


@dataclass
class ByHand:
    """The steps of one team as a person would script them."""

    sandbox: Sandbox

    def new_team(self, version: str) -> None:
        """From nothing to accepted queues."""
        kubectl(self.sandbox, "create", "namespace", HAND)
        chart = f"{self.sandbox.directory}/charts/vcluster-0.36.1.tgz"
        install = ("install", "byhand", chart, *HERE, "--values", "-")
        run(self.sandbox, "helm", *install, stdin=VCLUSTER_VALUES)
        kubectl(self.sandbox, *HERE, "create", "quota", "gpus", "--hard=requests.nvidia.com/gpu=2")
        kubectl(self.sandbox, *HERE, "wait", "--for=create", "secret/vc-byhand", PATIENT)
        secret = kubectl(self.sandbox, *HERE, "get", "secret", "vc-byhand", "-o", "json")
        service = kubectl(self.sandbox, *HERE, "get", "service", "byhand", "-o", "json")
        config = yaml.safe_load(base64.b64decode(secret["data"]["config"]))
        port = service["spec"]["ports"][0]["nodePort"]
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        Path(self._at["KUBECONFIG"]).write_text(yaml.safe_dump(config))
        until(lambda: "ok" in self._quiet("get", "--raw", "/readyz"), PATIENCE)
        self._inside("create", "namespace", "kai-scheduler")
        self.helm("install", version)
        self._create(queue_object("default", UNLIMITED))
        self._create(queue_object("test", UNLIMITED, "default"))

    def replace(self, version: str) -> None:
        """Clean up, uninstall, install, wait."""
        for name in ("configs.kai.scheduler/kai-config", "schedulingshards.kai.scheduler/default"):
            self._inside("delete", name, "--ignore-not-found")
        hooks = "validatingwebhookconfigurations,mutatingwebhookconfigurations"
        until(lambda: "kai-scheduler" not in self._quiet("get", hooks, "-o", "yaml"))
        run(self.sandbox, "helm", "uninstall", "kai-scheduler", "--wait", *IN_KAI, **self._at)
        self._inside("apply", "-f", str(CLUSTER_POLICIES))
        self.helm("install", version)

    def remove(self) -> None:
        """The team, whole."""
        run(self.sandbox, "helm", "uninstall", "byhand", "-n", HAND, "--wait")
        kubectl(self.sandbox, "delete", "namespace", HAND)

    def helm(self, verb: str, version: str, *flags: str) -> None:
        """Install or upgrade KAI, and wait until it accepts a queue."""
        chart = str(self.sandbox.directory / "charts" / f"kai-scheduler-{version}.tgz")
        command = ("helm", verb, "kai-scheduler", chart, *IN_KAI, "--wait", *flags)
        values = json.dumps(kai_values(KAI[version], {"version": version}))
        run(self.sandbox, *command, "--values", "-", stdin=values, **self._at)
        until(lambda: set(KAI[version].deployments) <= self._rolled_out(), PATIENCE)
        for name in KAI[version].ready_conditions:
            for state in ("create", "condition=Ready"):
                self._inside("wait", f"--for={state}", name, PATIENT)
        self._create(queue_object("probe", UNLIMITED), "--dry-run=server")

    @property
    def _at(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.sandbox.directory / "byhand.kubeconfig")}

    def _inside(self, *arguments: str, **more: Any) -> Any:
        return kubectl(self.sandbox, *arguments, **more, **self._at)

    def _create(self, manifest: Any, *flags: str) -> None:
        self._inside("create", *flags, "-f", "-", stdin=json.dumps(manifest))

    def _quiet(self, *arguments: str) -> str:
        try:
            return run(self.sandbox, "kubectl", *arguments, **self._at)
        except AssertionError:
            return ""  # not there yet

    def _rolled_out(self) -> set[str]:
        found = json.loads(self._quiet(*IN_KAI, "get", "deployments", "-o", "json") or "{}")
        return {item.name for item in map(KubeObject, found.get("items", [])) if item.rolled_out}


def one_team(sandbox: Sandbox, in_place: float | None) -> list[Row]:
    """A team beside a neighbour, each step twice by each: the better counts."""
    alone = {"neighbour": team("research", NEW)}
    base = {**BASE, "kai-fleet:vcluster": VCLUSTER, "kai-fleet:teams": alone}
    up(sandbox, base)
    nothing, hand = min(up(sandbox, base) for _ in range(2)), ByHand(sandbox)
    ours, by_hand = [], []
    for _ in range(2):
        moves = [alone | {"mover": team("ml", version)} for version in (OLD, NEW, OTHER)]
        done = [up(sandbox, {**base, "kai-fleet:teams": move}) for move in moves]
        synced(sandbox, "team-mover", "ml", KAI[OTHER].deployments)
        ours.append([*done, up(sandbox, {**base, "kai-fleet:removed": ["mover"]})])
        done = [seconds(hand.new_team, OLD), seconds(hand.helm, "upgrade", NEW, "--install")]
        done.append(seconds(hand.replace, OTHER))
        synced(sandbox, HAND, "vision", KAI[OTHER].deployments)
        by_hand.append([*done, seconds(hand.remove)])
    destroy(sandbox)
    steps = (("new team", 1.1), ("switch in place", in_place), ("replaced", 1.25), ("removal", 1.3))
    best = zip(steps, map(min, *ours), map(min, *by_hand), strict=True)
    rows = [Row(step, program, script, limit) for (step, limit), program, script in best]
    return [*rows, Row("`up`, nothing changed", nothing)]


def many_teams(sandbox: Sandbox, count: int, new_team: float) -> list[Row]:
    """So many teams in one `up`; by hand one comes after the other, `new_team` seconds each."""
    config = teams(count, OLD)
    with nodes(sandbox, (f"bench-{number}" for number in range(count))):
        first, nothing = up(sandbox, config), up(sandbox, config)
        destroy(sandbox)
    rows = [Row(f"{count} teams: first `up`", first, count * new_team, 0.4)]
    return [*rows, Row(f"{count} teams: `up`, nothing changed", nothing, at_most=25)]


def main(
    many: Annotated[int, typer.Option("--teams", help="As many teams at once: 20.")] = 0,
    charts: Annotated[Path | None, typer.Option(help="Packaged charts, not stand-ins.")] = None,
    to_page: Annotated[bool, typer.Option("--write", help=f"Write {PAGE.name}.")] = False,
) -> None:
    """Compare the program with bare helm and kubectl on a sandbox of its own."""
    given = sorted(charts.glob("*.tgz")) if charts else []
    pod_seconds, in_place = ("8", 1.15) if charts else ("13", None)  # packaged ones have jobs
    if charts and not given:
        raise typer.BadParameter(f"{charts} holds no chart; `helm package` writes NAME-VERSION.tgz")
    with tempfile.TemporaryDirectory(prefix="kai-fleet-bench-") as folder:
        where = Path(folder) / "sandbox"
        os.environ |= {"KAI_FLEET_SANDBOX": str(where), POD_SECONDS: pod_seconds}
        with temporary(where):
            sandbox = lifecycle.up(print)
            for package in given:
                shutil.copy(package, sandbox.directory / "charts")
            try:
                rows = offline_plan(sandbox) + queue_trees(sandbox)
                rows += one_team(sandbox, in_place)
                new = next(row.by_hand or 0 for row in rows if row.step == "new team")
                rows += many_teams(sandbox, many, new) if many else []
            finally:
                STACK_FILE.unlink(missing_ok=True)
    print("\n".join(row.markdown() for row in rows))
    if to_page:
        host = f"{datetime.date.today()}, {platform.machine()}, {os.cpu_count()} cores"
        simulated = ", ".join((*sandbox.standins, *(() if given else ("charts",))))
        write(PAGE, f"{host}; pods start after {pod_seconds} s; stand-ins: {simulated}.", rows)


if __name__ == "__main__":
    typer.run(main)
