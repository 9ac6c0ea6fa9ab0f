"""What the engine's events say to a person: a line per resource that changes, warnings once.

The engine's own screen repeats: each step at its start and its end, each message where it comes and
at the end, and what the program has said of the stack file once more in the policy pack's words.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from kai_fleet.kube.text import without_controls

Show = Callable[[str], None]
_MARKS: Final = {"create": "+", "update": "~", "delete": "-", "replace": "±", "import": "="}
_COLOURS: Final = {"+": "32", "~": "33", "-": "31", "±": "35", "warning": "33", "error": "31"}
# The steps of a replacement, in the engine's words, and what they do.
_STEPS: Final = {
    "create": ("creating", "created"),
    "create-replacement": ("creating replacement", "created replacement"),
    "update": ("updating", "updated"),
    "delete": ("deleting", "deleted"),
    "delete-replaced": ("deleting original", "deleted original"),
    "import": ("importing", "imported"),
    "import-replacement": ("importing replacement", "imported replacement"),
}
# They take long, so that a person is told that they have begun.
_LONG: Final = ("kubernetes:helm.sh/v3:Release", "command:local:Command")
# It goes once every pod in it has ended, which may take minutes.
_SLOW_TO_GO: Final = "kubernetes:core/v1:Namespace"
# At the top of a stack; a team's provider is below its team, also where that is called default.
_DEFAULT_PROVIDER: Final = re.compile(r"::pulumi:providers:[\w-]+::default(_\w+)?$")
_TAG: Final = re.compile(r"<\{%[^%]*%\}>")
# Before an error of the program's that has been told already.
_AGAIN: Final = re.compile(r"^an unhandled error occurred: ")
# What a command found out for the program alone.
_IDENTIFIER: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The plugin that the sandbox had to build: older than the SDK asks for, which is said as it starts.
_PLUGIN: Final = "pulumi-resource-kubernetes"
_BUILT: Final = re.compile(r"^resource plugin kubernetes is expected .* but has [\d.]+\+\d{8};")
_KEPT: Final = 200  # lines of the engine's own, for a failure that no event tells of


def kind_of(token: str) -> str:
    """`kubernetes:helm.sh/v3:Release` is a Release."""
    return token.rpartition(":")[2] or token


def named(urn: str) -> str:
    """A resource in words: `Release ml-kai-release`."""
    _, _, rest = urn.partition("::")
    types, _, name = rest.partition("::")[2].rpartition("::")
    return f"{kind_of(types.rpartition('$')[2])} {name}"


def operation(step: Any) -> str:
    """An event's operation, as the engine spells it; none for a provider of the engine's own.

    No program declares those, and the engine's own count of a run leaves them out.
    """
    if _DEFAULT_PROVIDER.search(step.urn):
        return ""
    return str(getattr(step.op, "value", step.op))


def mark(op: str) -> str:
    """One character for what happens to a resource."""
    if "replac" in op:
        return "±"
    return _MARKS.get(op, " ")


def coloured(text: str, what: str, color: bool) -> str:
    """The text in the colour of a mark or a word, at a terminal."""
    code = _COLOURS.get(what)
    return f"\033[{code}m{text}\033[0m" if color and code else text


def _known(text: str) -> bool:
    """Whether the engine warns of the sandbox's own plugin, in each of its two ways."""
    beside = Path(os.environ.get("PULUMI_HOME", "")).parent / "bin" / _PLUGIN
    return text == f"using {_PLUGIN} from $PATH at {beside}" or bool(_BUILT.match(text))


def _words(message: str) -> str:
    """A message without the engine's marks, and without what a terminal takes for commands."""
    return without_controls(_TAG.sub("", message))


class Narration:
    """Hears a run's events and shows its lines as they come."""

    def __init__(self, show: Show, *, color: bool, steps: bool = True) -> None:
        self._show = show
        self._color = color
        self._steps = steps
        self._since: dict[str, float] = {}
        self._said: set[tuple[str, str]] = set()
        self._warned: list[str] = []
        self._own: deque[str] = deque(maxlen=_KEPT)
        self.told_an_error = False

    def keep(self, line: str) -> None:
        """A line of the engine's own screen, which is shown where nothing else says what failed."""
        self._own.append(line)

    def failed(self) -> None:
        """The run ended in an error: what the engine printed, unless an event has told it."""
        if not self.told_an_error:
            for line in self._own:
                self._show(line)

    def hear(self, event: automation.EngineEvent) -> None:
        """Show what is to be said of one event."""
        if event.diagnostic_event is not None:
            self._diagnostic(event.diagnostic_event)
        elif event.policy_event is not None:
            self._policy(event.policy_event)
        elif event.stdout_event is not None:
            self._lines(event.stdout_event.message)
        elif event.resource_pre_event is not None and self._steps:
            self._begun(event.resource_pre_event.metadata)
        elif event.res_outputs_event is not None and self._steps:
            self._ended(event.res_outputs_event.metadata)

    def _begun(self, step: Any) -> None:
        op = operation(step)
        if op not in _STEPS:
            return
        self._since[f"{op} {step.urn}"] = time.monotonic()
        if step.type in _LONG or (op == "delete" and step.type == _SLOW_TO_GO):
            self._step(op, step.urn, _STEPS[op][0])

    def _ended(self, step: Any) -> None:
        op = operation(step)
        if op not in _STEPS:
            return
        since = self._since.pop(f"{op} {step.urn}", None)
        seconds = 0.0 if since is None else time.monotonic() - since
        took = f" ({seconds:.0f} s)" if seconds >= 1 else ""
        self._step(op, step.urn, _STEPS[op][1] + took)

    def _step(self, op: str, urn: str, what: str) -> None:
        sign = mark(op)
        self._show(f"{coloured(sign, sign, self._color)} {named(urn)} {what}")

    def _diagnostic(self, told: Any) -> None:
        text = _AGAIN.sub("", _words(told.message).strip("\n"))
        if told.ephemeral or told.severity == "debug" or not text.strip() or _known(text):
            return
        if (told.urn or "", text) in self._said:
            return
        self._said.add((told.urn or "", text))
        if told.severity in ("warning", "error"):
            self.told_an_error |= told.severity == "error"
            self._warned.append(text)
            of_all = not told.urn or "::pulumi:pulumi:Stack::" in told.urn
            place = "" if of_all else f"{named(told.urn)}: "
            word = coloured(f"{told.severity}:", told.severity, self._color)
            self._show(f"{word} {place}{text}")
        elif not _IDENTIFIER.fullmatch(text):
            of = named(told.urn) if told.urn else ""
            by_itself = not of or of.startswith(("Stack ", "Command "))
            self._lines(text, lead="  " if by_itself else f"  {of}: ")

    def _policy(self, told: Any) -> None:
        text = _words(told.message).strip()
        rule, refused = told.policy_name, told.enforcement_level == "mandatory"
        said = text.partition("\n")[2].strip() or text  # the rule's reason stands above
        subject = said.partition(": ")[0]
        if (rule, text) in self._said or any(
            it.endswith(f"[{rule}]") and f": {subject}: " in it for it in self._warned
        ):
            return  # the program has said it of the stack file, with the key to edit
        self._said.add((rule, text))
        self.told_an_error |= refused
        word = "refused:" if refused else "warning:"
        shown = coloured(word, "error" if refused else "warning", self._color)
        on = f" ({named(told.resource_urn)})" if told.resource_urn else ""
        self._show(f"{shown} {said} [{rule}]{on}")

    def _lines(self, text: str, lead: str = "") -> None:
        for line in _words(text).rstrip("\n").splitlines():
            self._show(f"{lead}{line}")
