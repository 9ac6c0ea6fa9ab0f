"""Where a stack's clusters are, and how to ask them: by a stack, or by a kubectl context."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from kai_fleet.kube.api import OF_OPERATORS, Api
from kai_fleet.kube.errors import UnreachableError
from kai_fleet_cli.doctor import desired
from kai_fleet_cli.doctor.read import SECONDS, Sources
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, running_sandbox
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.platform import settings_of


def of_context(context: str | None, kubeconfig: Path | None, team: str | None) -> Sources:
    """A cluster without a stack file. Raises UserError."""
    if context is None and kubeconfig is None:
        raise UserError(
            "write --stack with a stack's name, --context with a kubectl context, or --kubeconfig"
        )
    file = str(kubeconfig) if kubeconfig else None
    flags = {"--kubeconfig": file, "--context": context}
    options = [word for flag, value in flags.items() if value is not None for word in (flag, value)]
    return Sources(
        host=lambda: Api.of_context(file, context, in_all=SECONDS, most=OF_OPERATORS),
        only=team,
        host_kubectl=shlex.join(["kubectl", *options]),
        context=context or "this cluster",
    )


def of_stack(stack: str, team: str | None, context: str | None) -> Sources:
    """The clusters of a stack. Raises UserError for a stack, or a team of it, that is not there."""
    settings = settings_of(stack)
    teams = desired.teams_of(settings)
    if team is not None and team not in teams:
        known = ", ".join(teams) or "none"
        raise UserError(f"stack {stack} has no team {team}; its teams: {known}")
    where = context or settings.cluster.context
    # A team with a kubeconfig of its own has its stack's state where its platform's is.
    facts = settings.platform_facts
    file, variables = _sandbox(where or (facts.context if facts else None))

    def open_host() -> Api:
        if where:
            return Api.of_context(file, where, in_all=SECONDS, most=OF_OPERATORS)
        content = _secret_kubeconfig(stack, variables)
        return Api.of_kubeconfig(content, in_all=SECONDS, most=OF_OPERATORS)

    update = "`.venv/bin/fleet up --refresh --stack {}`"
    # The host of a team's own stack is as the platform's stack declares it.
    platform = settings.platform_stack
    host_stack = platform.rpartition("/")[2] if platform else stack
    flag = f"--context {shlex.quote(where)}" if where else "--kubeconfig <the host's>"
    return Sources(
        host=open_host,
        desired=desired.host_of(settings),
        teams=teams if team is None else {team: teams[team]},
        update=update.format(host_stack),
        team_update=update.format(stack),
        host_kubectl=f"kubectl {flag}",
        namespace=f"team-{next(iter(settings.teams))}" if platform else None,
    )


def _sandbox(context: str | None) -> tuple[str | None, dict[str, str]]:
    """The sandbox's own kubeconfig for its stacks, and what the engine needs there."""
    if context != SANDBOX_CONTEXT:
        return None, {}
    running = running_sandbox()
    return str(running.kubeconfig), running.env()


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
