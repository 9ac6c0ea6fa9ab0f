"""A team's removal, out of a stack of many or with its own, with the state written once.

For each thing that goes the engine writes the whole state twice: a fifth of a second where a stack
has fifteen teams, which is more than most things take to go. A killed run that did not would lose
what it made. A removal makes nothing; all it could lose is which things are gone already. So beside
the state stands, for as long as it runs, whose removal it is. Whoever finds that later looks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from fleet.environment import NotPossible
from fleet.neighbours import goes_with, parents_of
from fleet.recording import PROJECT
from fleet.recovery import file_backend, locks, state
from fleet.recovery.state import NAMESPACE, RELEASE, Operation, State, provider_of

Say = Callable[[str], None]
# The engine's own variable: it saves the state when the update ends, in whatever way but killed.
_ONCE: Final = "PULUMI_SKIP_CHECKPOINTS"
_COMMAND: Final = "command:local:Command"
_PROVIDER: Final = "pulumi:providers:"
_PATIENCE_SECONDS: Final = 120.0


@contextmanager
def noted(stack: automation.Stack, team: str) -> Iterator[None]:
    """Have the engine write the state once at the end of what runs meanwhile.

    Nothing of that may make anything. On other than file backends all is as ever: what keeps a
    journal of its own writes a step in no time.
    """
    note = _written(stack, team)
    if note is None:
        yield
        return
    variables = stack.workspace.env_vars
    stack.workspace.env_vars = {**variables, _ONCE: "true"}
    try:
        yield
    finally:
        stack.workspace.env_vars = variables
    note.unlink(missing_ok=True)  # not after an error: the engine may have been killed


def cut_off(stack: automation.Stack) -> str | None:
    """The team whose removal did not end well, if any."""
    folder = file_backend.folder(stack.workspace.env_vars)
    try:
        return str(json.loads(_note(folder, stack.name).read_text())["team"]) if folder else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def settle(stack: automation.Stack, now: State, team: str, say: Say) -> None:
    """Take out of the state what a removal that was cut off had removed, and forget its note.

    Raises CommandError, and NotPossible where the host cluster cannot be asked.
    """
    release = _of_vcluster(now, team, RELEASE)
    status = _on_host(stack, now, team, say)
    if release is not None and status not in ("absent", "deployed"):
        say(f"the vCluster of team {team} is half uninstalled ({status}): the rest of it goes now")
        stack.destroy(
            target=[release["urn"]],
            target_dependents=True,
            suppress_outputs=True,
            suppress_progress=True,
        )
        now = state.read(stack)
    elif status == "absent":
        say(f"the vCluster of team {team} is gone already, and all that was in it")
        drop_vcluster(now, team)
        now.save(stack)
    if status != "deployed" and (left := on_host(now, team)):
        stack.refresh(target=left, suppress_outputs=True, suppress_progress=True)
    folder = file_backend.folder(stack.workspace.env_vars)
    if folder is not None:
        _note(folder, stack.name).unlink(missing_ok=True)


def drop_vcluster(now: State, team: str) -> None:
    """Drop a team's release from the state, all that went with it, and the steps that waited."""
    theirs = _custom(now, team)
    inside = _inside(theirs)
    release = _of_vcluster(now, team, RELEASE)
    gone = {it["urn"] for it in theirs if it["type"] == _COMMAND or provider_of(it) in inside}
    if release is not None:
        with_it = (it["urn"] for it in theirs if it.get("deletedWith") == release["urn"])
        gone |= {release["urn"], *with_it}
    now.drop(gone | inside)


def on_host(now: State, team: str) -> list[str]:
    """The URNs of what a team has on the host: whether that is there has to be read."""
    theirs = _custom(now, team)
    inside = _inside(theirs)
    return [
        it["urn"]
        for it in theirs
        if it["type"] != _COMMAND and it["urn"] not in inside and provider_of(it) not in inside
    ]


def _custom(now: State, team: str) -> list[dict[str, Any]]:
    going = goes_with(team, parents_of(now.resources))
    return [it for it in now.resources if it.get("custom") and it["urn"] in going]


def _inside(theirs: list[dict[str, Any]]) -> set[str]:
    """The providers of what is in the vCluster."""
    return {it["urn"] for it in theirs if str(it["type"]).startswith(_PROVIDER)}


def _of_vcluster(now: State, team: str, kind: str) -> dict[str, Any] | None:
    """The release or the namespace that a team's vCluster has on the host."""
    mark = f":VirtualCluster${kind}::"
    return next((it for it in _custom(now, team) if mark in it["urn"]), None)


def _on_host(stack: automation.Stack, now: State, team: str, say: Say) -> str:
    """What Helm says of the vCluster's release, "absent" without one; waits for a namespace that
    is about to go.
    """
    from fleet.recovery.live_objects import Cluster, Unanswered  # a client of Kubernetes: slow

    space = _of_vcluster(now, team, NAMESPACE)
    if space is None:
        return "absent"  # it goes last
    name = Operation("", space).address[1]
    until = time.monotonic() + _PATIENCE_SECONDS
    try:
        with ExitStack() as clusters:
            cluster = Cluster(state.provider_inputs(stack)[provider_of(space)], clusters)
            if cluster.goes(space["inputs"], "", name):
                say(f"waiting until namespace {name} is gone")
            while cluster.goes(space["inputs"], "", name) and time.monotonic() < until:
                time.sleep(1.0)
            return cluster.release(name, team)[0]
    except Unanswered as why:
        raise NotPossible(
            f"what the removal of team {team} left cannot be settled: its cluster cannot be asked:"
            f" {why}. See that kubectl reaches it, then run the same command again"
        ) from None


def _written(stack: automation.Stack, team: str) -> Path | None:
    """The note, written; None where it cannot be, and where the engine will refuse to begin."""
    variables = stack.workspace.env_vars
    folder = file_backend.folder(variables)
    if folder is None or locks.holder(stack.name, variables) is not None:
        return None
    note = _note(folder, stack.name)
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"team": team}))
    except OSError:
        return None
    return note


def _note(folder: Path, stack: str) -> Path:
    return folder / "kai-fleet" / PROJECT / f"{stack}.removal.json"
