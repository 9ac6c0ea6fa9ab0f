"""A platform's host cluster and its engine, for commands that only look: nothing is started."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from kai_fleet.values import value_at
from kai_fleet_cli.cluster_reader import ClusterReader, NoAnswerError, PodsHeld
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, engine_path, running_sandbox
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import stack_state
from kai_fleet_cli.teams.lookup import PlatformFile
from kai_fleet_cli.teams.stack_state import StackState


@dataclass(frozen=True)
class Connected:
    """A platform's cluster and the engine's variables; None, with a note, for what is not there."""

    host: ClusterReader | None = None
    variables: Mapping[str, str] | None = field(default=None, repr=False)
    note: str = ""

    def nodes(self) -> list[Mapping[str, Any]] | None:
        """The host's nodes; None where there is no way to it, or no answer, which is said."""
        try:
            return self.host.nodes() if self.host is not None else None
        except NoAnswerError as why:
            say(f"the cluster did not answer, so its nodes are not known: {why}")
            return None

    def states(self, platform: PlatformFile) -> tuple[dict[str, StackState], list[str]]:
        """The states of a platform's stacks by name; and why those that lack cannot be read."""
        states: dict[str, StackState] = {}
        silent: list[str] = []
        if self.variables is None:
            return states, silent
        own = {place.stack: place.name for place in platform.teams.values() if place.own}
        stacks = sorted({platform.stack, *own})
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(stack_state.read, name, self.variables) for name in stacks]
        for name, answer in zip(stacks, asked, strict=True):
            try:
                state = answer.result()
                states[name] = state.only(own[name]) if name in own else state
            except UserError as error:
                silent.append(str(error))
        return states, silent


def to_platform(platform: PlatformFile) -> Connected:
    """The parts of a platform that are there now."""
    context = value_at(platform.raw, "cluster.context")
    in_sandbox = context == SANDBOX_CONTEXT
    host = ClusterReader(str(context)) if context and not in_sandbox else None
    note = "" if host else f"the kubeconfig of {platform.file.name} is {reading.SECRET}"
    try:
        if in_sandbox:
            running = running_sandbox()
            return Connected(ClusterReader(context, running.kubeconfig), running.env())
        return Connected(host, {"PATH": engine_path()}, note)
    except UserError as error:
        return Connected(host, note=str(error))


def variables(platform: PlatformFile) -> Mapping[str, str]:
    """The engine's variables for a platform; raises UserError where there is no engine."""
    connected = to_platform(platform)
    if connected.variables is None:
        raise UserError(connected.note)
    return connected.variables


def state(platform: PlatformFile, team: str) -> StackState:
    """The state of the stack that declares a team. Raises UserError where it cannot be read."""
    return stack_state.read(platform.team(team).stack, variables(platform))


def held(platform: PlatformFile, team: str) -> PodsHeld | None:
    """The pods that run in a team's vCluster; None where it cannot be reached."""
    try:
        content = state(platform, team).kubeconfigs.get(team)
        return ClusterReader(content=content).held() if content else None
    except (UserError, NoAnswerError):
        return None
