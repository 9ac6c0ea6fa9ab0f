"""What the engine's events say to a person: more than its own screen, and nothing twice.

That screen has each step at its start and its end, each message where it comes and at the end, and
what the program has said of the stack file once more in the policy pack's words; of a change it has
the names of properties, and here are old and new values.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pulumi import automation

from kai_fleet.provider.values import parsed
from kai_fleet_cli.display.waiting import Waiting
from kubectl_fleet.kube.text import without_controls
from kubectl_fleet.wording import MASK, counted

Show = Callable[[str], None]
# What happens to a resource without a change of anything: it may be read, or no longer read.
UNTOUCHED: Final = ("same", "read", "discard")
_MARKS: Final = {"create": "+", "update": "~", "delete": "-", "replace": "±", "import": "="}
_VERBS: Final = {sign: verb for verb, sign in _MARKS.items()}
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

_SCREEN: Final = 40  # lines of a preview; more are folded
_MOST_FIELDS: Final = 3  # of one resource
_LONGEST: Final = 40  # characters of a value
# The engine's marks for a string that only the update will know.
_UNKNOWN: Final = ("04da6b54-80e4-46f7-96ec-b56ff0331ba9", "output<string>")


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


def _mark(op: str) -> str:
    """One character for what happens to a resource; "" for nothing."""
    return "±" if "replac" in op else _MARKS.get(op, "")


def _coloured(text: str, what: str, color: bool) -> str:
    code = _COLOURS.get(what)
    return f"\033[{code}m{text}\033[0m" if color and code else text


def _words(message: str) -> str:
    """A message without the engine's marks, and without what a terminal takes for commands."""
    return without_controls(_TAG.sub("", message))


class Narration:
    """Hears a run's events and shows its lines as they come; without `steps`, messages only.

    `passing` shows a line that the next one takes the place of, where there is a terminal.
    `home` is the run's PULUMI_HOME. `began`: the run began to change something. `failed_steps` are
    those that ended in an error, each with what the engine said of it.
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
        self._waiting = Waiting(show, passing)
        self._own_plugin = Path(home).parent / "bin" / _PLUGIN
        self._since: dict[str, float] = {}
        self._said: set[tuple[str, str]] = set()
        self._warned: list[str] = []
        self._errors: dict[str, str] = {}
        self._screen: deque[str] = deque(maxlen=_KEPT)
        self.told_an_error = False
        self.began = False
        self.failed_steps: list[tuple[Any, str]] = []

    def keep(self, line: str) -> None:
        """A line of the engine's own screen, which is shown where nothing else says what failed."""
        self._screen.append(line)

    def ended(self) -> None:
        """The run is over, in whatever way."""
        self._waiting.clear()

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
            self.failed_steps.append((step, self._errors.get(step.urn, "")))

    def _start(self, step: Any) -> None:
        self.began |= _operation(step) not in UNTOUCHED
        op = operation(step)
        if self._steps and op in _STEPS:
            self._since[f"{op} {step.urn}"] = time.monotonic()
            if step.type in _LONG or (op == "delete" and step.type == _SLOW_TO_GO):
                self._step(op, step.urn, _STEPS[op][0])

    def _end(self, step: Any) -> None:
        self._waiting.ended(step.urn)
        op = operation(step)
        if self._steps and op in _STEPS:
            since = self._since.pop(f"{op} {step.urn}", None)
            seconds = 0.0 if since is None else time.monotonic() - since
            took = f" ({seconds:.0f} s)" if seconds >= 1 else ""
            self._step(op, step.urn, _STEPS[op][1] + took)

    def _step(self, op: str, urn: str, what: str) -> None:
        sign = _mark(op)
        self._show(f"{_coloured(sign, sign, self._color)} {named(urn)} {what}")

    def _diagnostic(self, told: Any) -> None:
        if told.urn and told.severity == "error":
            self._errors[told.urn] = f"{self._errors.get(told.urn, '')}{told.message}"
        text = _AGAIN.sub("", _words(told.message).strip("\n"))
        if told.ephemeral or told.severity == "debug" or not text.strip() or self._known(text):
            return
        if (told.urn or "", text) in self._said:
            return
        self._said.add((told.urn or "", text))
        if told.severity in ("warning", "error"):
            self.told_an_error |= told.severity == "error"
            self._warned.append(text)
            of_all = not told.urn or "::pulumi:pulumi:Stack::" in told.urn
            place = "" if of_all else f"{named(told.urn)}: "
            word = _coloured(f"{told.severity}:", told.severity, self._color)
            self._show(f"{word} {place}{text}")
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
        if (rule, text) in self._said or any(
            it.endswith(f"[{rule}]") and f": {subject}: " in it for it in self._warned
        ):
            return  # the program has said it of the stack file, with the key to edit
        self._said.add((rule, text))
        self.told_an_error |= refused
        word = "refused:" if refused else "warning:"
        shown = _coloured(word, "error" if refused else "warning", self._color)
        on = f" ({named(told.resource_urn)})" if told.resource_urn else ""
        self._show(f"{shown} {message} [{rule}]{on}")

    def _lines(self, text: str, lead: str = "", step: str = "") -> None:
        for line in _words(text).rstrip("\n").splitlines():
            if not self._waiting.hear(step, line, lead):
                self._show(f"{lead}{line}")


@dataclass
class _PreviewedChange:
    urn: str
    sign: str
    fields: list[str] = field(default_factory=list)

    @property
    def line(self) -> tuple[str, str]:
        """Its mark; then the resource, with some of the fields that differ."""
        more = len(self.fields) - _MOST_FIELDS
        what = [*self.fields[:_MOST_FIELDS], *([f"and {more} more"] if more > 0 else [])]
        return self.sign, f"{named(self.urn)}{': ' if what else ''}{', '.join(what)}"


class PreviewLines:
    """Hears a preview's events; `lines` is then what it says, on one screen.

    A line per resource that would change; where that is more than a screen, a line per team and
    part of the platform.
    """

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._changes: dict[str, _PreviewedChange] = {}
        self.unchanged = 0

    def hear(self, event: automation.EngineEvent) -> None:
        """Note one event."""
        if event.resource_pre_event is None:
            return
        step = event.resource_pre_event.metadata
        of = step.new or step.old
        if of is not None and of.parent:
            self._parents[step.urn] = of.parent
        op = operation(step)
        if op == "same":
            self.unchanged += 1
        sign = _mark(op)
        if not sign:
            return
        change = self._changes.setdefault(step.urn, _PreviewedChange(step.urn, sign))
        change.sign = "±" if "±" in (change.sign, sign) else sign
        if not change.fields and sign in ("~", "±"):
            # What can be said whole comes first: versions and amounts.
            change.fields = sorted(_differences(step), key=lambda text: "→" not in text)

    def lines(self, *, color: bool) -> list[str]:
        """The changes in the order of the preview, and how many resources stay as they are."""
        changes = [*self._changes.values()]
        folded = len(changes) > _SCREEN
        shown = self._folded(changes) if folded else (change.line for change in changes)
        lines = [f"{_coloured(sign, sign, color)} {text}" for sign, text in shown]
        count = Counter(_VERBS[change.sign] for change in changes)
        counts = [f"{number} to {verb}" for verb, number in count.items()]
        return [*lines, f"{', '.join([*counts, f'{self.unchanged} unchanged'])}."]

    def _folded(self, changes: list[_PreviewedChange]) -> Iterator[tuple[str, str]]:
        groups: dict[tuple[str, str], int] = Counter(
            (self._top(change.urn), change.sign) for change in changes
        )
        for (top, sign), number in groups.items():
            yield sign, f"{named(top)}: {counted(number, 'resource')} to {_VERBS[sign]}"

    def _top(self, urn: str) -> str:
        """The part of the stack in which a resource is: a team, its namespace, the platform."""
        while (above := self._parents.get(urn)) and "::pulumi:pulumi:Stack::" not in above:
            urn = above
        return urn


def _differences(step: Any) -> Iterator[str]:
    before = step.old.inputs if step.old is not None else {}
    after = step.new.inputs if step.new is not None else {}
    for path in step.detailed_diff or step.diffs or ():
        old, new = _at(before, path), _at(after, path)
        if old == new or not (_plain(old) and _plain(new)):
            yield str(path)
        else:
            yield f"{path} {_shown(old)} → {_shown(new)}"


def _plain(value: Any) -> bool:
    """Whether a value is worth a place on the line: short, and no secret."""
    if value is None or isinstance(value, bool | int | float):
        return True
    return isinstance(value, str) and len(value) <= _LONGEST and value != MASK


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return "known later" if value in _UNKNOWN else str(value)


def _at(value: Any, path: str) -> Any:
    for step in parsed(path):
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value
