"""One finding for one cause: what is true of ten pods for one reason is one line with a count."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from kubectl_fleet.waiting.finding import Finding, Health
from kubectl_fleet.wording import counted

COMMAND: Final = re.compile(r"`([^`]+)`")
_SUBJECT: Final = re.compile(r"(?P<kind>.+?) (?P<name>\S+?)(?: in namespace (?P<namespace>\S+))?")
_SHOWN: Final = 5
# A command takes so many names; what is left shows when the doctor looks again.
_IN_COMMAND: Final = 20
_LOOKS: Final = re.compile(r"(?:look (?:at it|with)): `")


class _Thing(NamedTuple):
    """A subject taken apart: `pod`, `train-a`, `default`."""

    kind: str
    name: str
    namespace: str | None


def merge_by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in their order, those of one cause as one. What is well is not counted up."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in dict.fromkeys(findings):
        thing = _thing(finding)
        key: tuple[str, ...] = (finding.check, finding.health, finding.cluster, thing.kind)
        if finding.health is Health.OK or not thing.kind:
            key += (finding.subject,)
        if finding.same:
            key += (finding.same,)
        else:  # the texts, as they are said of any thing of the kind
            name = _whole(thing.name)
            key += (name.sub("\0", finding.cause), name.sub("\0", finding.fix))
        groups.setdefault(key, []).append(finding)
    return [_merged(group) for group in groups.values()]


def commands(fix: str) -> list[str]:
    """The commands of a fix: what stands in backticks."""
    return COMMAND.findall(fix)


def _thing(finding: Finding) -> _Thing:
    parts = _SUBJECT.fullmatch(finding.subject)
    return _Thing(**parts.groupdict()) if parts else _Thing("", finding.subject, None)


def _merged(group: Sequence[Finding]) -> Finding:
    first = group[0]
    things = list(dict.fromkeys(map(_thing, group)))
    if len(things) == 1:
        return first
    # One is enough to look at; what mends has to be done to all.
    names = [thing.name for thing in things[: 1 if _LOOKS.search(first.fix) else _IN_COMMAND]]
    own = _whole(things[0].name)
    return replace(
        first,
        subject=_subject(things),
        fix=COMMAND.sub(lambda it: own.sub(" ".join(names), it[0], count=1), first.fix),
        subjects=tuple(dict.fromkeys(finding.subject for finding in group)),
    )


def _subject(things: Sequence[_Thing]) -> str:
    kind, _, namespace = things[0]
    one_place = all(thing.namespace == namespace for thing in things)
    names = [it.name if one_place else f"{it.namespace}/{it.name}" for it in things[:_SHOWN]]
    more = f" and {len(things) - _SHOWN} more" if len(things) > _SHOWN else ""
    place = f" in namespace {namespace}" if one_place and namespace else ""
    return f"{counted(len(things), kind)}{place}: {', '.join(names)}{more}"


def _whole(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w/-])")
