"""What the stack is changed to, what undisturbed runs leave, and how a person gets there again."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.faults import dumps
from tests.faults.case import ML, STACK, Case, Ran

# The command at the end of a message.
_COMMAND = re.compile(r"(?:Repair it with|run|go on): (.+?)(?:, then run|, or|\. |$)")
_AGAIN = "run the same command again"
# What no printed command has: the end of a team, of a volume, of the stack.
_GIVES_UP = re.compile(
    r"team remove|destroy|stack rm"
    r"|delete\b[^&;|]*(\b(pvc?|persistentvolume\w*)\b|namespaces?[ /]team-)"
)
_AGREES = re.compile(r"fleet up\b[^&;|]*? --yes((?: \w[\w-]*)*)")
_SECONDS = 600.0
MOST = 3  # commands after a fault
# What a command prints when it starts the engine.
BEGUN = f"Updating ({STACK})"


@dataclass
class Reference:
    """The clusters after undisturbed runs."""

    host: dict[str, dumps.Dump] = field(default_factory=dict)
    inside: dict[str, dumps.Dump] = field(default_factory=dict)

    def differences(self, case: Case, name: str) -> list[str]:
        """What is not as the undisturbed run left it."""
        found = dumps.differences(self.host[name], dumps.dump(case.host))
        if name in self.inside:
            found += dumps.differences(self.inside[name], dumps.dump(case.inside("ml")))
        return found


def with_ml(config: Any) -> None:
    """Team `ml` on v0.9.3."""
    config["kai-fleet:teams"]["ml"] = yaml.safe_load(yaml.safe_dump(ML))


def switched(config: Any) -> None:
    """Team `ml` on v0.16.8."""
    with_ml(config)
    config["kai-fleet:teams"]["ml"]["scheduler"]["version"] = "v0.16.8"


def without_ml(config: Any) -> None:
    """Team `dev` alone."""
    config["kai-fleet:teams"].pop("ml", None)


@dataclass
class Followed:
    """The commands that were printed and run: at most three, none twice, and none gives up a team.

    `lost` are teams that may lose what is theirs: the user asked for it, or was shown what.
    """

    case: Case
    lost: Collection[str] = ()
    commands: list[str] = field(default_factory=list)

    def next(self, ran: Ran, command: Sequence[str] = ("up",)) -> str:
        """The command that the end of a failed run says; "" for the one that failed."""
        found = _COMMAND.search(ran.last)
        assert found or _AGAIN in ran.last, ran.reported
        printed = found[1] if found else ""
        assert not _GIVES_UP.search(printed), printed
        agreed = {name for names in _AGREES.findall(printed) for name in names.split()}
        assert not agreed & self.case.teams() - {*self.lost}, f"{printed} agrees to a loss unasked"
        said = printed or " ".join(command)
        assert said not in self.commands, f"{said} is printed again:\n{ran.reported}"
        self.commands.append(said)
        assert len(self.commands) <= MOST, "\n".join([*self.commands, ran.reported])
        return printed


def converge(
    case: Case,
    command: Sequence[str] = ("up",),
    failed: Ran | None = None,
    lost: Collection[str] = (),
) -> list[str]:
    """What a person does after a fault: reads the last line, and does what it says, to a good end.

    `failed` is the run of the command that failed, where there was one. Gives what each run said.
    """
    followed = Followed(case, {*lost, *command})
    ran = failed or case.start(*command).end(_SECONDS)
    reported, printed = [ran.reported], ""
    assert "Traceback" not in ran.reported, ran.reported
    while ran.code or (printed and not re.search("fleet up .*--yes", printed)):
        printed = followed.next(ran, command) if ran.code else ""
        ran = case.typed(printed) if printed else case.start(*command).end(_SECONDS)
        reported.append(ran.reported)
        assert "Traceback" not in ran.reported, ran.reported
    return reported
