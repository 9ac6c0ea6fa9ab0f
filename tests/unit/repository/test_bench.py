"""The benchmark's table, and a dry run of every step: its commands, its stack files, its values."""

import base64
import json
import subprocess
from pathlib import Path

import pytest
import typer
import yaml

import bench
from bench import Row
from kai_fleet.releases import KAI
from kai_fleet_cli.app import app
from kai_fleet_stack.settings.loading import load
from sandbox.lifecycle import Sandbox

KUBECONFIG = {"clusters": [{"name": "vc", "cluster": {"server": "https://localhost:8443"}}]}


def rolled_out(name):
    counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), 1)
    return {
        "kind": "Deployment",
        "metadata": {"name": name, "generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, **counts},
    }


class Commands:
    """Stands for every command that the benchmark runs, and answers as a cluster that is well."""

    def __init__(self):
        self.ran, self.stacks = [], []

    def __call__(self, command, *, env, input, **_):
        if command[:3] == bench.FLEET:
            self.fleet(command[3:])
        else:
            self.ran.append((" ".join(map(str, command)), "byhand" in env.get("KUBECONFIG", "")))
        printed = self.answer(" ".join(command))
        return subprocess.CompletedProcess(command, 0, printed, "")

    def fleet(self, arguments):
        """The command line is one of `fleet`, and the stack file is without mistakes."""
        group = typer.main.get_command(app)
        name, _, rest = group.resolve_command(group.make_context("fleet", [*arguments]), arguments)
        group.get_command(None, name).make_context(name, list(rest))
        self.ran.append((f"fleet {' '.join(arguments)}", False))
        if name == "up":
            config = yaml.safe_load(bench.STACK_FILE.read_text())["config"]
            read = load({key.partition(":")[2]: value for key, value in config.items()})
            assert read.settings is not None, read
            self.stacks.append(read.settings)

    def answer(self, command):
        if "get secret " in command:
            config = base64.b64encode(yaml.safe_dump(KUBECONFIG).encode()).decode()
            return json.dumps({"data": {"config": config}})
        if "get service " in command:
            return json.dumps({"spec": {"ports": [{"nodePort": 30123}]}})
        if "get deployments" in command:
            names = {name for release in KAI.values() for name in release.deployments}
            return json.dumps({"items": [rolled_out(name) for name in names]})
        return json.dumps({"items": []}) if "get pods" in command else "ok"


@pytest.fixture
def commands(tmp_path, monkeypatch):
    ran = Commands()
    monkeypatch.setattr(subprocess, "run", ran)
    monkeypatch.setattr(bench, "STACK_FILE", tmp_path / "Pulumi.bench.yaml")
    return ran


@pytest.fixture
def sandbox(tmp_path):
    return Sandbox(tmp_path, ())


def test_the_page_keeps_what_is_before_the_mark_and_has_ratios_and_limits(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Benchmarks\n\n{bench.MARK}\nold\n")
    rows = [Row("removal", 10.8, 10.6, 1.3), Row("plan", 2.1, at_most=2)]
    bench.write(page, "today, 2 cores.", rows)
    head, _, written = page.read_text().partition(bench.MARK)
    assert (head, "old" in written) == ("# Benchmarks\n\n", False)
    assert written.endswith(
        "| removal | 10.8 | 10.6 | 1.02 | 1.3 | yes |\n| plan | 2.1 |  |  | 2 s | **no** |\n"
    )


def test_both_do_each_step_to_one_team_twice(commands, sandbox):
    rows = bench.one_team(sandbox, None)
    steps = ["new team", "switch in place", "replaced", "removal"]
    assert [row.step for row in rows if row.by_hand] == steps
    lines = [line for line, _ in commands.ran]
    assert lines.count("fleet up --yes bench --stack bench") == 3 + 2 * 4
    assert lines.count("kubectl delete namespace team-byhand") == 2
    inside = [" ".join(line.split()[:3]) for line, at in commands.ran if at and "helm" in line]
    steps = ["install", "upgrade", "uninstall", "install"]
    assert inside == [f"helm {step} kai-scheduler" for step in steps] * 2
    versions = [stack.teams["mover"].scheduler.version for stack in commands.stacks[3:6]]
    assert versions == [bench.OLD, bench.NEW, bench.OTHER]
    assert "mover" not in commands.stacks[6].teams
    written = yaml.safe_load((sandbox.directory / "byhand.kubeconfig").read_text())
    assert written["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:30123"


def test_queues_by_hand_are_those_of_the_stack_file(commands, sandbox):
    rows = bench.queue_trees(sandbox)
    assert len(rows) == 4
    objects = list(bench.queue_objects(bench.queue_tree(bench.QUEUES)))
    assert len(objects) == 199
    parents = {item["metadata"]["name"]: item["spec"].get("parentQueue") for item in objects}
    assert parents["by-hand-q3-4"] == "by-hand-g3"
    assert parents["by-hand-all"] is None
    assert "by-hand-by-hand" not in "".join(parents)


def test_a_folder_without_charts_is_refused(tmp_path: Path):
    with pytest.raises(typer.BadParameter, match="holds no chart; `helm package` writes"):
        bench.main(charts=tmp_path)
