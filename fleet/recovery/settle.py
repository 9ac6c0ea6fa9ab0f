"""Before an update: what an interrupted one left undecided is looked up and settled.

A killed engine leaves in the state what it had begun. Whether a create got through only the
cluster knows: left alone, the next update would make the thing again, and be told that it exists.
An API server or a provider that goes away in the middle leaves not even that.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from pulumi import automation

from fleet.environment import NotPossible
from fleet.recovery import orphans, removals, state
from fleet.recovery.state import RELEASE, Operation, State

if TYPE_CHECKING:
    from fleet.recovery.judgement import Verdict

Say = Callable[[str], None]
# What the API server, Helm and the providers say of a thing that is there.
_EXISTS: Final = ("exists already", "already exists", "AlreadyExists", "cannot re-use a name")
# What Helm says of a release that an earlier run left locked.
_LOCKED: Final = ("another operation (install/upgrade/rollback) is in progress",)
_HISTORY: Final = 20  # updates to look back


def settle(stack: automation.Stack, say: Say) -> None:
    """Make the state and the clusters agree on what the last run had begun.

    An object that it made is taken into the state; a release that was half installed is
    uninstalled; Helm's lock on a release is taken off. What somebody else made is left alone: the
    update then says that it exists. Raises CommandError, and NotPossible where the host cluster
    cannot be asked.
    """
    if not state.is_settled(stack):
        now = state.read(stack)
        if operations := now.operations():
            begun = ", ".join(f"{operation} ({operation.kind})" for operation in operations)
            _take_over(stack, now, begun, say)
            _carry_out(stack, now, _judge(stack, now, operations, None, say))
    if (team := removals.cut_off(stack)) is not None:
        now = state.read(stack)
        _take_over(stack, now, f"the removal of team {team}", say)
        removals.settle(stack, now, team, say)


def _take_over(stack: automation.Stack, now: State, begun: str, say: Say) -> None:
    now.save(stack)  # takes the stack's lock: what another run is doing is not to be settled
    say(f"the last run ended in the middle of: {begun}")
    orphans.wait(stack.workspace.work_dir, say)


def recover(stack: automation.Stack, failed: Sequence[tuple[Any, str]], say: Say) -> bool:
    """After a run that failed: settle what stood in its way, if an earlier failure left that.

    `failed` has each failed step's event metadata and its message. True: run it again.
    """
    operations = [
        operation
        for step, message in failed
        if step.new is not None and (operation := _in_the_way(step, message)) is not None
    ]
    if not operations:
        return False
    now = state.read(stack)
    verdict = _judge(stack, now, operations, _failing_since(stack), say)
    _carry_out(stack, now, verdict)
    return verdict.decided


def _in_the_way(step: Any, message: str) -> Operation | None:
    kind = str(getattr(step.op, "value", step.op))
    if kind.startswith("create") and any(words in message for words in _EXISTS):
        return Operation("creating", _resource(step.new))
    if kind == "update" and step.type == RELEASE and any(words in message for words in _LOCKED):
        return Operation("updating", _resource(step.new))
    return None


def _resource(new: Any) -> dict[str, Any]:
    found = {
        "urn": new.urn,
        "custom": True,
        "type": new.type,
        "inputs": dict(new.inputs or {}),
        "parent": new.parent,
        "provider": new.provider,
    }
    return {key: value for key, value in found.items() if value not in (None, "")}


def _failing_since(stack: automation.Stack) -> datetime.datetime:
    """When the first of the failed runs in a row began, of which the last has just ended."""
    since = datetime.datetime.now(datetime.UTC)
    for run in stack.history(page_size=_HISTORY, page=1):
        if run.kind == "update" and run.result == "succeeded":
            break
        if run.kind == "update":
            since = min(since, run.start_time.replace(tzinfo=datetime.UTC))
    return since


def _judge(
    stack: automation.Stack,
    now: State,
    operations: Sequence[Operation],
    since: datetime.datetime | None,
    say: Say,
) -> Verdict:
    from fleet.recovery.judgement import Judge  # a client of Kubernetes: seldom needed, and slow

    with ExitStack() as clusters:
        judge = Judge(now, lambda: state.provider_inputs(stack), clusters, since, say)
        for operation in operations:
            judge.decide(operation)
    if judge.verdict.unanswered:
        raise NotPossible(
            f"what the last run of stack {stack.name} left cannot be settled:"
            f" {'; '.join(judge.verdict.unanswered)}. See that kubectl reaches the cluster, then"
            " run the same command again"
        )
    return judge.verdict


def _carry_out(stack: automation.Stack, now: State, verdict: Verdict) -> None:
    for operation in (*verdict.adopted, *verdict.half_made):
        now.adopt(operation)
    if verdict.adopted or verdict.half_made:
        now.save(stack)
    if read_again := [operation.urn for operation in (*verdict.adopted, *verdict.gone)]:
        stack.refresh(target=read_again, suppress_outputs=True, suppress_progress=True)
    if half_made := [operation.urn for operation in verdict.half_made]:
        stack.destroy(target=half_made, suppress_outputs=True, suppress_progress=True)
