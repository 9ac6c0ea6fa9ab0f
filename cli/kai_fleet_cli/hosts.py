"""The API servers of a stack: of its host cluster, as its file names it, and of its vClusters."""

import os
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from pulumi import automation

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, UnreachableError
from kai_fleet.cluster.kube.objects import MALFORMED
from kai_fleet.cluster.kube.round import OPERATOR_BYTES
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError
from kai_fleet.settings import Settings
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, running_sandbox
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import state
from kai_fleet_cli.stack_file import reading

SECONDS: Final = 10.0  # for all requests to one API server
# Where a cluster cannot be asked, or answers what no Kubernetes does.
NO_ANSWER: Final = (KubeError, TenantKubeconfigError, automation.errors.CommandError, *MALFORMED)
_PULUMI_SECONDS: Final = 30.0  # a state may be far away


def host_of_stack(stack: str) -> Api:
    """The host's API server of a stack. Raises UnreachableError where its file does not say it, or
    its sandbox does not run.
    """
    try:
        settings = reading.settings_of(stack)
        return opener(stack, settings, context_of(settings))()
    except UserError as error:
        raise UnreachableError(str(error)) from None


def cluster_of_stack(stack: automation.Stack, team: str = "") -> Api:
    """The API server of a team's vCluster, as the last update exported it; without a team of the
    host. Raises one of NO_ANSWER.
    """
    if team:
        return Api.of_kubeconfig(state.kubeconfig(stack, team), total_seconds=SECONDS)
    return host_of_stack(stack.name)


def context_of(settings: Settings, chosen: str | None = None) -> str | None:
    """The context of the host's kubeconfig; None where the file has a kubeconfig."""
    cluster = settings.cluster
    return chosen or cluster.context or (f"kind-{cluster.name}" if cluster.kind else None)


def variables_of(settings: Settings, context: str | None) -> dict[str, str]:
    """The variables with which Pulumi's CLI finds the state: a sandbox's, else none of ours.

    Raises UserError for a sandbox that does not run.
    """
    facts = settings.platform_facts
    # A team with a kubeconfig of its own has its stack's state where its platform's is.
    if (context or (facts.context if facts else None)) == SANDBOX_CONTEXT:
        return running_sandbox().env()
    return {}


def opener(stack: str, settings: Settings, context: str | None) -> Callable[[], Api]:
    """What opens the host's API server. Raises UserError for a sandbox that does not run."""
    variables = variables_of(settings, context)

    def host() -> Api:
        if context:
            file = variables.get("KUBECONFIG")
            return Api.of_context(file, context, total_seconds=SECONDS, most_bytes=OPERATOR_BYTES)
        content = _secret_kubeconfig(stack, variables)
        return Api.of_kubeconfig(content, total_seconds=SECONDS, most_bytes=OPERATOR_BYTES)

    return host


def pulumi_output(stack: str, variables: Mapping[str, str], *command: str) -> str:
    """What Pulumi's CLI prints of a stack. Raises OSError, SubprocessError."""
    return subprocess.run(
        ["pulumi", *command, "--stack", stack, "--non-interactive"],
        cwd=reading.ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=_PULUMI_SECONDS,
    ).stdout


def _secret_kubeconfig(stack: str, variables: Mapping[str, str]) -> str:
    """The host's kubeconfig, which the stack file holds encrypted. Raises UnreachableError."""
    command = ("config", "get", "--path", "kai-fleet:cluster.kubeconfig")
    try:
        return pulumi_output(stack, variables, *command)
    except (OSError, subprocess.SubprocessError):  # or there is no CLI
        raise UnreachableError(
            "its kubeconfig is a secret of the stack, which cannot be read: run `pulumi login`, or"
            " give --context"
        ) from None
