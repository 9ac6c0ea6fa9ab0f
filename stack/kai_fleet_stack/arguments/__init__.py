"""The arguments of each component, from the settings of a stack.

Most settings and arguments have the same name. A setting that is None is left out, so that the
component's default holds. A module has the arguments of one part of a stack; `Arguments` adds what
only a run knows: how the host is reached, and what is there already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypedDict

import pulumi

from kai_fleet.declaring.inputs import resolved
from kai_fleet_stack.arguments import host, team
from kai_fleet_stack.arguments.shared import in_clear
from kai_fleet_stack.settings import Settings

if TYPE_CHECKING:  # rules use this module without the components
    from kai_fleet.gpu_stack import GpuStackArgs
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs
    from kai_fleet.kai.kai_scheduler import KaiSchedulerArgs
    from kai_fleet.queue_tree import QueueTreeArgs
    from kai_fleet.team import TeamArgs


class Connection(TypedDict, total=False):
    """The arguments by which components reach the host cluster: one of them.

    A kubeconfig is its content. A context of "" is the current one.
    """

    kubeconfig: pulumi.Input[str]
    context: str


class UseExisting(TypedDict, total=False):
    """What others own on the host: `use_existing` of GpuStack and KaiScheduler, and the teams whose
    namespace existed before the stack. Without a key nothing is: the same as an empty list.
    """

    gpu: list[str]
    kai: list[str]
    teams: list[str]


@dataclass(frozen=True)
class Arguments:
    """The arguments of all components of one stack.

    A method that takes a team's name raises KeyError for one that the settings do not have.

    Args:
        settings: Those of a stack, which rules have accepted if something is declared.
        host: How the host is reached; empty where nothing is declared, as in the doctor.
        existing: What `existing.find` found. What it leaves out is declared by the stack.
        refused: Output `refused` of the host's QueueTree, after it is declared: by queue why it is
            not as declared. None before, and without a KAI on the host.
    """

    settings: Settings
    host: Connection = field(default_factory=Connection)
    existing: UseExisting = field(default_factory=UseExisting)
    refused: pulumi.Input[dict[str, str]] | None = None

    def gpu_stack(self) -> GpuStackArgs:
        """Arguments of the GPU stack; without the host, which its options have."""
        args = host.gpu_stack(self.settings)
        if "gpu" in self.existing:
            args["use_existing"] = self.existing["gpu"]
        return args

    def host_kai(self) -> KaiSchedulerArgs:
        """Arguments of the host's KAI and of its connection.

        `use_existing` has what others own, and the CRD that the GPU stack installs. Raises
        AssertionError if the settings have no such KAI.
        """
        args = host.kai(self.settings)
        existing = self.existing.get("kai", ())
        args["use_existing"] = [*existing, *args["use_existing"]]
        return {**args, **self.host}

    def host_queues(self) -> QueueTreeArgs:
        """Arguments of the host's queues and of their connection.

        Raises ValueError for an invalid quantity, which settings refuse.
        """
        return {**host.queues(self.settings), **self.host}

    def refusals_of_unused_queues(self) -> pulumi.Input[str]:
        """Why queues that no team uses differ from the settings, a line each, sorted by name.

        "" if none does, and without `refused`. Queues above a used one count as unused.
        """
        used_queues = set[str | None]()
        for name in self.settings.all_teams:
            _, queue = self.settings.scheduler_and_queue_of(name)
            used_queues.add(queue)

        def lines(refused: Mapping[str, str]) -> str:
            unused = sorted(refused.keys() - used_queues)
            return "\n".join(refused[queue] for queue in unused)

        return resolved(lines, self.refused or {})

    def namespace(self, name: str) -> TeamNamespaceArgs:
        """Arguments of the namespace of a team of this stack, or of one with a stack of its own.

        `use_existing` is always there, so that the component refuses no namespace. With `refused`,
        a team that the host's KAI schedules by a queue also has `queue_refusal`, why the host
        refused that queue; "" if it did not.
        """
        args = team.namespace(self.settings, name)
        args["use_existing"] = name in self.existing.get("teams", ())
        scheduler, queue = self.settings.scheduler_and_queue_of(name)
        if scheduler == "host" and queue and self.refused is not None:
            args["queue_refusal"] = resolved(lambda why: why.get(queue, ""), self.refused)
        return args

    def team(self, name: str) -> TeamArgs:
        """Arguments of a team of this stack; in its own stack without the platform's namespace.

        In mode virtual it has `kai` and `queues`, and `guard` unless that is off. In mode host it
        has `host_queues` if the file has queues. `vcluster` and `host_queues` have the connection.
        """
        settings = self.settings
        section = settings.teams[name]
        args: TeamArgs = {"vcluster": {**team.vcluster(settings, name), **self.host}}
        if settings.platform_facts is None:
            args["namespace"] = self.namespace(name)
        if section.backup:
            args["backup"] = in_clear(section.backup)
        if section.scheduler.mode == "virtual":
            args["kai"] = team.kai(settings, name)
            args["queues"] = team.queues(settings, name)
            if settings.guard.mode != "off":
                args["guard"] = team.guard(settings, name)
        elif section.scheduler.mode == "host" and section.queues:
            args["host_queues"] = {**team.queues(settings, name), **self.host}
        return args
