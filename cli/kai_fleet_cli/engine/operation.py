"""An operation of the engine on a stack, which may take several runs of Pulumi's CLI."""

import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import CoroutineType
from typing import NamedTuple, TypedDict

from pulumi import automation
from rich.console import Console

from kai_fleet.one_run import FAILED_VARIABLE
from kai_fleet.ownership.deployed import team_of
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine import stuck
from kai_fleet_cli.engine.deletions import Deletions
from kai_fleet_cli.engine.output import Output
from kai_fleet_cli.engine.report import Report
from kai_fleet_cli.engine.workspace import last_state
from kai_fleet_cli.recovery import failures, held_up, resume
from kai_fleet_cli.recovery.state import Errors, Resource, Resources, State
from kai_fleet_policies import policy_pack_program

POLICY_PACK = str(policy_pack_program())


class Action(StrEnum):
    """What an operation does, as messages name it."""

    UPDATE = "the update"
    PREVIEW = "the preview"
    REMOVAL = "the removal"


class EngineOptions(TypedDict):
    """Options of the Automation API by which a run is shown and recorded."""

    on_event: Callable[[automation.EngineEvent], None]
    on_output: Callable[[str], None]
    color: str
    suppress_progress: bool


class ResourceTree(NamedTuple):
    """Resources and the URNs of their parents, by URN."""

    parents: Mapping[str, str]
    resources: Resources


@dataclass
class Operation:
    """An operation and what its runs reported.

    Attributes:
        stack: The stack.
        resume_command: The command that goes on after the operation was cut off.
        signals: The signal that ended the operation, if any.
        deletions: The namespaces that the engine is deleting.
        report: The report of the last run; empty before the first. Those of a refresh are not here.
        began: A run of `update` began a step that changes something.
        refreshed: The operation refreshed the state.
        failed: The state of each resource whose step failed in any ended run of `update`, by URN.
        parents: The URN of each resource's parent in those runs, by URN.
        warned: The words of warnings that were shown, and why the state cannot be read.
    """

    stack: automation.Stack
    resume_command: str
    signals: resume.Signals
    deletions: Deletions
    report: Report = field(default_factory=Report)
    began: bool = False
    refreshed: bool = False
    failed: dict[str, Resource] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    warned: set[str] = field(default_factory=set)

    @property
    def run(self) -> failures.Run:
        """The operation, as sentences about its failure name it."""
        return failures.Run(
            self.stack.name,
            self.resume_command,
            self.stack.workspace.env_vars,
            self.refreshed,
        )

    def update(self, left_out: Errors) -> None:
        """Update the stack but for the resources in `left_out`, and all in the same vClusters.

        `left_out` are errors by URN, whose texts do not count; without any nothing is left out.
        Raises as `_run_update`, and CommandError if the state cannot be read.
        """
        resources: Resources = {}
        if left_out:
            resources = self.tree_of(last_state(self.stack)).resources
        excluded = held_up.with_same_vclusters(left_out, resources)
        # With --exclude-dependents the engine would delete nothing: it excludes every resource
        # that depends on an excluded one. Only resources that are not in the state need it.
        exclude_dependents = not excluded <= resources.keys()
        self._run_update(excluded, exclude_dependents=exclude_dependents)

    def update_beside(self, teams: Collection[str]) -> None:
        """Update the stack but for these teams, which stay as they are with what they depend on.

        The program does not declare them: it would declare what failed once more. Raises as
        `_run_update`, and CommandError if the state cannot be read.
        """
        parents = last_state(self.stack).parents
        excluded = {urn for urn in parents if team_of(urn, parents) in teams}
        os.environ[FAILED_VARIABLE] = ",".join(teams)  # until `_running` ends
        self._run_update(excluded, exclude_dependents=False)

    def _run_update(self, excluded: Collection[str], *, exclude_dependents: bool) -> None:
        """Run the update without the resources with these URNs.

        `report` is the run's then, and `failed` and `parents` have its resources, too. From then on
        this process prints no errors of coroutines that are collected as garbage. A run that waits
        for a stuck resource is ended, and fails.

        Raises:
            CommandError: The run failed.
            Interrupted: A signal came while no engine ran.
        """
        self.report = Report()
        self.signals.begin_engine()
        sys.unraisablehook = _print_unraisable
        with stuck.run_ended(self.report, self.signals):
            try:
                self.stack.up(
                    exclude=sorted(excluded) or None,
                    exclude_dependents=exclude_dependents or None,
                    continue_on_error=True,
                    suppress_outputs=True,  # `show_teams` prints them as a table
                    show_secrets=False,
                    policy_packs=[POLICY_PACK],
                    policy_pack_configs=policy_configs(self.stack),
                    **self.engine_options(self.report),
                )
            finally:
                self.began |= self.report.began
                self.failed |= self.report.failed
                self.parents |= self.report.parents

    def blocking_errors(self) -> Errors:
        """The errors of the last run, by URN, after which the engine does not go on.

        Either it waits for a resource that is stuck, or it ended at once because it could not
        begin a step. Errors of the stack itself and of the engine are not among them.
        """
        report = self.report
        blocking: dict[str, str] = {}
        for urn, message in report.causes().items():
            never_began = urn not in report.failed and held_up.is_of_resource(urn)
            if urn in report.stuck or never_began:
                blocking[urn] = message
        return blocking

    def known_state(self) -> State:
        """Return `last_state`'s state; if it cannot be read, print why, once, and return an empty
        one: a failure before that is told without it.
        """
        try:
            return last_state(self.stack)
        except automation.errors.CommandError as error:
            sentence = failures.explain("reading the state", self.run, error)
            if sentence not in self.warned:
                self.warned.add(sentence)
                say(sentence)
            return State()

    def tree_of(self, state: State) -> ResourceTree:
        """Return the resources of a state with those that failed in any run, and all parents.

        Of one resource a later run counts before an earlier one, and that before the state.
        """
        parents = {**state.parents, **self.parents, **self.report.parents}
        resources = dict(state.resources)
        for urn, failed in (self.failed | self.report.failed).items():
            # An event does not say what a resource is deleted with; the state does.
            resources[urn] = {**resources.get(urn, {}), **failed}
        return ResourceTree(parents, resources)

    def failed_teams(
        self,
        error: automation.errors.CommandError,
        earlier_errors: Errors | None = None,
    ) -> Mapping[str, Errors]:
        """The errors of each team, by URN, after a run failed with `error`.

        Empty if anything outside a team, or the host's API server, failed as well, if no resource
        failed in this run, as when only the program did, or if the engine was killed.
        `earlier_errors` are those because of which the run left out vClusters, by URN; they are in
        the result, and this run's count before them.
        """
        causes = self.report.causes()
        has_resource_errors = any(held_up.is_of_resource(urn) for urn in causes)
        was_killed = "code: -" in str(error)
        if not has_resource_errors or was_killed:
            return {}
        tree = self.tree_of(self.known_state())
        errors = {**(earlier_errors or {}), **causes}
        return held_up.by_team(errors, tree.parents, tree.resources)

    def engine_options(self, report: Report) -> EngineOptions:
        """Options that print a run's output on stdout, each line once, and record its events in
        `report`.

        The events also go to `deletions`, and the lines to `signals`. Warnings that another run of
        the operation printed are not printed again.
        """
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


def policy_configs(stack: automation.Stack) -> list[str] | None:
    """The policy pack's configuration: `rules.STACK.json` beside the stack's file if that exists.

    Else None.
    """
    file = Path(stack.workspace.work_dir) / f"rules.{stack.name}.json"
    return [str(file)] if file.is_file() else None


def _print_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    """Print an error in garbage collection as Python does, but not that of a coroutine.

    After the engine aborted a program, the event loop of its coroutines is closed.
    """
    if not isinstance(unraisable.object, CoroutineType):
        sys.__unraisablehook__(unraisable)
