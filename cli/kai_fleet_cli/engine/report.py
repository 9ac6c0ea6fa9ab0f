"""What the engine's events of a run report, and the table at the end of an update."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from pulumi import automation

from kai_fleet.marks import SECRET_MARK
from kai_fleet.names import FLEET, PROVIDERS, STACK, TEAM
from kai_fleet.one_run import REMOVALS_WAIT
from kai_fleet.urns import read_urn
from kai_fleet.wording import number_with_noun
from kai_fleet_cli.display.terminal import print_table, pulumi_first, result
from kai_fleet_cli.recovery.state import Resource, of_step
from kai_fleet_stack.project import preview_command

# Operations that change nothing: a resource is as declared, is read, or is read no longer.
UNTOUCHED = ("same", "read", "discard")
# The deletion of what is replaced.
_REPLACED_DELETED = "delete-replaced"
# The step that announces a replacement; its deletion and its creation are steps of their own.
_ANNOUNCED = "replace"
# To remove from an error: the engine's colours, and what the Kubernetes plugin writes before the
# cause.
_NOISE = re.compile(
    r"<\{%[^%]*%\}>|resource \S+ was not successfully \w+ by the Kubernetes API server: ?"
    r"|Server-Side Apply field conflict detected\. See \S+ for troubleshooting help\s*"
)
_HEADINGS = ("team", "mode", "scheduler", "GPUs", "API", "leaf queues")
_SANDBOX_TOOLS = f'  eval "$({FLEET} sandbox env)"   # its kubectl, helm and pulumi\n'


class TeamOutput(TypedDict, total=False):
    """A team in the stack's outputs. `mode`, `gpus`, `server` and `queues` are always there.

    `scheduler` is the version of the team's own KAI, None or absent without one; `gpus` the number
    of its GPUs as KAI counts them, those of MIG slices too; `server` the URL of its vCluster's API;
    `queues` the names of its leaf queues, or the host's queue that it uses.
    """

    mode: str
    scheduler: str | None
    gpus: float
    server: str
    queues: Sequence[str]


@dataclass
class Report:
    """What the engine's events of one run reported.

    Attributes:
        errors: The errors by the URN of their resource, joined; "" for the engine's own.
        failed: State (URN, type, parent, provider, inputs) of each resource whose step failed, by
            URN; empty if the event had none.
        parents: The URN of each resource's parent, by URN.
        outputs: Outputs of the stack, without those that hold a secret; empty before its step ends.
        steps: All steps that the run began, in their order, but for the engine's own providers.
        stuck: URNs of resources that were to be deleted for a replacement and were not.
        in_flight: URN and operation of each step that has not ended, without those of components
            and those that only announce a replacement.
        last_event: Time of the last event, in seconds of the monotonic clock.
    """

    errors: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Resource] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict, repr=False)
    steps: list[automation.StepEventMetadata] = field(default_factory=list, repr=False)
    stuck: set[str] = field(default_factory=set)
    in_flight: set[tuple[str, str]] = field(default_factory=set)
    last_event: float = field(default_factory=time.monotonic)

    def note(self, event: automation.EngineEvent) -> None:
        """Record an event and the time when it came."""
        self.last_event = time.monotonic()
        if event.diagnostic_event is not None:
            self._note_diagnostic(event.diagnostic_event)
        elif event.resource_pre_event is not None:
            self._note_begin(event.resource_pre_event.metadata)
        elif event.res_outputs_event is not None:
            self._note_success(event.res_outputs_event.metadata)
        elif event.res_op_failed_event is not None:
            self._note_failure(event.res_op_failed_event.metadata)

    def _note_diagnostic(self, diagnostic: automation.DiagnosticEvent) -> None:
        """Append an error, without `_NOISE`, to those of its resource; ignore other severities."""
        if diagnostic.severity != "error":
            return
        urn = diagnostic.urn or ""
        message = _NOISE.sub("", diagnostic.message)
        self.errors[urn] = self.errors.get(urn, "") + message

    def _note_begin(self, step: automation.StepEventMetadata) -> None:
        """Record a step that begins, and the parent of its resource; of the engine's own provider
        only that its step is in flight.
        """
        state = step.new or step.old
        if state and state.custom and step.op != _ANNOUNCED:
            self.in_flight.add((step.urn, step.op))
        parent = state.parent if state else ""
        if parent:
            self.parents[step.urn] = parent
        # A provider without a parent is the engine's own: every resource of a program has one.
        if parent or not step.type.startswith(PROVIDERS):
            self.steps.append(step)

    def _note_success(self, step: automation.StepEventMetadata) -> None:
        """Record the end of a step; that of the stack brings the stack's outputs, of which those
        with a secret are left out.
        """
        self.in_flight.discard((step.urn, step.op))
        if step.type != STACK or step.new is None:
            return
        outputs = step.new.outputs or {}
        self.outputs = {
            name: value for name, value in outputs.items() if SECRET_MARK not in str(value)
        }

    def _note_failure(self, step: automation.StepEventMetadata) -> None:
        """Record a step that failed, and the state of its resource."""
        self.in_flight.discard((step.urn, step.op))
        if step.op == _REPLACED_DELETED:
            self.stuck.add(step.urn)
        state = step.new or step.old
        self.failed[step.urn] = of_step(state) if state else {}

    @property
    def began(self) -> bool:
        """Whether the run began a step that changes something."""
        return any(step.op not in UNTOUCHED for step in self.steps)

    @property
    def ended_early(self) -> bool:
        """Whether the engine ended while the program ran, so that later steps were not done."""
        return any("Resource monitor has terminated" in text for text in self.errors.values())

    @property
    def removals_wait(self) -> bool:
        """Whether the program kept the engine from deleting what is no longer declared."""
        return any(REMOVALS_WAIT in text for text in self.errors.values())

    def causes(self) -> dict[str, str]:
        """The errors by URN, without those that only follow from others: of steps that were
        cancelled as the run ended (`context canceled`, and no failed step), and of the program.
        """
        causes: dict[str, str] = {}
        for urn, message in self.errors.items():
            follows = "context canceled" in message or REMOVALS_WAIT in message
            if urn in self.failed or not follows:
                causes[urn] = message
        return causes


def compare_command(stack: str) -> str:
    """A sentence with the command that compares a stack's state with its clusters."""
    command = f"pulumi refresh --preview-only --stack {stack}"
    return f"The clusters were not compared; that does: {command}"


def show_teams(
    name: str,
    report: Report,
    standins: Sequence[str],
    *,
    compared: bool,
) -> None:
    """Print the teams of a stack after an update, how to reach a new one, and whether the update
    changed nothing.

    Args:
        name: The stack.
        report: The report of the update's last run.
        standins: Names of what the sandbox simulates; empty for a stack on your cluster.
        compared: The update refreshed the state from the clusters first.

    Raises:
        KeyError: A team in the outputs lacks a field that is always there.
    """
    teams: Mapping[str, TeamOutput] = report.outputs.get("teams", {})
    result(f"Stack {name}")
    rows = [_cells(team, about) for team, about in teams.items()]
    print_table(_HEADINGS, rows)
    if not report.began:
        _show_unchanged(name, report, compared=compared)
    if standins:
        result(f"Not real here: {', '.join(standins)} (docs/sandbox.md).")
    team = _first_new_team(report, teams)
    if team is None:
        return
    result(
        f"Next:\n{_SANDBOX_TOOLS if standins else ''}"
        f"  {FLEET} team kubeconfig {team} --stack {name} --output {team}.kubeconfig\n"
        f"  kubectl --kubeconfig {team}.kubeconfig get nodes\n"
        f"  {FLEET} doctor --stack {name}\n"
        f"  edit a team in Pulumi.{name}.yaml, then: {preview_command(name)}",
    )


def _first_new_team(report: Report, teams: Mapping[str, TeamOutput]) -> str | None:
    """The first of `teams` in mode virtual that the update created, else the first other one.

    None if it created none of them. Raises KeyError for a new team without a mode.
    """
    created = {
        read_urn(step.urn).name
        for step in report.steps
        if step.type == TEAM and step.op == "create"
    }
    new = [team for team in teams if team in created]
    virtual = [team for team in new if teams[team]["mode"] == "virtual"]
    return next(iter([*virtual, *new]), None)


def _show_unchanged(
    name: str,
    report: Report,
    *,
    compared: bool,
) -> None:
    """Print that an update changed nothing and, unless `compared`, how to compare the clusters."""
    unchanged = sum(step.op == "same" for step in report.steps)
    as_declared = f"Nothing changed: {number_with_noun(unchanged, 'resource', 'is')} as declared"
    if compared:
        result(f"{as_declared}.")
        return
    comparison = compare_command(name)
    result(f"{as_declared} since the last update. {comparison}")
    if first := pulumi_first(comparison):
        result(first)


def _cells(team: str, about: TeamOutput) -> list[str]:
    """The cells of a team below `_HEADINGS`; "-" for no KAI and for no queue.

    Raises KeyError for a team without one of the fields that are always there.
    """
    schedulers = {"virtual": f"KAI {about.get('scheduler')}", "host": "the host's KAI"}
    return [
        team,
        about["mode"],
        schedulers.get(about["mode"], "-"),
        str(int(about["gpus"])),
        about["server"],
        ", ".join(about["queues"]) or "-",
    ]
