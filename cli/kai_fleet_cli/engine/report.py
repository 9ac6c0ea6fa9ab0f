"""The report of a run, from the engine's events: failed resources and the stack's outputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pulumi import automation

from kai_fleet.cluster.provider.values import SECRET_MARK
from kai_fleet.names import PROVIDERS, STACK

# What happens to a resource without a change of anything: it may be read, or no longer read.
UNTOUCHED: Final = ("same", "read", "discard")


@dataclass
class Report:
    """Errors by URN, the resources whose step failed, and each resource's parent.

    `steps` are all that the run began. `outputs` are the stack's that hold no secret.
    """

    errors: dict[str, str] = field(default_factory=dict)
    failed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict, repr=False)
    steps: list[Any] = field(default_factory=list, repr=False)

    def note(self, event: automation.EngineEvent) -> None:
        """Record one event."""
        if (diagnostic := event.diagnostic_event) is not None and diagnostic.severity == "error":
            urn = diagnostic.urn or ""
            self.errors[urn] = f"{self.errors.get(urn, '')}{diagnostic.message}"
        elif event.resource_pre_event is not None:
            step = event.resource_pre_event.metadata
            if parent := getattr(step.new or step.old, "parent", None):
                self.parents[step.urn] = parent
            # No program declares a provider at the top: the engine makes that for itself.
            if parent or not step.type.startswith(PROVIDERS):
                self.steps.append(step)
        elif event.res_outputs_event is not None:
            step = event.res_outputs_event.metadata
            if step.type == STACK and step.new is not None:
                outputs = (step.new.outputs or {}).items()
                self.outputs = {k: value for k, value in outputs if SECRET_MARK not in str(value)}
        elif event.res_op_failed_event is not None:
            step = event.res_op_failed_event.metadata
            state = step.new or step.old
            keys = ("urn", "type", "parent", "provider", "inputs")
            self.failed[step.urn] = {key: getattr(state, key) for key in keys} if state else {}

    @property
    def began(self) -> bool:
        """Whether it began to change something."""
        return any(operation(step) not in UNTOUCHED for step in self.steps)

    def own_errors(self) -> dict[str, str]:
        """The errors without those of steps that were cancelled when the run ended."""
        return {
            urn: message
            for urn, message in self.errors.items()
            if urn in self.failed or "context canceled" not in message
        }


def operation(step: Any) -> str:
    """The operation of an engine's step: `create`, `update`, `replace`, `delete`, `same`…"""
    return str(getattr(step.op, "value", step.op))
