"""`fleet cancel` and `fleet restore`: what a killed update left, by Pulumi's own commands."""

from kai_fleet_cli.commands.options import NamedStack, Sure, with_exit_codes
from kai_fleet_cli.display.screen import Screen, say
from kai_fleet_cli.engine.environment import for_stack
from kubectl_fleet.errors import UserError
from kubectl_fleet.wording import counted


def cancel(stack: NamedStack) -> None:
    """Take the lock off a stack whose update was killed. The next `up` goes on from there."""
    from kai_fleet_cli.engine import runs
    from kai_fleet_cli.recovery import file_backend

    environment = for_stack(stack, say, validated=False)
    holder = file_backend.holder(stack, environment.variables)
    if holder is not None and holder.alive:
        raise UserError(
            f"stack {stack} is being updated by {holder}, and that process runs. Wait for it, or"
            f" end it first: kill {holder.pid}"
        )
    runs.stack(stack, environment.variables).cancel()
    say(f"stack {stack} is free; run its update again")


@with_exit_codes
def restore(
    stack: NamedStack,
    yes: Sure = False,
) -> None:
    """Put back the last good state of a stack whose state cannot be read."""
    from pulumi import automation

    from kai_fleet_cli.engine import runs
    from kai_fleet_cli.recovery import file_backend, resume

    screen = Screen.standard()
    environment = for_stack(stack, say, validated=False)
    copy, deployment = file_backend.newest_copy(stack, environment.variables)
    count = len(deployment.get("resources") or [])
    say(f"the newest copy that can be read is {copy}: {counted(count, 'resource')}")
    command = f"{resume.FLEET} restore --stack {stack}"
    loss = f"the state of stack {stack} would be replaced by it (pulumi stack import)"
    screen.require_answer(command, loss, yes=yes)
    if not yes:
        screen.line("It replaces the state: pulumi stack import")
        screen.confirm_name(stack, "replace")
    opened = runs.stack(stack, environment.variables)
    opened.import_stack(automation.Deployment(version=3, deployment=deployment))
    say(f"the state of stack {stack} is that copy's; the broken one is beside it, as .bak")
    say(f"to have it say what is there: {resume.up(stack)}")
