"""One finding for one cause: what is said of ten pods for one reason is said once, with a count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kai_fleet_cli.doctor.finding import Finding, Health

COMMAND: Final = re.compile(r"`([^`]+)`")
_SUBJECT: Final = re.compile(r"(?P<kind>.+?) (?P<name>\S+?)(?: in namespace (?P<namespace>\S+))?")
_SHOWN: Final = 5
# A command takes so many names; what is left shows when the doctor looks again.
_IN_COMMAND: Final = 20
_LOOKS: Final = re.compile(r"(?:look (?:at it|with)): `")


@dataclass(frozen=True)
class _Thing:
    """A subject taken apart: `pod`, `train-a`, `default`."""

    kind: str
    name: str
    namespace: str | None

    @classmethod
    def of(cls, subject: str) -> _Thing:
        found = _SUBJECT.fullmatch(subject)
        if found is None:
            return cls("", subject, None)
        return cls(found["kind"], found["name"], found["namespace"])

    def without(self, text: str) -> str:
        """A text as it is said of any thing of the kind."""
        return _whole(self.name).sub("\0", text)


def merge_by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in their order, those of one cause as one. What is well is not counted up."""
    found: dict[tuple[str, ...], list[Finding]] = {}
    for finding in dict.fromkeys(findings):
        thing = _Thing.of(finding.subject)
        key: tuple[str, ...] = (finding.check, finding.health, finding.cluster, thing.kind)
        if finding.health is Health.OK or not thing.kind:
            key += (finding.subject,)
        key += (
            (finding.same,)
            if finding.same
            else (
                thing.without(finding.cause),
                thing.without(finding.fix),
            )
        )
        found.setdefault(key, []).append(finding)
    return [_together(group) for group in found.values()]


def commands(fix: str) -> list[str]:
    """The commands of a fix: what stands in backticks."""
    return COMMAND.findall(fix)


def _together(group: Sequence[Finding]) -> Finding:
    first = group[0]
    things = [_Thing.of(finding.subject) for finding in group]
    unique = list(dict.fromkeys(things))
    if len(unique) == 1:
        return first
    own = things[0].name
    names = [thing.name for thing in unique]
    # One is enough to look at; what mends has to be done to all.
    wanted = names[:1] if _LOOKS.search(first.fix) else names[:_IN_COMMAND]
    fix = COMMAND.sub(
        lambda command: _whole(own).sub(" ".join(wanted), command[0], count=1), first.fix
    )
    return replace(
        first,
        subject=_subject(unique),
        fix=fix,
        subjects=tuple(dict.fromkeys(finding.subject for finding in group)),
    )


def _subject(things: Sequence[_Thing]) -> str:
    namespaces = {thing.namespace for thing in things}
    alone = len(namespaces) == 1
    named = [t.name if alone else f"{t.namespace}/{t.name}" for t in things[:_SHOWN]]
    more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
    place = f" in namespace {things[0].namespace}" if alone and things[0].namespace else ""
    return f"{len(things)} {_plural(things[0].kind)}{place}: {', '.join(named)}{more}"


def _plural(kind: str) -> str:
    return f"{kind}es" if kind.endswith(("ss", "x")) else f"{kind}s"


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])")
