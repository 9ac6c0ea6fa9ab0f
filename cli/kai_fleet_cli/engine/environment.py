"""Where a stack's engine runs, in the sandbox or on your cluster, and the program that it runs.

A checkout has the sandbox; the wheels do not, so package `sandbox` is imported in functions.
"""

from __future__ import annotations

import os
import runpy
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import kai_fleet_stack
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import policy_pack_program
from kai_fleet_policies.finding import report as finding_report
from kai_fleet_stack import declared, validation
from kai_fleet_stack.project import CHECKOUT, update_command
from kai_fleet_stack.settings.secrets import copied_ciphertexts
from kai_fleet_stack.settings.team_stack import platform_of

if TYPE_CHECKING:
    from sandbox.lifecycle import Sandbox

SANDBOX_CONTEXT = declared.SANDBOX
INSTALL_PAGE = "https://www.pulumi.com/docs/install/"
# A file in the sandbox's directory with the name of the stack that runs there.
OCCUPANT = "stack"


@dataclass(frozen=True)
class Environment:
    """Where a stack's engine runs.

    Attributes:
        variables: Variables for the engine and its plugins, besides those of this process.
        standins: Names of what is simulated there; empty on your cluster.
        occupant: The file with the name of the stack in the sandbox, if this stack wrote it.
    """

    variables: dict[str, str] = field(default_factory=dict)
    standins: tuple[str, ...] = ()
    occupant: Path | None = None

    def release_sandbox(self) -> None:
        """Delete the occupant's file, so that another stack may run in the sandbox."""
        if self.occupant is not None:
            self.occupant.unlink(missing_ok=True)


def for_stack(stack: str, *, validated: bool = True) -> Environment:
    """Prepare the environment in which a stack's engine runs.

    A stack whose context is the sandbox's gets the sandbox, which is started if `validated`; what
    died in a running one is started again, and OCCUPANT gets the name of a platform's stack. Every
    other stack gets Pulumi's CLI, as `_own_cluster` says, and uses your login and kubeconfig: also
    one that only the engine can judge, because its platform has no file here, or because its file
    takes values of Pulumi ESC and is refused without them.

    Args:
        stack: The stack.
        validated: Ask the rules about the stack file first. Without, what runs can be read and
            removed whatever they say.

    Raises:
        UserError: The stack or its platform is no stack's name; the file cannot be read, gives no
            settings, or is refused by the rules (`validated`); `_in_sandbox` or `_own_cluster`
            refuses; or this shell has the sandbox's variables, and the stack is of another cluster
            (`validated`).
    """
    file = reading.path_of(stack)
    raw = reading.read(file)
    platform = platform_of(raw)
    if is_elsewhere(platform):
        return _own_cluster()  # the program judges the file, with the platform's facts
    verdict = _verdict(stack, file, raw, validated=validated)
    settings = verdict.settings
    refused = verdict.refused
    if (settings is None or refused) and reading.esc_finding(file):
        return _own_cluster()  # the engine reads more keys; the sandbox has no Pulumi ESC
    if settings is None or (validated and refused):
        raise UserError(finding_report(refused))
    cluster = settings.cluster
    facts = settings.platform_facts
    context = facts.context if facts else cluster.context
    if context == SANDBOX_CONTEXT:
        return _in_sandbox(stack, platform, starts=validated)
    names_cluster = cluster.context or cluster.kubeconfig or cluster.kind
    if validated and names_cluster and _in_sandbox_shell():
        raise UserError(
            f"stack {stack} is of another cluster, but this shell has the sandbox's variables: its"
            " state would be in the sandbox, and make down deletes it. Use another shell, or unset"
            " PULUMI_BACKEND_URL PULUMI_HOME PULUMI_CONFIG_PASSPHRASE KUBECONFIG KAI_FLEET_CHARTS"
        )
    return _own_cluster()


def _verdict(
    stack: str, file: Path, raw: Mapping[str, object], *, validated: bool
) -> validation.SettingsVerdict:
    """The settings of a stack and the mistakes of its keys; `raw` are those that `file` has.

    If `validated`, also the mistakes that rules report, and ciphertexts that were copied.
    """
    if not validated:
        return reading.verdict_of_keys(raw, file, stack)
    facts_of = reading.facts_beside(file)
    return validation.validate(raw, facts_of=facts_of, stack=stack, more=copied_ciphertexts(file))


def is_elsewhere(platform: str | None) -> bool:
    """Whether the stack file of a team stack's platform is missing here.

    Only the engine can read that platform's facts then. False for None and "": no team stack.
    Raises UserError if the platform is no stack's name.
    """
    if not platform:
        return False
    return not reading.path_of(_bare_name(platform)).exists()


def _bare_name(stack: str) -> str:
    """`organization/project/stack` as `stack`, which itself stays as it is."""
    return stack.rpartition("/")[2]


def _in_sandbox_shell() -> bool:
    """Whether this shell has the variables of `fleet sandbox env`.

    Folders of the same names alone do not tell: the sandbox's charts or its file have to be there.
    """
    home = Path(os.environ.get("PULUMI_HOME", ""))
    directory = home.parent
    uses_state = os.environ.get("PULUMI_BACKEND_URL") == f"file://{directory / 'state'}"
    has_charts = os.environ.get("KAI_FLEET_CHARTS") == str(directory / "charts")
    is_sandbox = has_charts or (directory / "sandbox.json").is_file()
    return home.name == "pulumi-home" and uses_state and is_sandbox


def require_sandbox() -> None:
    """Raise UserError if kai-fleet is installed from wheels, which have no sandbox."""
    if CHECKOUT is None:
        raise UserError(
            "the sandbox needs a checkout, and kai-fleet is installed here without one:"
            " git clone … kai-fleet && cd kai-fleet, then: make up"
        )


def running_sandbox() -> Sandbox:
    """The sandbox that was started, healthy or not.

    Raises UserError if none was, or if kai-fleet is installed from wheels.
    """
    require_sandbox()
    from sandbox import lifecycle

    running = lifecycle.find()
    if running is None:
        raise UserError("the sandbox is not running; start it with: make up")
    return running


def _in_sandbox(stack: str, platform: str | None, *, starts: bool) -> Environment:
    """The sandbox for a stack: one platform stack with its team stacks runs there at a time.

    A platform stack becomes the occupant: its name is written into the sandbox's file OCCUPANT.
    What died in a running sandbox is started again.

    Args:
        stack: The stack.
        platform: The stack's platform if it is a team stack, which starts no sandbox; else None.
        starts: Start the sandbox if it does not run. A command that reads or removes does not: a
            new sandbox is empty.

    Raises:
        UserError: The sandbox is not installed, does not run or start, has another stack, or has
            not the platform of a team stack.
    """
    require_sandbox()
    from sandbox import lifecycle
    from sandbox.tools.toolbox import ToolError

    sandbox = lifecycle.find() if starts else running_sandbox()
    _require_free_sandbox(sandbox, stack, platform)
    try:
        running = lifecycle.up(say)
    except (ToolError, lifecycle.SandboxError) as error:
        raise UserError(str(error)) from None
    occupant = None
    if platform is None:  # else its platform stays the occupant
        occupant = running.directory / OCCUPANT
        occupant.write_text(stack)
    return Environment(running.env(), running.standins, occupant)


def _require_free_sandbox(sandbox: Sandbox | None, stack: str, platform: str | None) -> None:
    """Raise UserError if another stack is in the sandbox, or a team stack's platform is not.

    `sandbox` is None if it does not run: then no stack is in it. `platform` is that of a team
    stack, as its file names it; None for a platform stack.
    """
    expected = _bare_name(platform) if platform else stack
    occupant = sandbox.directory / OCCUPANT if sandbox else None
    current = occupant.read_text().strip() if occupant and occupant.exists() else ""
    if current == expected or not (current or platform):
        return
    commands: list[str] = []
    if current:
        commands.append("make down")
    if platform:
        commands.append(update_command(expected))
    state = f"runs stack {current}" if current else "is empty"
    raise UserError(
        f"the sandbox {state}, and it runs one platform with its team stacks at a time. For"
        f" {stack}, first: {', then '.join(commands)}"
    )


def _own_cluster() -> Environment:
    """The environment for your own cluster: a PATH that begins with the folder of Pulumi's CLI.

    A checkout downloads or builds the CLI if it is missing. Otherwise PATH also has the folder of
    the installed plugin and probes, which a checkout's `Pulumi.yaml` names.

    Raises UserError if there is no CLI, and a checkout cannot get one.
    """
    if CHECKOUT is not None:
        folders = [_fetched_cli().parent]
    else:
        installed = shutil.which("pulumi")
        if installed is None:
            raise UserError(f"Pulumi's CLI is not on PATH; install it: {INSTALL_PAGE}")
        folders = [Path(installed).parent, policy_pack_program().parent]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
    return Environment({"PATH": path})


def _fetched_cli() -> Path:
    """The path of Pulumi's CLI, which a checkout downloads or builds if it is missing.

    Raises UserError if that fails.
    """
    from sandbox.tools import toolbox

    try:
        return toolbox.ensure(("pulumi",), say)["pulumi"].path
    except toolbox.ToolError as error:
        raise UserError(str(error)) from None


def program() -> None:
    """Declare the stack as Pulumi's Python host does: run the project's `__main__.py`, or without
    that file the product's program. Whatever that raises passes.
    """
    main = reading.ROOT / "__main__.py"
    if main.is_file():
        runpy.run_path(str(main), run_name="__main__")
    else:
        kai_fleet_stack.program()
