"""Run the Pulumi engine: the CLI as a person runs it, through the Automation API.

Pulumi's own output is shown, repeated lines once. Engine, state and locks are Pulumi's.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from pulumi import automation

from kai_fleet.names import COMMAND
from kai_fleet.one_run import REMOVE_VARIABLE, RESTORE_VARIABLE
from kai_fleet.urns import read_urn
from kai_fleet.wording import listed
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine.deletions import Deletions
from kai_fleet_cli.engine.errors import EngineError
from kai_fleet_cli.engine.operation import POLICY_PACK, Action, Operation, policy_configs
from kai_fleet_cli.engine.refresh import refresh as refresh_state
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.engine.workspace import last_state, variables_set
from kai_fleet_cli.recovery import failures, held_up, resume
from kai_fleet_cli.recovery.state import Errors, State

# The SDK warns of a log of events that ends in the middle, after a kill: our message explains it.
warnings.filterwarnings("ignore", "Error in event stream", UserWarning)


def up(
    stack: automation.Stack,
    *,
    refresh: bool = False,
    removed: Sequence[str] = (),
    agree: Callable[[State], Sequence[str]] | None = None,
) -> Report:
    """Make the cluster as declared, with the policy pack in front; return the last run's report.

    If a resource of a team fails, what depends on it is left as it is, and everything else is
    updated (--continue-on-error). If the engine cannot go on beside that failure, another run
    leaves out what is in that team's vCluster. What is no longer declared is removed in a run
    without the team.

    Args:
        stack: The opened stack.
        refresh: Refresh the state first.
        removed: Names of teams that may lose something, or of the stack. The program reads them in
            the environment variable REMOVE_VARIABLE of this process.
        agree: Called with the state before anything begins; returns these names after it asked
            for them. If it returns none, `removed` counts.

    Raises:
        EngineError: The update failed or ended without some teams, the state cannot be read or
            refreshed, or a run before it was cut off and `refresh` is not set.
        Interrupted: A signal ended the update.
        Whatever `agree` raises.
    """
    resume_command = resume.up_command(stack.name, removed)
    with _running(Action.UPDATE, stack, resume_command) as operation:
        names = _prepare(operation, refresh=refresh, agree=agree) or removed
        if names:
            operation.resume_command = resume.up_command(stack.name, names)
            # Until `_running` ends: for the program, in this process, and for the engine's.
            os.environ[REMOVE_VARIABLE] = ",".join(names)
        _update(operation)
        return operation.report


def install(stack: automation.Stack, teams: Sequence[str], resume_command: str) -> None:
    """Refresh a stack, then update all but what waits for the vClusters of teams, or is in them.

    It gives them their namespaces and releases, while a restore keeps them stopped.

    Args:
        stack: The opened stack.
        teams: The teams.
        resume_command: The command that goes on, for messages.

    Raises:
        EngineError: The update failed, or the state cannot be read or refreshed.
        Interrupted: A signal ended the update.
    """
    with _running(Action.UPDATE, stack, resume_command) as operation:
        _prepare(operation, refresh=True)
        names = {f"{team}-ready" for team in teams}
        waits = operation.known_state().urns_of(COMMAND, names)
        os.environ[RESTORE_VARIABLE] = ",".join(teams)
        operation.update(dict.fromkeys(waits, ""))


def preview(stack: automation.Stack, before: Callable[[], None], *, details: bool) -> Report:
    """Show what an update would do, with the policy pack in front; return the report.

    Args:
        stack: The opened stack.
        before: Called first, with the engine's variables in this process.
        details: Show every property, old and new, and the outputs.

    Raises:
        EngineError: The preview failed.
        Interrupted: A signal ended the preview.
        Whatever `before` raises.
    """
    with _running(Action.PREVIEW, stack, resume.up_command(stack.name)) as operation:
        before()
        stack.preview(
            diff=details,
            suppress_outputs=not details,
            policy_packs=[POLICY_PACK],
            policy_pack_configs=policy_configs(stack),
            **operation.engine_options(operation.report),
        )
        return operation.report


def destroy(stack: automation.Stack, *, refresh: bool = False) -> None:
    """Delete everything that a stack made. What fails of one resource does not stop the others.

    Args:
        stack: The opened stack.
        refresh: Refresh the state first.

    Raises:
        EngineError: The removal failed, the state cannot be read or refreshed, or a run before it
            was cut off and `refresh` is not set.
        Interrupted: A signal ended the removal.
    """
    with _running(Action.REMOVAL, stack, resume.destroy_command(stack.name)) as operation:
        _prepare(operation, refresh=refresh)
        stack.destroy(
            show_secrets=False,
            continue_on_error=True,
            **operation.engine_options(operation.report),
        )


def _prepare(
    operation: Operation,
    *,
    refresh: bool,
    agree: Callable[[State], Sequence[str]] | None = None,
) -> Sequence[str]:
    """Ask for agreement, then refresh the state if `refresh`.

    Returns the names that `agree` returned; none without it.

    Raises:
        EngineError: A run before was cut off, and `refresh` is not set.
        CommandError: The state cannot be read or refreshed.
        Interrupted: A signal came.
        Whatever `agree` raises.
    """
    state = last_state(operation.stack)
    if state.pending and not refresh:
        raise _cut_off_error(operation, state)
    agreed = agree(state) if agree else ()
    if refresh:
        refresh_state(operation, state)
        operation.refreshed = True
    operation.signals.check()
    return agreed


def _cut_off_error(operation: Operation, state: State) -> EngineError:
    """The error after a run that was cut off: what it was doing, and what repairs the state."""
    steps: list[str] = []
    for pending in state.pending:
        kind = pending.resource["type"].rpartition(":")[2]
        name = read_urn(pending.resource["urn"]).name
        steps.append(f"{kind} {name} ({pending.operation})")
    # A killed engine left its lock. If there is none, `pulumi cancel` may fail: hence no `&&`.
    cancel = f"pulumi cancel --yes --stack {operation.stack.name}"
    message = (
        f"the last run ended in the middle of: {listed(steps, 'and')}. If it still runs, wait for"
        f" it. Repair it with: {cancel}; {operation.resume_command}"
    )
    return EngineError(message, began=False)


def _update(operation: Operation) -> None:
    """Run the update, again without what the engine cannot go on beside.

    Raises:
        EngineError: The update failed for teams alone, or ended well without them or their
            vClusters.
        CommandError: It failed for another reason, or the state cannot be read before another run.
        Interrupted: A signal ended it.
    """
    failed = _remove_beside(operation, _update_beside_vclusters(operation))
    if not failed:
        return
    if operation.report.ended_early:
        raise EngineError(_explain_teams(operation, "the update failed for", failed))
    message = _explain_teams(operation, "the update is done, but for", failed)
    raise EngineError(message, teams=failed)


def _update_beside_vclusters(operation: Operation) -> Mapping[str, Errors]:
    """Run the update, again without the vClusters that block it until no other one blocks it.

    Returns the errors of each team that failed, by URN. Raises as `_update`.
    """
    left_out: dict[str, str] = {}
    while True:
        try:
            operation.update(left_out)
        except automation.errors.CommandError as error:
            operation.signals.check()
            failed = operation.failed_teams(error, left_out)
            if not failed:
                raise
            blocking = operation.blocking_errors()
            if blocking.keys() <= left_out.keys():
                return failed
            left_out |= blocking
            say(f"the update goes on without what is in the vCluster of {held_up.named(failed)}")
        else:
            if not left_out:
                return {}
            tree = operation.tree_of(operation.known_state())
            return held_up.by_team(left_out, tree.parents, tree.resources)


def _remove_beside(
    operation: Operation,
    failed: Mapping[str, Errors],
) -> Mapping[str, Errors]:
    """Run the update without the teams that failed, as long as removals wait for them.

    Returns `failed` with the errors of teams that failed only now. Raises as `_update`.
    """
    while operation.report.removals_wait:
        teams = held_up.named(failed)
        say(f"the update goes on without {teams}, to remove what is no longer declared")
        errors: dict[str, str] = {}
        for of_team in failed.values():
            errors |= of_team
        try:
            operation.update_beside(failed)
        except automation.errors.CommandError as error:
            operation.signals.check()
            now_failed = operation.failed_teams(error, errors)
            if now_failed.keys() <= failed.keys():
                raise
            failed = now_failed
    return failed


@contextmanager
def _running(action: Action, stack: automation.Stack, resume_command: str) -> Iterator[Operation]:
    """Run an operation with the engine's variables in this process, until the block ends.

    After a signal that ended an update or a removal, print the command that goes on.

    Raises:
        EngineError: Pulumi's CLI failed: a CommandError in the block.
        Interrupted: A signal ended the operation.
        Whatever else the block raises.
    """
    variables = variables_set(stack.workspace.env_vars)
    deletions = Deletions(stack)
    try:
        with resume.graceful_shutdown() as signals, variables, closing(deletions):
            operation = Operation(stack, resume_command, signals, deletions)
            try:
                yield operation
            except automation.errors.CommandError as error:
                signals.check()
                message = _explain(action, operation, error)
                began = operation.began or operation.report.began
                raise EngineError(message, began=began) from None
    except resume.Interrupted:
        if action is not Action.PREVIEW:
            say(
                "interrupted: Pulumi stopped after the steps that it was at, and saved its state."
                f" See what is there and go on: {resume_command}"
            )
        raise


def _explain(action: Action, operation: Operation, error: automation.errors.CommandError) -> str:
    """Why an operation failed and what to do: for a removal first of a cluster that does not
    answer, then of single teams if nothing else failed, then of the whole run.
    """
    causes = operation.report.causes()
    if action is Action.REMOVAL:
        text = "\n".join([str(error), *causes.values()])
        repair = failures.cause_and_repair(text, operation.run, section=failures.Section.REMOVAL)
        if repair:
            return f"{action} failed: {repair}"
    teams = operation.failed_teams(error)
    if teams:
        return _explain_teams(operation, f"{action} failed for", teams)
    return failures.explain(action, operation.run, error, causes, operation.report.failed)


def _explain_teams(operation: Operation, lead: str, teams: Mapping[str, Errors]) -> str:
    """A line for each error of a team: the cause and the repair. `teams` has its errors by URN.

    `lead` and the names of the teams are the line before them.
    """
    failed = operation.failed | operation.report.failed
    return held_up.explain(
        lead,
        operation.stack,
        operation.run,
        teams,
        {**failed, **operation.known_state().resources},
    )
