"""Before an update and after a failed one: refresh the state, and mend what was left."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, Final

from pulumi import automation
from rich.prompt import Confirm

from kai_fleet.fleet.deployed_state import RELEASE, STACK
from kai_fleet.kube.text import plain
from kai_fleet.wording import listed
from kai_fleet_cli.cluster_reader import NoAnswerError
from kai_fleet_cli.display import events
from kai_fleet_cli.display.terminal import Say, Screen
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import failures, file_backend, resume, state
from kai_fleet_cli.recovery.interrupted import Judge
from kai_fleet_cli.recovery.live_cluster import LiveCluster, check_records
from kai_fleet_cli.recovery.state import ExportedState, Operation, provider_of

# What the API server, Helm and the providers say of a thing that is there.
_EXISTS: Final = ("exists already", "already exists", "AlreadyExists", "cannot re-use a name")
# What Helm says of a release that an earlier run did not finish.
_LOCKED: Final = "another operation (install/upgrade/rollback) is in progress"
_HISTORY: Final = 20  # updates to look back
_AT_ONCE: Final = 8
_LONGEST: Final = 300  # of a reason


def before(
    stack: automation.Stack, say: Say, *, refresh: bool, command: str = "up"
) -> ExportedState:
    """Make the state say what is there: with `refresh`, or where the last run was cut off.

    Returns the state as it is then, with its secrets encrypted. Raises CommandError; and UserError
    where a person has to agree first, where the host cluster cannot be asked, and with Helm's words
    where Helm fails.
    """
    exported = state.exported(stack)
    # What a tenant's vCluster refused is simply tried again: it stops nobody else.
    begun = [it for it in exported.operations() if refresh or not (it.failed and it.inside)]
    if not begun and not refresh:
        return exported
    holder = file_backend.holder(stack.name, stack.workspace.env_vars)
    if holder is not None:  # what has begun may be that run's, which is at work
        what = "the removal" if command == "destroy" else "the update"
        raise UserError(failures.locked(what, stack.name, holder))
    if begun:
        told = listed([f"{operation} ({operation.kind})" for operation in begun], "and")
        _agree(stack, f"the last run ended in the middle of: {told}", refresh, command, say)
    # A refresh would take over what the records say, and the update after it act on that.
    check_records(state.read(stack), stack.workspace.env_vars.get("KUBECONFIG"), say)
    refresh_state(stack, say)  # takes the stack's lock: another run's work is left alone
    now = state.read(stack)
    if operations := now.operations():
        _carry_out(stack, now, _judge(stack, now, operations, None, say), say)
    return state.exported(stack)


def after(
    stack: automation.Stack, failed: Sequence[tuple[Any, str]], say: Say, *, refresh: bool
) -> bool:
    """After a run that failed: mend what stood in its way, if an earlier failure left that.

    `failed` has each failed step's event metadata and its message. True: run it again.
    """
    operations = [it for step, message in failed if (it := _in_the_way(step, message))]
    if not operations:
        return False
    now = state.read(stack)
    judge = _judge(stack, now, operations, _failing_since(stack), say)
    if not judge.decided:
        return False
    told = listed([str(operation) for operation in operations], "and")
    _agree(stack, f"an earlier run of this stack left: {told}", refresh, "up", say)
    _carry_out(stack, now, judge, say)
    return True


def _agree(stack: automation.Stack, what: str, refresh: bool, command: str, say: Say) -> None:
    """Go on where `--refresh` was given, or a person at the terminal says so."""
    say(what)
    if refresh:
        return
    if Screen.standard().asks:
        if Confirm.ask("Run pulumi refresh, repair what is left, and go on?", default=True):
            return
        raise UserError("nothing was done")
    again = resume.destroy if command == "destroy" else resume.up
    raise UserError(f"{what}. Repair it with: {again(stack.name)}")


def _in_the_way(step: Any, message: str) -> Operation | None:
    """What an earlier run left that a failed step met; None for another failure."""
    kind = str(getattr(step.op, "value", step.op))
    if step.new is None:
        return None
    if kind.startswith("create") and any(words in message for words in _EXISTS):
        # A release that is being replaced is in the state, and its old one is gone.
        left = "replacing" if step.type == RELEASE and kind != "create" else "creating"
    elif kind == "update" and step.type == RELEASE and _LOCKED in message:
        left = "updating"
    else:
        return None
    keys = ("urn", "type", "parent", "provider")
    had = {key: value for key in keys if (value := getattr(step.new, key))}
    return Operation(left, {"inputs": dict(step.new.inputs or {}), **had})


def _failing_since(stack: automation.Stack) -> datetime.datetime:
    """When the first of the failed runs in a row began, of which the last has just ended."""
    updates = (run for run in stack.history(page_size=_HISTORY, page=1) if run.kind == "update")
    failed = takewhile(lambda run: run.result != "succeeded", updates)
    began = (run.start_time.replace(tzinfo=datetime.UTC) for run in failed)
    return min(began, default=datetime.datetime.now(datetime.UTC))


def _judge(
    stack: automation.Stack,
    now: ExportedState,
    operations: Sequence[Operation],
    since: datetime.datetime | None,
    say: Say,
) -> Judge:
    judge = Judge(now, since, say, stack.workspace.env_vars.get("KUBECONFIG"))
    for operation in operations:
        judge.decide(operation)
    if judge.unanswered:
        raise UserError(
            f"what the last run of stack {stack.name} left cannot be settled:"
            f" {'; '.join(judge.unanswered)}. See that kubectl reaches the cluster, then"
            " run the same command again"
        )
    return judge


def _carry_out(stack: automation.Stack, now: ExportedState, judge: Judge, say: Say) -> None:
    for remedy in judge.remedies:
        try:
            remedy.run(stack.workspace.env_vars)
        except UserError as why:
            if not remedy.operation.inside:
                raise
            say(f"{remedy.operation}: {why}")  # its own step says so again, and fails alone
    for operation in judge.imports:
        entry: Any = {
            "type": operation.type,
            "name": operation.urn.rpartition("::")[2],
            "id": operation.id,
            "parent": "parent",
            "provider": "provider",
        }
        resource = operation.resource
        names = {"parent": str(resource["parent"]), "provider": provider_of(resource)}
        stack.import_resources(
            resources=[entry], name_table=names, protect=False, generate_code=False, on_output=say
        )
    known = now.urns()
    mended = [it.operation.urn for it in judge.remedies if it.operation.urn in known]
    root = next(str(it["urn"]) for it in now.resources if it["type"] == STACK)
    refresh_state(stack, say, only=[root, *mended], clear_pending_creates=True)


@dataclass(frozen=True)
class Drift:
    """What differs from the state: resources by name with what happened to each; and vClusters
    that could not be looked at, each with why.
    """

    resources: Mapping[str, str]
    silent: Mapping[str, str]


def refresh_state(
    stack: automation.Stack,
    show: Say,
    *,
    only: Sequence[str] = (),
    clear_pending_creates: bool = False,
) -> None:
    """Have the state say what is there. Raises CommandError."""
    show(f"Refreshing ({stack.name})")
    run = partial(
        stack.refresh,
        target=list(only) or None,
        clear_pending_creates=clear_pending_creates or None,
        suppress_outputs=True,
        suppress_progress=True,
    )
    looked = _looked(stack, show, run, {} if only else None)
    for name, why in looked.silent.items():
        show(f"vCluster {name} is not read: {why}")
    for name, done in looked.resources.items():
        show(f"  {name}: {'gone' if done == 'delete' else 'changed'}")


def _looked(
    stack: automation.Stack,
    show: Say,
    run: Callable[..., object],
    silent: dict[str, str] | None = None,
) -> Drift:
    """What a refresh finds. `silent` are the vClusters that it leaves out, by the URNs of their
    providers with why; None is all that do not answer. One that fails it is left out, too.
    """
    now = state.read(stack)
    silent = _silent(now) if silent is None else silent
    home = stack.workspace.env_vars.get("PULUMI_HOME", "")
    while True:
        # Of a vCluster it is by its provider, or by what it is deleted with.
        within = {str(it["urn"]): {provider_of(it), it.get("deletedWith")} for it in now.resources}
        unread = [urn for urn, of in within.items() if not of.isdisjoint(silent)]
        told = events.Narration(show, color=False, steps=False, home=home)
        try:
            found = _differences(told, partial(run, exclude=unread or None))
        except automation.errors.CommandError:
            failed = {
                str(it): plain(told.errors[urn], _LONGEST)
                for urn, of in within.items()
                for it in of
                if urn in told.errors and state.OF_VCLUSTER in str(it)
            }
            if failed.keys() <= silent.keys():
                told.failed()
                raise
            silent |= failed
        else:
            return Drift(found, {urn.rpartition("::")[2]: why for urn, why in silent.items()})


def _silent(now: ExportedState) -> dict[str, str]:
    """The providers of vClusters that cannot be read, each with why.

    Every vCluster of the stack is asked whether it is there, and the same as ever.
    """

    def complaint(urn: str, provider: Mapping[str, Any]) -> str:
        try:
            uid = LiveCluster(provider).uid()
        except NoAnswerError as why:
            return str(why)
        known = _identity(now, urn)
        return "it was made anew" if known and uid != known else ""

    asked = {urn: it for urn, it in now.providers().items() if state.OF_VCLUSTER in urn}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = dict(zip(asked, pool.map(complaint, asked, asked.values()), strict=True))
    return {urn: why for urn, why in answers.items() if why}


def _differences(told: events.Narration, run: Callable[..., object]) -> dict[str, str]:
    """The resources that were changed (update) or are gone (delete), by name, as a refresh has
    them. Its messages are shown without a line per resource.
    """
    differences: dict[str, str] = {}

    def note(event: automation.EngineEvent) -> None:
        step = event.resource_pre_event or event.res_outputs_event
        if step is not None and (done := events.operation(step.metadata)) in ("update", "delete"):
            differences[events.named(step.metadata.urn)] = done
        told.hear(event)

    run(on_output=told.keep, on_event=note)
    return differences


def _identity(now: ExportedState, provider: str) -> str:
    """The UID that a vCluster had at the last update; "" where the state does not tell."""
    step = f"::{provider.rpartition('::')[2]}-identity"
    for it in now.resources:
        if str(it["urn"]).endswith(step):
            return str(((it.get("inputs") or {}).get("triggers") or [""])[0])
    return ""
