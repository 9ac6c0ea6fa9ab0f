"""What the engine's events say to a person: more than its own screen, and nothing twice.

That screen has each step at its start and its end, each message where it comes and at the end, and
what the program has said of the stack file once more in the policy pack's words.
"""

import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from kai_fleet.kube.text import without_controls
from kai_fleet.wording import counted

Show = Callable[[str], None]
# What happens to a resource without a change of anything: it may be read, or no longer read.
UNTOUCHED: Final = ("same", "read", "discard")
MARKS: Final = {"create": "+", "update": "~", "delete": "-", "replace": "±", "import": "="}
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
# The end of the name of a step that waits; what is before it is a team's name, or `host`.
_WAIT: Final = re.compile(r"(-kai)?-(ready|clean-up|pods)$")
_KEPT: Final = 200  # lines of the engine's own, for a failure that no event tells of
# What a step that waits says, as `probes/wait.py` writes it.
_WAITS: Final = re.compile(r"(?P<what>.+): waiting for (?P<left>.+) \((?P<seconds>\d+) s\)")


def named(urn: str) -> str:
    """A resource in words: `Release ml-kai-release`."""
    _, _, rest = urn.partition("::")
    types, _, name = rest.partition("::")[2].rpartition("::")
    return f"{types.rpartition('$')[2].rpartition(':')[2]} {name}"


def operation(step: Any) -> str:
    """An event's operation, as the engine spells it; none for a provider of the engine's own.

    No program declares those, and the engine's own count of a run leaves them out.
    """
    return "" if _DEFAULT_PROVIDER.search(step.urn) else _operation(step)


def _operation(step: Any) -> str:
    return str(getattr(step.op, "value", step.op))


def mark(op: str) -> str:
    """One character for what happens to a resource; "" for nothing."""
    return "±" if "replac" in op else MARKS.get(op, "")


def coloured(text: str, what: str, color: bool) -> str:
    """The text in the colour of a mark, or of a severity."""
    code = _COLOURS.get(what)
    return f"\033[{code}m{text}\033[0m" if color and code else text


def _words(message: str) -> str:
    """A message without the engine's marks, and without what a terminal takes for commands."""
    return without_controls(_TAG.sub("", message))


class Narration:
    """Hears a run's events and shows its lines as they come; without `steps`, messages only.

    `passing` shows a line that the next one takes the place of, where there is a terminal.
    `home` is the run's PULUMI_HOME. `began`: the run began to change something. `failed_steps` are
    those that ended in an error, each with what the engine said of it. `errors` are all that it
    said, by URN, and `parents` the URN of what each resource is a part of.
    """

    def __init__(
        self,
        show: Show,
        *,
        color: bool,
        steps: bool = True,
        home: str = "",
        passing: Show | None = None,
    ) -> None:
        self._show, self._color, self._steps = show, color, steps
        self._waiting = _Waiting(show, passing)
        self._own_plugin = Path(home).parent / "bin" / _PLUGIN
        self._since: dict[str, float] = {}
        self._said: set[tuple[str, str]] = set()
        self._warned: list[str] = []
        self.errors: dict[str, str] = {}
        self.parents: dict[str, str] = {}
        self._screen: deque[str] = deque(maxlen=_KEPT)
        self.told_an_error = False
        self.began = False
        self.failed_steps: list[tuple[Any, str]] = []

    def keep(self, line: str) -> None:
        """A line of the engine's own screen, which is shown where nothing else says what failed."""
        self._screen.append(line)

    def ended(self) -> None:
        """The run is over, in whatever way."""
        self._waiting.end(*self._waiting.steps)

    def failed(self) -> None:
        """The run ended in an error: what the engine printed, unless an event has told it."""
        if not self.told_an_error:
            for line in self._screen:
                self._show(line)

    def hear(self, event: automation.EngineEvent) -> None:
        """Show what is to be said of one event."""
        if event.diagnostic_event is not None:
            self._diagnostic(event.diagnostic_event)
        elif event.policy_event is not None:
            self._policy(event.policy_event)
        elif event.stdout_event is not None:
            self._lines(event.stdout_event.message)
        elif event.resource_pre_event is not None:
            self._start(event.resource_pre_event.metadata)
        elif event.res_outputs_event is not None:
            self._end(event.res_outputs_event.metadata)
        elif event.res_op_failed_event is not None:
            step = event.res_op_failed_event.metadata
            self.failed_steps.append((step, self.errors.get(step.urn, "")))

    def _start(self, step: Any) -> None:
        if (of := step.new or step.old) is not None and of.parent:
            self.parents[step.urn] = of.parent
        self.began |= _operation(step) not in UNTOUCHED
        op = operation(step)
        if self._steps and op in _STEPS:
            self._since[f"{op} {step.urn}"] = time.monotonic()
            if step.type in _LONG or (op == "delete" and step.type == _SLOW_TO_GO):
                self._step(op, step.urn, _STEPS[op][0])

    def _end(self, step: Any) -> None:
        self._waiting.end(step.urn)
        op = operation(step)
        if self._steps and op in _STEPS:
            since = self._since.pop(f"{op} {step.urn}", None)
            seconds = 0.0 if since is None else time.monotonic() - since
            took = f" ({seconds:.0f} s)" if seconds >= 1 else ""
            self._step(op, step.urn, _STEPS[op][1] + took)

    def _step(self, op: str, urn: str, what: str) -> None:
        sign = mark(op)
        self._show(f"{coloured(sign, sign, self._color)} {named(urn)} {what}")

    def _diagnostic(self, told: Any) -> None:
        if told.severity == "error":
            self.errors[told.urn or ""] = f"{self.errors.get(told.urn or '', '')}{told.message}"
        text = _AGAIN.sub("", _words(told.message).strip("\n"))
        if told.ephemeral or told.severity == "debug" or not text.strip() or self._known(text):
            return
        if (told.urn or "", text) in self._said:
            return
        self._said.add((told.urn or "", text))
        if told.severity in ("warning", "error"):
            self._warned.append(text)
            of_all = not told.urn or "::pulumi:pulumi:Stack::" in told.urn
            self._tell(told.severity, text if of_all else f"{named(told.urn)}: {text}")
        elif not _IDENTIFIER.fullmatch(text):
            of = named(told.urn) if told.urn else ""
            kind, _, name = of.partition(" ")
            if kind == "Command":  # of a step, whose it is says enough
                of = _WAIT.sub("", name)
            by_itself = kind in ("", "Stack") or of in text.split()
            self._lines(text, "  " if by_itself else f"  {of}: ", told.urn or "")

    def _known(self, text: str) -> bool:
        """Whether the engine warns of the sandbox's own plugin, in each of its two ways."""
        using = f"using {_PLUGIN} from $PATH at {self._own_plugin}"
        return text == using or bool(_BUILT.match(text))

    def _policy(self, told: Any) -> None:
        text = _words(told.message).strip()
        rule, refused = told.policy_name, told.enforcement_level == "mandatory"
        message = text.partition("\n")[2].strip() or text  # the rule's reason stands above
        subject = message.partition(": ")[0]
        known = any(it.endswith(f"[{rule}]") and f": {subject}: " in it for it in self._warned)
        if (rule, text) in self._said or (known and not refused):
            return  # the program has said it of the stack file, with the key to edit
        self._said.add((rule, text))
        on = f" ({named(told.resource_urn)})" if told.resource_urn else ""
        self._tell("refused" if refused else "warning", f"{message} [{rule}]{on}")

    def _tell(self, word: str, text: str) -> None:
        """A warning, an error, or what a rule refuses."""
        self.told_an_error |= word != "warning"
        severity = "warning" if word == "warning" else "error"
        self._show(f"{coloured(f'{word}:', severity, self._color)} {text}")

    def _lines(self, text: str, lead: str = "", step: str = "") -> None:
        for line in _words(text).rstrip("\n").splitlines():
            if not self._waiting.hear(step, line, lead):
                self._show(f"{lead}{line}")


class _Waiting:
    """The lines of steps that wait for a vCluster or a KAI: each every few seconds, many at once.

    `passing` shows a line in place of the last one; None where lines stay, as in a log: there one
    is shown for what is new, or takes twice as long.
    """

    def __init__(self, show: Show, passing: Show | None) -> None:
        self._show, self._passing = show, passing
        self.steps: dict[str, tuple[str, int, str]] = {}

    def hear(self, step: str, line: str, lead: str) -> bool:
        """Whether the line is one of a step that waits; it is shown then as far as it is news."""
        found = _WAITS.fullmatch(line)
        if found is None:
            self.end(step)
            return False
        left, seconds = found["left"], int(found["seconds"])
        before, since, _ = self.steps.get(step, ("", 0, ""))
        if self._passing is not None:
            self.steps.pop(step, None)  # the newest is the last
            self.steps[step] = left, seconds, f"{lead.strip()} {line}".strip()
            self._pass()
        elif left != before or seconds >= 2 * since:
            self.steps[step] = left, seconds, ""
            self._show(f"{lead}{line}")
        return True

    def end(self, *steps: str) -> None:
        """These say something else, or are done."""
        ended = [self.steps.pop(step) for step in steps if step in self.steps]
        if ended:
            self._pass()

    def _pass(self) -> None:
        if self._passing is None:
            return
        many = f"{counted(len(self.steps), 'step', 'waits')}; " if len(self.steps) > 1 else ""
        last = next((line for _, _, line in reversed(self.steps.values())), "")
        self._passing(f"  {many}{last}" if last else "")
