"""The report of a run, from the engine's events; the table at the end of an update."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pulumi import automation
from rich.console import Console

from kai_fleet.marks import SECRET_MARK
from kai_fleet.names import PROVIDERS, STACK, TEAM
from kai_fleet.settings.files.project import FLEET, preview_command
from kai_fleet.urns import read_urn
from kai_fleet.wording import counted
from kai_fleet_cli.display.terminal import print_line, print_table, pulumi_first

# What happens to a resource without a change of anything: it may be read, or no longer read.
UNTOUCHED: Final = ("same", "read", "discard")
# The deletion of what is replaced; the step that stands for both is none of its own.
_DELETED_FIRST: Final = "delete-replaced"
_LOGICAL: Final = ("replace",)
# The engine's colours, and what the Kubernetes plugin says before an error, with the URN.
_MARKS: Final = re.compile(
    r"<\{%[^%]*%\}>|resource \S+ was not successfully \w+ by the Kubernetes API server: ?"
    r"|Server-Side Apply field conflict detected\. See \S+ for troubleshooting help\s*"
)
_HEADINGS: Final = ("team", "mode", "scheduler", "GPUs", "API", "leaf queues")
_SANDBOX_TOOLS: Final = f'  eval "$({FLEET} sandbox env)"   # its kubectl, helm and pulumi\n'


@dataclass
class Report:
    """Errors by URN, the resources whose step failed, and each resource's parent.

    `steps` are all that the run began. `outputs` are the stack's that hold no secret. `stuck` are
    resources that stayed where others were to replace them, `in_flight` the steps that go on;
    `last` is when something happened, by the monotonic clock.
    """

    errors: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict, repr=False)
    steps: list[Any] = field(default_factory=list, repr=False)
    stuck: set[str] = field(default_factory=set)
    in_flight: set[tuple[str, str]] = field(default_factory=set)
    last: float = field(default_factory=time.monotonic)

    def note(self, event: automation.EngineEvent) -> None:
        """Record one event."""
        self.last = time.monotonic()
        if (diagnostic := event.diagnostic_event) is not None and diagnostic.severity == "error":
            urn = diagnostic.urn or ""
            self.errors[urn] = self.errors.get(urn, "") + _MARKS.sub("", diagnostic.message)
        elif event.resource_pre_event is not None:
            step = event.resource_pre_event.metadata
            if getattr(step.new or step.old, "custom", False) and step.op not in _LOGICAL:
                self.in_flight.add((step.urn, step.op))
            if parent := getattr(step.new or step.old, "parent", None):
                self.parents[step.urn] = parent
            # No program declares a provider at the top: the engine makes that for itself.
            if parent or not step.type.startswith(PROVIDERS):
                self.steps.append(step)
        elif event.res_outputs_event is not None:
            step = event.res_outputs_event.metadata
            self.in_flight.discard((step.urn, step.op))
            if step.type == STACK and step.new is not None:
                outputs = (step.new.outputs or {}).items()
                self.outputs = {k: value for k, value in outputs if SECRET_MARK not in str(value)}
        elif event.res_op_failed_event is not None:
            step = event.res_op_failed_event.metadata
            self.in_flight.discard((step.urn, step.op))
            if step.op == _DELETED_FIRST:
                self.stuck.add(step.urn)
            state = step.new or step.old
            keys = ("urn", "type", "parent", "provider", "inputs")
            self.failed[step.urn] = {key: getattr(state, key) for key in keys} if state else {}

    @property
    def began(self) -> bool:
        """Whether it began to change something."""
        return any(step.op not in UNTOUCHED for step in self.steps)

    @property
    def ended_early(self) -> bool:
        """Whether the engine ended while the program ran: what was to follow is not done."""
        return any("Resource monitor has terminated" in each for each in self.errors.values())

    def own_errors(self) -> dict[str, str]:
        """The errors without those of steps that were cancelled when the run ended."""
        return {
            urn: message
            for urn, message in self.errors.items()
            if urn in self.failed or "context canceled" not in message
        }


def compare_command(stack: str) -> str:
    """What compares a stack with its clusters, as a sentence after what was not compared."""
    command = f"pulumi refresh --preview-only --stack {stack}"
    return f"The clusters were not compared; that does: {command}"


def show_teams(
    name: str, report: Report, standins: Sequence[str], console: Console, *, compared: bool
) -> None:
    """Print the teams of a stack as a table, what is simulated, and how to reach a new one.

    `compared`: the state was refreshed from the clusters before.
    """
    teams: Mapping[str, Mapping[str, Any]] = report.outputs.get("teams", {})
    print_line(console, f"Stack {name}")
    print_table(console, _HEADINGS, [_cells(*item) for item in teams.items()])
    if not report.began:
        same = sum(step.op == "same" for step in report.steps)
        as_declared = f"Nothing changed: {counted(same, 'resource', 'is')} as declared"
        last = "." if compared else f" since the last update. {compare_command(name)}"
        print_line(console, f"{as_declared}{last}")
        if first := pulumi_first(last):
            print_line(console, first)
    if standins:
        print_line(console, f"Not real here: {', '.join(standins)} (docs/sandbox.md).")
    created = {read_urn(step.urn).name for step in report.steps if _is_new_team(step)}
    new = [team for team in teams if team in created]
    if not new:
        return
    virtual = [team for team in new if teams[team]["mode"] == "virtual"]
    team = (virtual or new)[0]
    print_line(
        console,
        f"Next:\n{_SANDBOX_TOOLS if standins else ''}"
        f"  {FLEET} team kubeconfig {team} --stack {name} --output {team}.kubeconfig\n"
        f"  kubectl --kubeconfig {team}.kubeconfig get nodes\n"
        f"  {FLEET} doctor --stack {name}\n"
        f"  edit a team in Pulumi.{name}.yaml, then: {preview_command(name)}",
    )


def _is_new_team(step: Any) -> bool:
    return bool(step.type == TEAM and step.op == "create")


def _cells(team: str, about: Mapping[str, Any]) -> list[str]:
    schedulers = {"virtual": f"KAI {about.get('scheduler')}", "host": "the host's KAI"}
    scheduler, gpus = schedulers.get(about["mode"], "-"), str(int(about["gpus"]))
    leaves = ", ".join(about["queues"]) or "-"
    return [team, about["mode"], scheduler, gpus, about["server"], leaves]
