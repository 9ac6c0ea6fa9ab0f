"""The API servers of a stack: of its host cluster, as its file names it, and of its vClusters."""

import os
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

from pulumi import automation

from kai_fleet.cluster.kube.answer_limits import OPERATOR_BYTES
from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError, UnreachableError
from kai_fleet.cluster.kube.objects import MALFORMED
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT, running_sandbox
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery import state
from kai_fleet_cli.stack_file import reading
from kai_fleet_stack.settings import Settings

SECONDS = 10.0  # for all requests to one API server
# The errors of a cluster that cannot be asked, or that does not answer as Kubernetes does.
CLUSTER_ERRORS = (
    KubeError,
    TenantKubeconfigError,
    automation.errors.CommandError,
    *MALFORMED,
)
_PULUMI_SECONDS = 30.0  # for a command of Pulumi: the state may be far away


def host_of_stack(stack: str) -> Api:
    """The API server of a stack's host; the caller closes it.

    All its requests have SECONDS together, and all its answers OPERATOR_BYTES.

    Raises:
        UnreachableError: The stack's file gives no settings, its kubeconfig cannot be read or is of
            no use, or its sandbox does not run.
    """
    try:
        return host_address(stack, reading.usable_settings_of(stack)).open()
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


@dataclass(frozen=True)
class HostAddress:
    """How the host of a stack is reached.

    Attributes:
        stack: The stack.
        context: A context of the sandbox's kubeconfig if the stack is in the sandbox, else of
            yours. None for the kubeconfig in the stack file, unless a key there is wrong.
        variables: The variables by which Pulumi's CLI finds the stack's state in the sandbox, and
            KUBECONFIG; empty elsewhere.
    """

    stack: str
    context: str | None
    variables: Mapping[str, str]

    @cached_property
    def kubeconfig(self) -> str | None:
        """The kubeconfig that the stack file has encrypted, in clear; None with a context.

        Raises UnreachableError if Pulumi's CLI is missing, fails, as without that key in the file,
        or takes longer than 30 seconds.
        """
        if self.context:
            return None
        command = ("config", "get", "--path", "kai-fleet:cluster.kubeconfig")
        try:
            return pulumi_output(self.stack, self.variables, *command)
        except (OSError, subprocess.SubprocessError):
            raise UnreachableError(
                "its kubeconfig is a secret of the stack, which cannot be read: run `pulumi"
                " login`, or give --context"
            ) from None

    def open(self, total_seconds: float | None = SECONDS) -> Api:
        """The API server, whose answers have OPERATOR_BYTES; the caller closes it.

        All its requests have `total_seconds` together; None bounds each alone. Raises
        UnreachableError if the kubeconfig cannot be read or is of no use.
        """
        return Api.of_kubeconfig(
            self.kubeconfig,
            context=self.context,
            file=self.variables.get("KUBECONFIG"),
            total_seconds=total_seconds,
            most_bytes=OPERATOR_BYTES,
        )


def host_address(stack: str, settings: Settings, chosen: str | None = None) -> HostAddress:
    """The address of a stack's host: by the first of the `chosen` context (None and "" for none),
    the file's or for a team stack its platform's, and that of the file's kind cluster.

    The state of a team stack is where its platform's is, whatever its context.

    Raises UserError if the stack is in the sandbox, which does not run or is not installed.
    """
    cluster = settings.cluster
    of_kind = f"kind-{cluster.name}" if cluster.kind else None
    context = chosen or cluster.context or of_kind
    facts = settings.platform_facts
    platform_context = facts.context if facts else None
    variables: Mapping[str, str] = {}
    if (context or platform_context) == SANDBOX_CONTEXT:
        variables = running_sandbox().env()
    return HostAddress(stack, context, variables)


def pulumi_output(
    stack: str,
    variables: Mapping[str, str],
    *command: str,
    seconds: float | None = _PULUMI_SECONDS,
) -> str:
    """The standard output of a command of Pulumi's CLI about a stack, run in the project's folder.

    `variables` count before those of this process.

    Raises:
        OSError: The CLI is missing, or cannot be started.
        SubprocessError: It failed, or took longer than `seconds`; None is no bound.
    """
    done = subprocess.run(
        ["pulumi", *command, "--stack", stack, "--non-interactive"],
        cwd=reading.ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds,
    )
    return done.stdout
