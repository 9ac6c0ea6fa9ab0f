"""Run the Pulumi engine: the CLI as a person runs it, through the Automation API.

Pulumi's own output is shown, repeated lines once. Engine, state and locks are Pulumi's.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CoroutineType
from typing import Any, Final

from pulumi import automation
from rich.console import Console

from kai_fleet.agreed import REMOVE_VARIABLE
from kai_fleet.names import IDENTITY, NAMESPACE_PATCH, PROVIDERS, RELEASE, VIRTUAL_CLUSTER
from kai_fleet.urns import read_urn
from kai_fleet.values import get
from kai_fleet.wording import listed
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine import stuck
from kai_fleet_cli.engine.deletions import Deletions
from kai_fleet_cli.engine.environment import program
from kai_fleet_cli.engine.output import Output
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import failures, held_up, resume, state
from kai_fleet_cli.recovery.state import Resource, State
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies import policy_pack_program

POLICY_PACK: Final = str(policy_pack_program())
_REMOVAL: Final = "the removal"
_ENGINE: Final = {
    # How far Go's heap grows before it is searched for garbage: in runs as short as these, that
    # takes a tenth of the time with Go's own 100.
    "GOGC": os.environ.get("GOGC", "400"),
    # As the program's providers set it, which the Kubernetes plugin reads from v4.29 on.
    "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
}
# The SDK's, after a kill: the log of events ends in the middle. Our message says what happened.
warnings.filterwarnings("ignore", "Error in event stream", UserWarning)


class EngineError(UserError):
    """An update or a preview that did not end well; the engine's own output says why.

    `began`: it had begun to change something. `teams`: those for which it did not end well, where
    everything else is as declared.
    """

    def __init__(self, message: str, *, began: bool = True, teams: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.began, self.teams = began, tuple(teams)


class Workspace(automation.LocalWorkspace):
    """A workspace for which the CLI starts no more often than it has to."""

    opened: State | None = None

    def select_stack(self, stack_name: str) -> None:
        """Select a stack, and read its state meanwhile. Raises CommandError."""
        with ThreadPoolExecutor() as pool:
            reading = pool.submit(state.exported, self, stack_name)
            super().select_stack(stack_name)
        self.opened = reading.result()

    def stack_outputs(self, stack_name: str) -> automation.OutputMap:
        """Return none, whatever the stack: the SDK calls this after an update, and the last event
        has them, secrets masked.
        """
        return {}


def stack(name: str, environment: Mapping[str, str], directory: Path = ROOT) -> automation.Stack:
    """The stack of that name, created on first use; `directory` holds its file. Raises EngineError.

    `environment` goes over this process's own for the engine, its plugins and the program.
    """
    variables = {**_ENGINE, **environment}
    loading = ThreadPoolExecutor(1)  # while the CLI starts
    provider, loaded = loading.submit(_serve_provider), loading.submit(_load_program)

    def declare() -> None:
        loaded.result()
        program()

    with _set(environment):  # the API looks for the CLI on this process's PATH
        workspace = Workspace(work_dir=str(directory), env_vars=variables, program=declare)
    try:
        opened = automation.Stack.create_or_select(name, workspace)
    except automation.errors.CommandError as why:
        what = f"opening stack {name}"
        explained = failures.explain(what, name, why, environment, resume.up(name))
        raise EngineError(explained, began=False) from None
    workspace.env_vars = {**variables, **provider.result()}
    loaded.result()  # a plan that loads them meanwhile finds half of a module
    return opened


def _serve_provider() -> dict[str, str]:
    """Serve the package's provider in this process: a plugin would load all of it once more."""
    from kai_fleet.cluster.provider import plugin

    return plugin.serve_here()


def _load_program() -> Any:
    """Load the program, and the parts of the SDK that load at their first use."""
    from pulumi_kubernetes import core, networking, rbac

    from kai_fleet import program

    return program, core.v1.Namespace, networking.v1.NetworkPolicy, rbac.v1.Role


def _state(stack: automation.Stack) -> State:
    """The stack's state; as it was opened, the first time. Raises CommandError."""
    opened: State | None = vars(stack.workspace).pop("opened", None)
    return opened or state.exported(stack.workspace, stack.name)


def up(
    stack: automation.Stack,
    *,
    refresh: bool = False,
    removed: Sequence[str] = (),
    agree: Callable[[State], Sequence[str]] | None = None,
) -> Report:
    """Make the cluster as declared, with the policy pack in front. Raises EngineError, Interrupted.

    `refresh`: refresh the state first. `removed`: what may be lost. `agree` gets the state before
    anything begins, and gives these names after it asked for them.

    What fails of a team fails alone (--continue-on-error): what depends on it is left as it is, and
    everything else is as declared. Where the engine cannot go on beside it, a second run leaves out
    what is in that vCluster.
    """
    with _running("the update", stack, resume.up(stack.name, removed)) as run:
        removed = run.prepare(refresh=refresh, agree=agree) or removed
        if removed:
            run.again = resume.up(stack.name, removed)
            named = {REMOVE_VARIABLE: ",".join(removed)}
            stack.workspace.env_vars = {**stack.workspace.env_vars, **named}
            os.environ.update(named)  # for the program, until `_running` ends
        left_out: dict[str, str] = {}
        while True:
            try:
                run.up(left_out)
                if not left_out:
                    return run.report
                failed = held_up.by_team(left_out, *run.known())
            except automation.errors.CommandError as why:
                run.signals.check()
                failed = run.failed_teams(why, left_out)
                blocked = run.blocked()
                if failed and not blocked.keys() <= left_out.keys():
                    left_out |= blocked
                    teams = listed([f"team {team}" for team in sorted(failed)], "and")
                    say(f"the update goes on without what is in the vCluster of {teams}")
                    continue
                if not failed:
                    raise
            lead = "the update is done, but for"
            if run.report.ended_early:
                lead = "the update failed for"
            about = (run.again, failed, run.failed)
            message = held_up.explain(lead, stack, *about, refreshed=run.refreshed)
            raise EngineError(message, teams=failed)


def preview(stack: automation.Stack, before: Callable[[], None], *, details: bool) -> Report:
    """Show what an update would do, with the policy pack in front. Raises EngineError.

    `before` runs in the engine's environment. `details`: every property, old and new.
    """
    with _running("the preview", stack, resume.up(stack.name)) as run:
        before()
        stack.preview(
            diff=details, suppress_outputs=not details, **run.options(run.report), **_rules(stack)
        )
        return run.report


def destroy(stack: automation.Stack, *, refresh: bool = False) -> None:
    """Remove everything that the stack made. Raises EngineError, Interrupted.

    `refresh`: refresh the state first.
    """
    with _running(_REMOVAL, stack, resume.destroy(stack.name)) as run:
        run.prepare(refresh=refresh)
        stack.destroy(show_secrets=False, continue_on_error=True, **run.options(run.report))


@dataclass
class _Run:
    """An operation of a stack; `again` is the command that goes on after it was cut off.

    `refreshed`: it refreshed the state. `warned`: the warnings that were shown.
    """

    stack: automation.Stack
    again: str
    signals: resume.Signals
    deletions: Deletions
    report: Report = field(default_factory=Report)
    refreshed: bool = False
    failed: dict[str, Resource] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)

    def up(self, left_out: Mapping[str, str]) -> None:
        """Update all but what is in the vClusters of these resources. Raises CommandError."""
        resources = self.known()[1] if left_out else {}
        excluded = held_up.beside(left_out, resources)
        # With dependents the engine would remove nothing: it goes on from what they depend on.
        are_new = not excluded <= resources.keys()
        self.report = Report()
        self.signals.begin_engine()
        sys.unraisablehook = _print_unraisable
        with stuck.ended(self.report, self.signals):
            try:
                self.stack.up(
                    exclude=sorted(excluded) or None,
                    exclude_dependents=are_new or None,
                    continue_on_error=True,
                    suppress_outputs=True,  # the table that follows says it better
                    show_secrets=False,
                    **self.options(self.report),
                    **_rules(self.stack),
                )
            finally:
                self.failed |= self.report.failed
                self.parents |= self.report.parents

    def blocked(self) -> dict[str, str]:
        """The errors, by URN, that the engine cannot go on beside: it waits for ever, or ends at
        once, because it could not even begin a step.
        """
        report = self.report
        return {
            urn: message
            for urn, message in report.own_errors().items()
            if urn in report.stuck or (urn not in report.failed and held_up.is_of_one(urn))
        }

    def known(self) -> tuple[dict[str, str], dict[str, Resource]]:
        """The parents of resources, and the resources, of the state and of what failed."""
        known = _state(self.stack)
        parents = {**known.parents, **self.parents, **self.report.parents}
        resources = dict(known.resources)
        for urn, failed in (self.failed | self.report.failed).items():
            # An event does not say what a resource is deleted with; the state does.
            resources[urn] = {**resources.get(urn, {}), **failed}
        return parents, resources

    def prepare(
        self, *, refresh: bool, agree: Callable[[State], Sequence[str]] | None = None
    ) -> Sequence[str]:
        """Refresh the state; else refuse to go on after a run that was cut off.

        Return what `agree` gives for the state before that.
        """
        known = _state(self.stack)
        if known.pending and not refresh:
            kinds = [
                f"{resource['type'].rpartition(':')[2]} {read_urn(resource['urn']).name}"
                f" ({operation})"
                for operation, resource in known.pending
            ]
            left = f"the last run ended in the middle of: {listed(kinds, 'and')}"
            wait = "If it still runs, wait for it"
            # A killed engine left its lock; where there is none, `cancel` may fail.
            repair = f"pulumi cancel --yes --stack {self.stack.name}; {self.again}"
            raise EngineError(f"{left}. {wait}. Repair it with: {repair}", began=False)
        agreed = agree(known) if agree else ()
        if refresh:
            self._refresh(known)
            self.refreshed = True
        self.signals.check()
        return agreed

    def _refresh(self, known: State) -> None:
        """Refresh the stack as far as its clusters answer.

        Pulumi would refresh nothing where one vCluster does not answer: what is inside it is left
        as the state has it. Objects that a killed run had begun to create are imported where they
        exist; the update creates the others. Helm itself knows that of a release, and a patch is
        applied again.
        """
        for operation, resource in known.pending:
            kind = resource["type"]
            is_object = kind.startswith("kubernetes:") and kind not in (RELEASE, NAMESPACE_PATCH)
            if operation == "creating" and is_object and resource["urn"] not in known.resources:
                self._import(resource)
                self.signals.check()
        silent: set[str] = set()
        while True:
            report = Report()
            unread = [
                urn
                for urn, resource in known.resources.items()
                if not silent.isdisjoint(state.clusters_of(resource))
            ]
            try:
                self.stack.refresh(
                    exclude=unread or None,
                    clear_pending_creates=True,
                    suppress_outputs=True,
                    **self.options(report),
                )
                self._finish_uninstalls()
                return
            except automation.errors.CommandError as why:
                failed = {
                    cluster
                    for urn in report.own_errors()
                    for cluster in state.clusters_of(known.resources.get(urn, {}))
                }
                # A provider that cannot use its cluster is named in the engine's error alone.
                providers = filter(_is_into_vcluster, known.resources)
                failed |= {urn for urn in providers if _names(str(why), urn)}
                if failed <= silent:
                    raise
                silent |= failed
                known = _state(self.stack)  # without what is gone
                for name in sorted({read_urn(urn).name.removesuffix(IDENTITY) for urn in failed}):
                    say(f"vCluster {name} does not answer, and is not refreshed")

    def _finish_uninstalls(self) -> None:
        """Have Helm finish the removals that a kill cut off; the update installs what is declared.

        Helm upgrades no release that is `uninstalling`, and which of its objects are left is not
        known. Where other resources depend on it, the engine did not begin that removal.
        """
        resources = state.exported(self.stack.workspace, self.stack.name).resources
        needed = {urn for item in resources.values() for urn in item.get("dependencies") or ()}
        for urn, item in resources.items():
            status = get(item, "outputs", "status", "status")
            if item["type"] == RELEASE and status == "uninstalling" and urn not in needed:
                self.stack.destroy(target=[urn], show_secrets=False, **self.options(Report()))

    def _import(self, resource: Resource) -> None:
        """Import an object into the state, if it exists."""
        name = read_urn(str(resource["urn"])).name
        metadata = (resource.get("inputs") or {}).get("metadata") or {}
        # The Kubernetes provider's ID of an object: `namespace/name`, or its name.
        parts = filter(None, (metadata.get("namespace"), metadata.get("name")))
        entry: Any = {"type": resource["type"], "name": name, "id": "/".join(parts)}
        entry |= {"parent": "parent", "provider": "provider"}
        provider = state.provider_of(resource)
        try:
            self.stack.import_resources(
                resources=[entry],
                name_table={"parent": str(resource["parent"]), "provider": provider},
                protect=False,
                generate_code=False,
                on_output=self.options(Report())["on_output"],
            )
            say(f"{name}: an interrupted run made it; it is in the state now")
        except automation.errors.ConcurrentUpdateError:
            raise
        except automation.errors.CommandError:
            say(f"{name}: it was not made; it will be now")

    def options(self, report: Report) -> dict[str, Any]:
        """Show the output, a line once, and report the events."""
        output = Output(self.warned)

        def show(line: str) -> None:
            self.signals.note(line)
            output.show(line)

        def note(event: automation.EngineEvent) -> None:
            report.note(event)
            self.deletions.note(event)

        return {
            "on_event": note,
            "on_output": show,
            "color": "always" if Console().is_terminal else "never",
            "suppress_progress": True,
        }

    def failed_teams(
        self, why: automation.errors.CommandError, before: Mapping[str, str] | None = None
    ) -> dict[str, dict[str, str]]:
        """The errors of each team by URN, where nothing else failed; else none. `before` are the
        errors of what this run left out.
        """
        own = [urn for urn in self.report.own_errors() if held_up.is_of_one(urn)]
        if not own or "code: -" in str(why):  # the program failed, or the engine was killed
            return {}
        return held_up.by_team({**(before or {}), **self.report.own_errors()}, *self.known())


def _is_into_vcluster(urn: str) -> bool:
    """Whether it is the URN of a vCluster's provider."""
    read = read_urn(urn)
    return read.type.startswith(PROVIDERS) and read.above[-1:] == (VIRTUAL_CLUSTER,)


def _names(text: str, urn: str) -> bool:
    """Whether a text has this URN, and not the beginning of a longer one."""
    return re.search(rf"{re.escape(urn)}(?![-\w])", text) is not None


@contextmanager
def _running(what: str, stack: automation.Stack, again: str) -> Iterator[_Run]:
    """Raise EngineError for a failure of the CLI, and Interrupted where a signal ended it.

    After a signal, print the command that goes on.
    """
    try:
        environment = _set(stack.workspace.env_vars)
        deletions = Deletions(stack)
        with resume.graceful_shutdown() as signals, environment, closing(deletions):
            run = _Run(stack, again, signals, deletions)
            try:
                yield run
            except automation.errors.CommandError as why:
                signals.check()
                errors = run.report.own_errors()
                text = "\n".join([str(why), *errors.values()])
                away = ""
                if what == _REMOVAL:
                    about = (text, stack.name, run.again)
                    away = failures.of_removal(*about, refreshed=run.refreshed)
                if away:
                    message = f"{what} failed: {away}"
                elif teams := run.failed_teams(why):
                    held = (run.again, teams, run.failed)
                    lead = f"{what} failed for"
                    message = held_up.explain(lead, stack, *held, refreshed=run.refreshed)
                else:
                    message = failures.explain(
                        what,
                        stack.name,
                        why,
                        stack.workspace.env_vars,
                        run.again,
                        errors,
                        run.report.failed,
                        refreshed=run.refreshed,
                    )
                raise EngineError(message, began=run.report.began) from None
    except resume.Interrupted:
        if what != "the preview":
            say(
                "interrupted: Pulumi stopped after the steps that it was at, and saved its state."
                f" See what is there and go on: {again}"
            )
        raise


def _rules(stack: automation.Stack) -> dict[str, Any]:
    """The policy pack, with a stack's own settings of it: `rules.<stack>.json` beside its file."""
    file = Path(stack.workspace.work_dir) / f"rules.{stack.name}.json"
    config = [str(file)] if file.is_file() else None
    return {"policy_packs": [POLICY_PACK], "policy_pack_configs": config}


@contextmanager
def _set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set the variables in this process while a stack's program and the provider run in it: they
    take KUBECONFIG from nowhere else.
    """
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _print_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Print what Python prints of errors in garbage collection, but for coroutines of a program
    that the engine aborted: their event loop is closed.
    """
    if not isinstance(unraisable.object, CoroutineType):
        sys.__unraisablehook__(unraisable)
