"""A folder with stack files, an engine that only notes what it is asked, and the commands on it."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from typer.testing import CliRunner

from kai_fleet_cli.app import app
from kai_fleet_cli.commands import updates
from kai_fleet_cli.engine import environment, runs, workspace
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import changes, state

LAB = """\
# the lab
config:
  kai-fleet:cluster: {name: lab, context: lab}   # its own
  kai-fleet:teams:
    # the first team
    ml:
      scheduler: {mode: virtual, version: v0.14.7}  # their choice
      nodePool: {pool: ml}
      gpus: 4
      queues:
        default:
          gpu: {quota: 4}
          children:
            train: {gpu: {quota: 3}}
            serve: {gpu: {quota: 1, limit: 2}}
    dev:
      scheduler: {mode: default}
      nodePool: {pool: dev}
      gpus: 1
"""
OWN = """\
# vision's own
config:
  kai-fleet:platform: {stack: organization/kai-fleet/lab}
  kai-fleet:team:
    name: vision
    scheduler: {mode: virtual, version: v0.14.7}   # ours
    queues: {default: {gpu: {quota: 2}, children: {a: {gpu: {quota: 2}}}}}
"""
# The options of `team add` for a team that the lab has room for.
ADD = ("--mode", "virtual", "--version", "v0.16.8", "--pool", "pool=new", "--gpus", "2")
GRANT = "  kai-fleet:teamStacks:\n    vision: {nodePool: {pool: vision}, gpus: 2}\n"


@dataclass
class Ran:
    """How a command ended: its exit code, what it printed, and the sentence of its refusal."""

    code: int
    out: str
    refusal: str


@dataclass
class Engine:
    """Notes what it is asked; `fails` is raised by every update, or by the one of `fails_at`."""

    asked: list[str] = field(default_factory=list)
    fails: BaseException | None = None
    fails_at: str = ""

    def stack(self, name, variables):
        return FakeStack(name, self, dict(variables))

    def up(self, stack, *, removed=(), refresh=False, agree=None):
        going = f", without {','.join(removed)}" if removed else ""
        self.asked.append(f"up {stack.name}{going}")
        if self.fails is not None and self.fails_at in ("", stack.name):
            raise self.fails
        new = {"mode": "default", "gpus": 1, "server": "https://x", "queues": ["a"]}
        return Report(outputs={"teams": {"new": new}})

    def destroy(self, stack, *, remove=False, refresh=False):
        self.asked.append(f"destroy {stack.name}{', and the stack' if remove else ''}")
        if self.fails is not None and self.fails_at == f"destroy {stack.name}":
            raise self.fails
        if remove:
            reading.path_of(stack.name).unlink()  # as the CLI does, with the stack


@dataclass
class FakeStack:
    name: str
    engine: Engine
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def workspace(self):
        return SimpleNamespace(env_vars=self.variables)


@dataclass
class Project:
    """The folder and the engine; `run` is a command as typed."""

    root: Path
    engine: Engine

    @classmethod
    def of(cls, root, monkeypatch, *, own=False):
        (root / "Pulumi.lab.yaml").write_text(LAB + (GRANT if own else ""))
        if own:
            (root / "Pulumi.lab-vision.yaml").write_text(OWN)
        fake = Engine()
        monkeypatch.setattr(reading, "ROOT", root)
        monkeypatch.setattr(workspace, "open_stack", fake.stack)
        for name in ("up", "destroy"):
            monkeypatch.setattr(runs, name, getattr(fake, name))
        ready = environment.Environment()
        for module in (changes, updates, state, environment):
            monkeypatch.setattr(module, "for_stack", lambda stack, **_: ready)
        return cls(root, fake)

    def run(self, *arguments) -> Ran:
        result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200", **os.environ})
        error = result.exception
        refusal = "" if error is None or isinstance(error, SystemExit) else str(error)
        if refusal and not isinstance(error, UserError):
            raise error
        return Ran(1 if refusal else result.exit_code, result.output, refusal)

    def text(self, stack="lab"):
        return (self.root / f"Pulumi.{stack}.yaml").read_bytes().decode()

    def files(self):
        return {path.name: path.read_bytes() for path in self.root.iterdir()}
