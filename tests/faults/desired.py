"""What the stack is changed to, what undisturbed runs leave, and how a person gets there again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.faults import dumps
from tests.faults.case import ML, STACK, Case

# The command at the end of a message.
_COMMAND = re.compile(r"(?:Repair it with|run): (.+?)(?:, then run|, or|\. |$)")
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


def converge(case: Case, command: Sequence[str] = ("up",)) -> list[str]:
    """What a person does after a fault: reads the last line, and does what it says.

    Whatever broke, at most three commands mend it, none of them twice, and none removes a team.
    """
    reported: list[str] = []
    printed, followed = "", list[str]()
    for _ in range(8):
        ran = case.typed(printed) if printed else case.fleet(*command)
        reported.append(ran.reported)
        assert "Traceback" not in ran.reported, ran.reported
        if ran.code == 0 and (not printed or re.search("fleet up .*--yes", printed)):
            return reported
        found = _COMMAND.search(ran.last) if ran.code else None
        assert found or not ran.code or "run the same command again" in ran.last, ran.reported
        printed = found[1] if found else ""
        if printed:
            assert printed not in followed, f"{printed} is printed again:\n{ran.reported}"
            assert not re.search("team remove|delete (pvc|pv|namespace team-)", printed), printed
            followed.append(printed)
            assert len(followed) <= MOST, "\n".join([*followed, *reported])
    raise AssertionError("eight runs were not enough:\n" + "\n".join(reported))
