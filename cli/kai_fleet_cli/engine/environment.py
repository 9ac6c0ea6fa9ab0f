"""Where a stack's engine runs, the sandbox or your cluster, and the program that it runs.

Only a checkout has the sandbox, and no wheel.
"""

from __future__ import annotations

import os
import runpy
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kai_fleet.settings.files.project import CHECKOUT, update_command
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies import policy_pack_program

if TYPE_CHECKING:
    from sandbox.lifecycle import Sandbox

SANDBOX_CONTEXT: Final = "kai-fleet-sandbox"
OCCUPANT: Final = "stack"  # a file in the sandbox's directory: the stack that runs there


@dataclass(frozen=True)
class Environment:
    """Variables for the engine and its plugins, and the names of what is a stand-in there."""

    variables: dict[str, str] = field(default_factory=dict)
    standins: tuple[str, ...] = ()
    occupant: Path | None = None

    def vacate(self) -> None:
        """Let another stack have the sandbox."""
        if self.occupant is not None:
            self.occupant.unlink(missing_ok=True)


def for_stack(stack: str, *, validated: bool = True) -> Environment:
    """Prepare the environment in which a stack runs.

    A stack whose context is the sandbox's gets a running sandbox. Every other one gets the tools,
    and uses your own Pulumi login and kubeconfig. Nothing is started for a stack file that the
    rules refuse, unless it is not to be `validated`: what runs must be removable whatever they say.
    Raises UserError.
    """
    # The rules and Pulumi's SDK: half a second, which commands without a stack are spared.
    from kai_fleet.settings.secrets import copies
    from kai_fleet.settings.team_stack import platform_of
    from kai_fleet_policies import validation

    file = reading.path_of(stack)
    raw = reading.read(file)
    platform = platform_of(raw)
    if is_elsewhere(platform):
        return _own_cluster()  # the program judges it
    every: dict[str, Any] = {"more": copies(file)} if validated else {"only": ()}
    verdict = validation.validate(raw, facts_of=reading.facts_beside(file), stack=stack, **every)
    settings, refused = verdict.settings, verdict.refused
    if (settings is None or refused) and reading.from_environment(file):
        return _own_cluster()  # the sandbox's state takes no values of Pulumi ESC
    if settings is None or (validated and refused):
        raise UserError(validation.report(refused))
    facts, cluster = settings.platform_facts, settings.cluster
    if (facts.context if facts else cluster.context) == SANDBOX_CONTEXT:
        return _in_sandbox(stack, platform, starts=validated)
    elsewhere = cluster.context or cluster.kubeconfig or cluster.kind
    if validated and elsewhere and _in_sandbox_shell():
        raise UserError(
            f"stack {stack} is of another cluster, but this shell has the sandbox's variables: its"
            " state would be in the sandbox, and make down deletes it. Use another shell, or unset"
            " PULUMI_BACKEND_URL PULUMI_HOME PULUMI_CONFIG_PASSPHRASE KUBECONFIG KAI_FLEET_CHARTS"
        )
    return _own_cluster()


def is_elsewhere(platform: str | None) -> bool:
    """Whether a team stack's platform has no file here: only the engine has its facts then."""
    return bool(platform and not reading.path_of(platform.rpartition("/")[2]).exists())


def _in_sandbox_shell() -> bool:
    """Whether this shell has the variables of `fleet sandbox env`.

    Others may call their folders as the sandbox's are; the charts are those of no one else.
    """
    home = Path(os.environ.get("PULUMI_HOME", ""))
    directory = home.parent
    uses_state = os.environ.get("PULUMI_BACKEND_URL") == f"file://{directory / 'state'}"
    has_charts = os.environ.get("KAI_FLEET_CHARTS") == str(directory / "charts")
    is_sandbox = has_charts or (directory / "sandbox.json").is_file()
    return home.name == "pulumi-home" and uses_state and is_sandbox


def require_sandbox() -> None:
    """Raise UserError where there is no sandbox, because kai-fleet was installed from wheels."""
    if CHECKOUT is None:
        raise UserError(
            "the sandbox needs a checkout, and kai-fleet is installed here without one:"
            " git clone … kai-fleet && cd kai-fleet, then: make up"
        )


def running_sandbox() -> Sandbox:
    """The sandbox. Raises UserError where it is not running, or there is none."""
    require_sandbox()
    from sandbox import lifecycle

    if (running := lifecycle.find()) is None:
        raise UserError("the sandbox is not running; start it with: make up")
    return running


def _in_sandbox(stack: str, platform: str | None, *, starts: bool) -> Environment:
    """The sandbox for a stack; `platform` is the one of a team stack, None for another.

    One platform stack runs there at a time. A team stack alone starts nothing.
    """
    require_sandbox()
    from sandbox import lifecycle
    from sandbox.tools.toolbox import ToolError

    host = (platform or "").rpartition("/")[2] or stack
    # A command that reads or removes starts none: it would be empty.
    found = lifecycle.find() if starts else running_sandbox()
    occupant = found.directory / OCCUPANT if found else None
    current = occupant.read_text().strip() if occupant and occupant.exists() else ""
    if current != host and (current or platform):
        first = ["make down"] * bool(current) + [update_command(host)] * bool(platform)
        raise UserError(
            f"the sandbox {f'runs stack {current}' if current else 'is empty'}, and it runs one"
            f" platform with its team stacks at a time. For {stack}, first: {', then '.join(first)}"
        )
    try:
        running = lifecycle.up(say)
    except (ToolError, lifecycle.SandboxError) as why:
        raise UserError(str(why)) from None
    if platform is not None:  # a team stack leaves the place to its platform when it goes
        return Environment(running.env(), running.standins)
    occupant = running.directory / OCCUPANT
    occupant.write_text(stack)
    return Environment(running.env(), running.standins, occupant)


def _own_cluster() -> Environment:
    """Your own cluster: Pulumi's CLI first on PATH, which gets its plugins; no stand-ins.

    A checkout fetches or builds the CLI where there is none. Without one, plugin and probes are as
    installed; a checkout's `Pulumi.yaml` names them.
    """
    if CHECKOUT is not None:
        from sandbox.tools import toolbox

        try:
            folders = [toolbox.ensure(("pulumi",), say)["pulumi"].path.parent]
        except toolbox.ToolError as why:
            raise UserError(str(why)) from None
    elif (installed := shutil.which("pulumi")) is None:
        raise UserError(
            "Pulumi's CLI is not on PATH; install it: https://www.pulumi.com/docs/install/"
        )
    else:
        folders = [Path(installed).parent, policy_pack_program().parent]
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
    return Environment({"PATH": path})


def program() -> None:
    """Declare the stack as Pulumi's Python host does, with all that the project's file declares."""
    main = reading.ROOT / "__main__.py"
    if main.is_file():
        runpy.run_path(str(main), run_name="__main__")
        return
    from kai_fleet.program import program as declare
    from kai_fleet_policies.validation import checked_settings

    declare(checked_settings)
