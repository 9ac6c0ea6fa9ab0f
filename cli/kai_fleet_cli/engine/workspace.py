"""Open a stack for the engine, with the product's program and provider in this process."""

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from subprocess import CalledProcessError

from pulumi import automation
from pulumi_kubernetes import core, networking, rbac

from kai_fleet.provider import PluginError, plugin
from kai_fleet_cli.engine.environment import INSTALL_PAGE, program
from kai_fleet_cli.engine.errors import EngineError
from kai_fleet_cli.recovery import failures, resume, state
from kai_fleet_cli.recovery.state import State
from kai_fleet_cli.stack_file.reading import ROOT

_ENGINE_VARIABLES = {
    # By how many percent Go's heap grows before the next garbage collection: with Go's own 100 it
    # takes a tenth of the time of runs as short as these.
    "GOGC": os.environ.get("GOGC", "400"),
    # The same as in the program's providers; the Kubernetes plugin reads it from v4.29 on.
    "PULUMI_K8S_ENABLE_PATCH_FORCE": "true",
}


class Workspace(automation.LocalWorkspace):
    """A workspace that starts the CLI less often than the SDK's, because each start takes time.

    Attributes:
        opened: The state that `select_stack` read; None before, and once `last_state` took it.
    """

    opened: State | None = None

    def select_stack(self, stack_name: str) -> None:
        """Select a stack, and at the same time read its state into `opened`.

        Raises CommandError if there is no such stack, or its state cannot be read.
        """
        with ThreadPoolExecutor() as pool:
            reading = pool.submit(state.exported, self, stack_name)
            super().select_stack(stack_name)
        self.opened = reading.result()

    def stack_outputs(self, stack_name: str) -> automation.OutputMap:
        """Return no outputs, which the SDK reads after an update: `Report` has them from an event,
        without secrets.
        """
        return {}


def open_stack(
    name: str, environment: Mapping[str, str], directory: Path = ROOT
) -> automation.Stack:
    """Open a stack, and create it on first use. From then on this process serves the provider.

    Args:
        name: The stack.
        environment: Variables for the engine, its plugins and the program; they override those of
            this process.
        directory: The folder of the stack's file.

    Raises:
        EngineError: The CLI cannot open or create the stack, is too old for the Automation API, is
            not on PATH, or does not run; or the provider does not start.
    """
    variables = {**_ENGINE_VARIABLES, **environment}
    # While the CLI starts. A provider in a process of its own would load the package once more.
    executor = ThreadPoolExecutor(1)
    serving = executor.submit(plugin.serve_here)
    loading = executor.submit(_load_sdk)
    try:
        with variables_set(environment):  # the SDK looks for the CLI on the PATH of this process
            workspace = Workspace(work_dir=str(directory), env_vars=variables, program=program)
        stack = automation.Stack.create_or_select(name, workspace)
        workspace.env_vars = {**variables, **serving.result()}
    except automation.errors.CommandError as error:
        run = failures.Run(name, resume.up_command(name), environment)
        message = failures.explain(f"opening stack {name}", run, error)
        raise EngineError(message, began=False) from None
    except (automation.errors.InvalidVersionError, OSError, CalledProcessError) as error:
        message = f"Pulumi's CLI cannot be used: {error}; install another: {INSTALL_PAGE}"
        raise EngineError(message, began=False) from None
    except PluginError as error:
        raise EngineError(str(error), began=False) from None
    loading.result()  # the program and an offline plan would import half-loaded modules
    return stack


def last_state(stack: automation.Stack) -> State:
    """The stack's state: at the first call as the stack was opened, then read anew; read at once
    if opening created it.

    Raises CommandError if it cannot be read.
    """
    opened: State | None = vars(stack.workspace).pop("opened", None)
    return opened or state.exported(stack.workspace, stack.name)


@contextmanager
def variables_set(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables in this process, and restore its environment at the end, also where others
    changed it meanwhile.

    The program and the provider run in this process, and read KUBECONFIG from nowhere else.
    """
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _load_sdk() -> tuple[type, ...]:
    """Load the modules of the SDK that load on first use, 0.6 s of CPU, and return a class of each.

    The program needs them at once. Here they load in a thread while the CLI starts.
    """
    return core.v1.Namespace, networking.v1.NetworkPolicy, rbac.v1.Role
