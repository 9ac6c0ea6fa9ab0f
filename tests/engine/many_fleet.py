"""An environment of twenty teams, the commands on it as typed, and what is looked at afterwards."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes import client

from kai_fleet.deployed import TEAM, TEAM_NAMESPACE
from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.lifecycle import Sandbox
from tests.engine.product import copied, queues
from tests.stack_files import BASE, VCLUSTER, team

STACK = "many"
OLD, NEW = "v0.14.7", "v0.16.8"
INSIDE = [f"in{n:02}" for n in range(15)]  # in the platform's stack
OWN = [f"own{n}" for n in range(5)]  # in their own
UNCHANGED = ("same", "read", "refresh")


@dataclass
class Ran:
    """A command that went well: what it printed, and the engine's steps as (operation, URN)."""

    printed: str
    steps: list[tuple[str, str]]

    @property
    def stacks(self) -> set[str]:
        """The stacks that it ran an update or a removal of."""
        return {urn.split(":")[2] for _, urn in self.steps}

    @property
    def changed(self) -> set[str]:
        """The URNs of what did not stay as it was; a stack itself is no more than its outputs."""
        return {
            urn
            for operation, urn in self.steps
            if operation not in UNCHANGED and "::pulumi:pulumi:Stack::" not in urn
        }


@dataclass
class Fleet:
    """The commands, run in a copy of the project: they edit the files beside their own code."""

    folder: Path
    sandbox: Path

    def __call__(self, *arguments: str, stack: str = STACK) -> Ran:
        events = self.folder / f"events.{stack}"
        events.unlink(missing_ok=True)
        heard = [sys.executable, str(ROOT / "tests" / "engine" / "heard.py"), str(events)]
        ran = subprocess.run(
            [*heard, *arguments, "--stack", stack],
            cwd=self.folder,
            env={**os.environ, "KAI_FLEET_SANDBOX": str(self.sandbox)}
            | {"PYTHONPATH": str(self.folder), "COLUMNS": "120"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{arguments}: {ran.stdout}{ran.stderr}"
        steps = [tuple(line.split(" ", 1)) for line in events.read_text().splitlines()]
        return Ran(ran.stdout, steps)

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.folder.glob(f"Pulumi.{STACK}*.yaml")}


def project(folder: Path, sandbox: Sandbox) -> Fleet:
    """A copy of the project with the stack files of the twenty."""
    write_stacks(copied(folder))
    return Fleet(folder, sandbox.directory)


def write_stacks(folder: Path) -> None:
    """The platform with its teams and grants, and a file for each team with a stack of its own."""
    salt = yaml.safe_load((ROOT / "Pulumi.sandbox.yaml").read_text())["encryptionsalt"]
    mine = {name: team(f"many-{name}", OLD) for name in INSIDE}
    theirs = {name: team(f"many-{name}", OLD) for name in OWN}
    grants = {name: {key: its[key] for key in ("nodePool", "gpus")} for name, its in theirs.items()}
    platform = {
        **BASE,
        "kai-fleet:cluster": {"name": STACK, "context": "kai-fleet-sandbox"},
        "kai-fleet:vcluster": VCLUSTER,
        "kai-fleet:teams": mine,
        "kai-fleet:teamStacks": grants,
    }
    files = {STACK: platform} | {
        f"{STACK}-{name}": {
            "kai-fleet:platform": {"stack": STACK},
            "kai-fleet:team": {"name": name} | its,
        }
        for name, its in theirs.items()
    }
    for stack, config in files.items():
        text = yaml.safe_dump({"config": config, "encryptionsalt": salt}, sort_keys=False)
        (folder / f"Pulumi.{stack}.yaml").write_text(text)


def take_down(fleet, sandbox):
    """Remove all that there still is, and forget the stacks: other tests share the sandbox."""
    environment = {**os.environ, **sandbox.env()}
    asked = {"cwd": fleet.folder, "env": environment, "capture_output": True, "check": True}
    known = subprocess.run(["pulumi", "stack", "ls", "--json"], **asked).stdout
    stacks = [stack["name"] for stack in yaml.safe_load(known)]

    def gone(stack):
        fleet("destroy", "--yes", stack=stack)
        subprocess.run(["pulumi", "stack", "rm", stack, "--yes", "--preserve-config"], **asked)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(gone, [stack for stack in stacks if stack.startswith(f"{STACK}-")]))
    if STACK in stacks:
        gone(STACK)


def uids(host, everybody, but=""):
    """What must stay: each team's namespace, its vCluster, its queues; of all teams but one."""
    spaces = {
        item.metadata.name: item.metadata for item in client.CoreV1Api(host).list_namespace().items
    }
    stateful = client.AppsV1Api(host).list_stateful_set_for_all_namespaces(
        label_selector="app=vcluster"
    )
    clusters = {item.metadata.name: item.metadata for item in stateful.items}
    return {
        name: {
            "namespace": spaces[f"team-{name}"].uid,
            "vcluster": (clusters[name].uid, clusters[name].generation),
            **{queue: it["metadata"]["uid"] for queue, it in queues(inside).items()},
        }
        for name, inside in everybody.items()
        if name != but
    }


def is_of(urn, name):
    """Whether a resource is that team's: below the team, in its own stack, or what it is granted.

    A URN tells the types above a resource, and not their names; a team's resources carry its name.
    """
    stack, kinds, called = urn.split(":", 3)[2], *urn.split("::")[2:]
    if stack == f"{STACK}-{name}":
        return True
    top = kinds.split("$")[0]
    if top in (TEAM, TEAM_NAMESPACE):
        return called == name or called.startswith(f"{name}-")
    access = "kai-fleet:index:TeamStackAccess" in kinds.split("$")
    return access and called.startswith(f"host-team-stacks-{name}-")


def is_of_kai(urn, name):
    """Whether a resource goes by the version of a team's KAI: also what a guard lets pods ask."""
    return f"::{name}-kai" in urn or urn.endswith(f"::{name}-guard-policy")


def states(sandbox):
    """What is kept of each stack, by its name."""
    kept = (sandbox.directory / "state").rglob(f"stacks/**/{STACK}*.json")
    return {path.stem: path.read_bytes() for path in kept}
