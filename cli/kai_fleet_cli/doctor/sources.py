"""Where a stack's clusters are, and how the doctor asks them: by a stack, or a kubectl context."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.settings import Settings
from kai_fleet_cli.doctor.declared import host_of
from kai_fleet_cli.doctor.gather import SECONDS, ClusterSources
from kai_fleet_cli.engine.checkout import running_sandbox
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import facts_beside
from kai_fleet_cli.teams import stack_state
from kai_fleet_policies import validation
from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.api import OF_OPERATORS, Api
from kubectl_fleet.kube.errors import UnreachableError


def of_context(context: str | None, kubeconfig: Path | None, team: str | None) -> ClusterSources:
    """A cluster without a stack file, by a kubeconfig or a context of one. Raises UserError."""
    if context is None and kubeconfig is None:
        raise UserError(
            "write --stack with a stack's name, --context with a kubectl context, or --kubeconfig"
        )
    file = str(kubeconfig) if kubeconfig else None
    options = [] if file is None else ["--kubeconfig", file]
    options += [] if context is None else ["--context", context]
    return ClusterSources(
        host=lambda: Api.of_context(file, context, in_all=SECONDS, most=OF_OPERATORS),
        only=team,
        host_kubectl=shlex.join(["kubectl", *options]),
        context=context or "this cluster",
    )


def of_stack(stack: str, team: str | None, context: str | None) -> ClusterSources:
    """The clusters of a stack: a platform's, or those of a team's own stack.

    Raises UserError for a stack, or a team of it, that there is not.
    """
    settings = settings_of(stack)
    fleet = fleet_of(settings)
    teams = fleet.every_team
    if team is not None and team not in teams:
        known = ", ".join(teams) or "none"
        raise UserError(f"stack {stack} has no team {team}; its teams: {known}")
    where = context or settings.cluster.context
    file, variables = _sandbox(where or _platform_context(settings))

    def open_host() -> Api:
        if where:
            return Api.of_context(file, where, in_all=SECONDS, most=OF_OPERATORS)
        content = _secret_kubeconfig(stack, variables)
        return Api.of_kubeconfig(content, in_all=SECONDS, most=OF_OPERATORS)

    update = "`.venv/bin/fleet up --refresh --stack {}`"
    # The host of a team's own stack is as the platform's stack declares it.
    host_stack = fleet.platform.rpartition("/")[2] if fleet.platform else stack
    return ClusterSources(
        host=open_host,
        wanted=host_of(fleet),
        teams=teams if team is None else {team: teams[team]},
        kubeconfigs=lambda: _kubeconfigs(stack, variables),
        update=update.format(host_stack),
        team_update=update.format(stack),
        host_kubectl=f"kubectl --context {shlex.quote(where)}"
        if where
        else "kubectl --kubeconfig <the host's>",
        namespace=f"team-{fleet.own_team}" if fleet.platform else None,
    )


def settings_of(stack: str) -> Settings:
    """A stack's settings, a team stack's with its platform's file beside it. Raises UserError."""
    path = reading.path_of(stack)
    raw = reading.read(path)
    verdict = validation.validate(raw, facts_of=facts_beside(path))
    if verdict.settings is None:
        raise UserError(validation.report(verdict.refused))
    return verdict.settings


def variables_of(stack: str) -> dict[str, str]:
    """What the engine needs in its environment to be asked about a stack. Raises UserError."""
    settings = settings_of(stack)
    return _sandbox(settings.cluster.context or _platform_context(settings))[1]


def _platform_context(settings: Settings) -> str | None:
    """The context of a team stack's platform, where the team has a kubeconfig of its own."""
    return settings.platform_facts.cluster.context if settings.platform_facts else None


def _sandbox(context: str | None) -> tuple[str | None, dict[str, str]]:
    """The sandbox's own kubeconfig for its stacks, and what the engine needs there."""
    if context != SANDBOX_CONTEXT:
        return None, {}
    running = running_sandbox()
    return str(running.kubeconfig), running.env()


def _kubeconfigs(stack: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    """The teams' kubeconfigs from the stack's state; none where it cannot be asked."""
    try:
        return stack_state.read(stack, variables).kubeconfigs
    except UserError:
        return {}


def _secret_kubeconfig(stack: str, variables: Mapping[str, str]) -> str:
    """The host's kubeconfig, which the stack file holds encrypted. Raises UnreachableError."""
    from pulumi import automation

    key = "kai-fleet:cluster.kubeconfig"
    options = automation.LocalWorkspaceOptions(
        work_dir=str(reading.ROOT), env_vars={**os.environ, **variables}
    )
    try:
        # Selecting does not make a stack that is not there.
        selected = automation.select_stack(stack, reading.PROJECT, lambda: None, opts=options)
        return str(selected.get_config(key, path=True).value)
    except (automation.errors.CommandError, FileNotFoundError):  # or there is no CLI
        raise UnreachableError(
            "its kubeconfig is a secret of the stack, which cannot be read: run `pulumi login`, or"
            " give --context"
        ) from None
