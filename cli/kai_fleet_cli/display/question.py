"""The question before something is deleted: the name of what goes, typed; elsewhere `--yes`."""

from rich.prompt import Prompt

from kai_fleet_cli.display.screen import Screen
from kubectl_fleet.errors import UserError


def require_answer(screen: Screen, command: str, loss: str, *, yes: bool) -> None:
    """Refuse before anything is read where nobody can be asked and there is no `--yes`.

    `command` deletes, `loss` says what. Raises UserError with the command to write.
    """
    if not (yes or screen.asks):
        raise UserError(f"{loss}; there is no terminal to ask at, so write --yes: {command} --yes")


def confirm_name(screen: Screen, name: str, verb: str = "remove") -> None:
    """Have a person type the name of what goes. Raises UserError for every other answer."""
    answer = Prompt.ask(f"Type {name} to {verb} it", console=screen.out, default="no")
    if answer.strip() != name:
        raise UserError("nothing is changed")
