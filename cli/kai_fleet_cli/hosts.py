"""The API servers of a stack: of its host cluster, as its file names it, and of its vClusters."""

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Final

from pulumi import automation

from kai_fleet.cluster.kube.answer_limits import OPERATOR_BYTES
from kai_fleet.cluster.kube.api import Api, Limits
from kai_fleet.cluster.kube.errors import KubeError, UnreachableError
from kai_fleet.cluster.kube.objects import MALFORMED
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, running_sandbox
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import state
from kai_fleet_cli.stack_file import reading
from kai_fleet_stack.settings import Settings

SECONDS: Final = 10.0  # for all requests to one API server
# The errors of a cluster that cannot be asked, or that does not answer as Kubernetes does.
CLUSTER_ERRORS: Final = (
    KubeError,
    TenantKubeconfigError,
    automation.errors.CommandError,
    *MALFORMED,
)
_PULUMI_SECONDS: Final = 30.0  # for a command of Pulumi: the state may be far away


def host_of_stack(stack: str) -> Api:
    """The API server of a stack's host; the caller closes it.

    All its requests have SECONDS together, and all its answers OPERATOR_BYTES.

    Raises:
        UnreachableError: The stack's file gives no settings, its kubeconfig cannot be read or is of
            no use, or its sandbox does not run.
    """
    try:
        settings = reading.usable_settings_of(stack)
        return host_opener(stack, settings, context_of(settings))()
    except UserError as error:
        raise UnreachableError(str(error)) from None


def host_version(stack: str) -> str:
    """The version of the host's Kubernetes; "", and a line says why, if it is not known."""
    try:
        with closing(host_of_stack(stack)) as api:
            return str(api.get("/version").get("gitVersion"))
    except KubeError as error:
        say(f"no step is judged by the host's version, which is not known: {error}")
        return ""


def cluster_of_stack(stack: automation.Stack, team: str = "") -> Api:
    """The API server of a team's vCluster, by the kubeconfig of the last update; for "" that of the
    host, as `host_of_stack`.

    All requests have SECONDS together, and all answers of a vCluster TENANT_BYTES. The caller
    closes it. Raises one of CLUSTER_ERRORS if the kubeconfig or the state cannot be read, or is of
    no use; requests raise KubeError.
    """
    if team:
        return Api.of_kubeconfig(state.kubeconfig(stack, team), total_seconds=SECONDS)
    return host_of_stack(stack.name)


def context_of(settings: Settings, chosen: str | None = None) -> str | None:
    """The context of the host in your kubeconfig: the first of the `chosen` one (None and "" for
    none), the file's or for a team stack its platform's, and that of the file's kind cluster.

    None if there is none of these: the stack file has a kubeconfig then, unless a key is wrong.
    """
    cluster = settings.cluster
    of_kind = f"kind-{cluster.name}" if cluster.kind else None
    return chosen or cluster.context or of_kind


def variables_of(settings: Settings, context: str | None) -> dict[str, str]:
    """The variables by which Pulumi's CLI finds a stack's state in the sandbox; empty elsewhere.

    KUBECONFIG is one of them. Without a context the one of a team stack's platform counts: the
    state of both is in the same place.

    Raises UserError if the stack is in the sandbox, which does not run or is not installed.
    """
    facts = settings.platform_facts
    platform_context = facts.context if facts else None
    if (context or platform_context) == SANDBOX_CONTEXT:
        return running_sandbox().env()
    return {}


def host_opener(stack: str, settings: Settings, context: str | None) -> Callable[[], Api]:
    """A function that opens the API server of a stack's host: by a context, or for None and "" by
    the kubeconfig that the stack file has encrypted.

    The context is one of the sandbox's kubeconfig if the stack is in the sandbox, else of yours.
    The function raises UnreachableError if the kubeconfig cannot be read or is of no use. Its
    caller closes what it opens. All requests to that have SECONDS together, and all answers
    OPERATOR_BYTES.

    Raises UserError if the stack is in the sandbox, which does not run or is not installed.
    """
    variables = variables_of(settings, context)
    limits: Limits = {"total_seconds": SECONDS, "most_bytes": OPERATOR_BYTES}

    def open_host() -> Api:
        if context:
            file = variables.get("KUBECONFIG")
            return Api.of_kubeconfig(context=context, file=file, **limits)
        return Api.of_kubeconfig(secret_kubeconfig(stack, variables), **limits)

    return open_host


def pulumi_output(stack: str, variables: Mapping[str, str], *command: str) -> str:
    """The standard output of a command of Pulumi's CLI about a stack, run in the project's folder.

    `variables` count before those of this process.

    Raises:
        OSError: The CLI is missing, or cannot be started.
        SubprocessError: It failed, or took longer than 30 seconds.
    """
    done = subprocess.run(
        ["pulumi", *command, "--stack", stack, "--non-interactive"],
        cwd=reading.ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=_PULUMI_SECONDS,
    )
    return done.stdout


def secret_kubeconfig(stack: str, variables: Mapping[str, str]) -> str:
    """The host's kubeconfig in clear, which the stack file has encrypted.

    `variables` are those of `variables_of`. Raises UnreachableError if Pulumi's CLI is missing,
    fails, as without that key in the file, or takes longer than 30 seconds.
    """
    command = ("config", "get", "--path", "kai-fleet:cluster.kubeconfig")
    try:
        return pulumi_output(stack, variables, *command)
    except (OSError, subprocess.SubprocessError):
        raise UnreachableError(
            "its kubeconfig is a secret of the stack, which cannot be read: run `pulumi login`, or"
            " give --context"
        ) from None
