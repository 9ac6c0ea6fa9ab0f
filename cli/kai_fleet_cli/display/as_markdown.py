"""Plans and diffs as Markdown, as GitHub and GitLab show it: for a pull request's comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from kai_fleet.fleet.model import HOST
from kai_fleet_cli.plan import mermaid
from kai_fleet_cli.plan.offline import Plan
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture, picture
from kubectl_fleet import releases
from kubectl_fleet.wording import counted

if TYPE_CHECKING:
    from kai_fleet_cli.diff.changes import ResourceChange
    from kai_fleet_cli.diff.report import DiffReport
    from kai_fleet_cli.report.model import StackReport

_NONE: Final = "-"
# A comment holds 65,536 characters; a table of this many lines is not read anyway.
_MOST_ROWS: Final = 100
_LONGEST_VALUE: Final = 120
_BEFORE_A_CHANGE: Final = 40
_LONGEST_PICTURE: Final = 6_000
_SPECIAL: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~@"})


def plan_page(plan: Plan) -> str:
    """The whole page, ending in a newline."""
    verdict = "**fine**" if plan.ok else "**refused**"
    parts = [f"## Stack {_text(plan.stack)}", f"{verdict}: {plan.counts}"]
    if plan.resources:
        parts += _overview(picture(resource.record() for resource in plan.resources))
    problems = _problems(problem.record() for problem in plan.problems)
    parts += ["### Problems", problems or "None: every rule holds."]
    return "\n\n".join(parts) + "\n"


def _overview(stack: Picture) -> list[str]:
    """The parts about teams, GPUs and queues."""
    parts = ["### Teams", _team_table(stack) if stack.teams else "None."]
    if stack.host.kai is not None:
        parts.append(f"The host runs KAI {_code(stack.host.kai)} ({_support(stack.host.kai)}).")
    if stack.teams:
        parts += ["### GPUs", _gpu_table(stack)]
        parts.append(
            "GPUs are the bounds that the teams' ResourceQuotas set; how many the nodes have,"
            " only the cluster knows."
        )
    trees = _trees(stack, "the host")
    if trees:
        parts.append("### Queues")
    for name, tree in trees.items():
        parts += [f"**{_text(name)}**", _drawn(tree)]
    return parts


def _trees(stack: Picture, host: str) -> dict[str, str]:
    """The queue tree of each place that has one, as Mermaid draws it."""
    places = {host: stack.host} | {name: team.inside for name, team in stack.teams.items()}
    return {
        name: mermaid.queue_tree(place.queues) for name, place in places.items() if place.queues
    }


def _drawn(mermaid_text: str) -> str:
    return f"```mermaid\n{mermaid_text}\n```"


def _team_table(stack: Picture) -> str:
    """One line per team."""
    return _table(
        ("team", "mode", "scheduler", "support", "vCluster", "GPUs", "queues"),
        (
            (
                _text(team.name),
                team.mode or _NONE,
                _text(team.scheduler),
                _support(team.inside.kai),
                team.vcluster or _NONE,
                _gpus(team.gpus),
                str(len(team.inside.queues)) if team.inside.queues else _NONE,
            )
            for team in stack.teams.values()
        ),
    )


def _gpu_table(stack: Picture) -> str:
    """What the teams of each node pool may hold, against what their queues are guaranteed.

    The teams that the host's KAI schedules share its queues, so they are one line.
    """
    pools: dict[str, list[TeamPicture]] = {}
    shared: list[TeamPicture] = []
    for team in stack.teams.values():
        if team.mode == "host":
            shared.append(team)
        else:
            pools.setdefault(team.pool, []).append(team)
    rows = [
        _pool_row(_pool_name([pool]), teams, [team.inside for team in teams])
        for pool, teams in sorted(pools.items())
    ]
    if shared:
        names = sorted({team.pool for team in shared})
        rows.append(_pool_row(f"{_pool_name(names)} (host's KAI)", shared, [stack.host]))
    return _table(("node pool", "teams", "GPUs", "guaranteed", "not promised"), rows)


def _gpus(amount: float | None) -> str:
    """A number of GPUs; -1 is unlimited, None is no bound."""
    if amount is None:
        return "no bound"
    return "unlimited" if amount == -1 else f"{amount:g}"


def _pool_row(
    name: str, teams: list[TeamPicture], places: Iterable[ClusterPicture]
) -> tuple[str, ...]:
    bounds = [team.gpus for team in teams]
    known = [bound for bound in bounds if bound is not None]
    capacity = sum(known) if len(known) == len(bounds) else None
    promises = [place.guaranteed_gpus for place in places if place.queues]
    guaranteed = -1.0 if -1.0 in promises else sum(promises)
    left = _NONE if capacity is None or guaranteed == -1 else _left(capacity - guaranteed)
    return (
        name,
        _text(", ".join(team.name for team in teams)),
        _gpus(capacity),
        _gpus(guaranteed) if promises else _NONE,
        left if promises else _gpus(capacity),
    )


def _left(rest: float) -> str:
    return f"**{-rest:g} too many**" if rest < 0 else f"{rest:g}"


def _pool_name(pools: Iterable[str]) -> str:
    return ", ".join(_code(pool) if pool else "any node" for pool in pools)


def _support(version: str | None) -> str:
    if version is None:
        return _NONE
    return releases.support(version).words


def report_page(report: StackReport) -> str:
    """The report as a page, without its queue trees; ending in a newline."""
    from kai_fleet_cli.report.sections import sections, summary

    parts = [f"## GPUs of stack {_text(report.stack)}", *map(_text, summary(report))]
    for section in sections(report):
        parts.append(f"### {_text(section.title)}")
        if section.rows:
            numbers = len(section.headings) - section.words
            lines = [[_text(cell) for cell in cells] for cells in (section.headings, *section.rows)]
            parts.append(_table(lines[0], lines[1:], numbers=numbers))
        else:
            parts.append("None.")
        parts += map(_text, section.sentences)
    return "\n\n".join(parts) + "\n"


def diff_page(report: DiffReport) -> str:
    """The whole page, ending in a newline."""
    parts = [f"## Stack {_text(report.stack)}: {report.verdict}"]
    compared = f"Compared with {_code(report.base.ref)} ({report.base.short})."
    parts.append(_text(report.note) if report.note else compared)
    if report.shows_stack:
        if report.base.problems:
            parts.append(f"At the base:\n\n{_problems(report.base.problems)}")
        if report.after.teams:
            parts.append(_team_table(report.after))
    parts += _meaning(report)
    parts += _pictures(report)
    changes = [*report.difference.changed, *report.difference.replaced]
    if changes:
        parts.append(_fields(changes))
    for kind in ("created", "replaced", "deleted"):
        if report.difference.parts[kind]:
            parts.append(_folded(kind, report.difference.parts[kind]))
    all_hold = "Every rule holds." if report.now else "There is nothing to judge."
    parts += ["### Rules", _problems(report.problems) or all_hold]
    return "\n\n".join(parts) + "\n"


def _meaning(report: DiffReport) -> Iterator[str]:
    lines: list[str] = []
    for item in report.sentences:
        parts = [_text(part) for part in item.parts]
        several = len(parts) > 1
        lines.append(f"- **{_text(item.subject)}**:{'' if several else f' {parts[0]}'}")
        lines += [f"  - {part}" for part in parts if several]
    lines += [
        f"- {_code(key)} is encrypted anew: only the engine can say if it changed"
        for key in report.encrypted_anew
    ]
    if lines:
        yield "\n".join(lines)
    if report.sentences and report.untouched:
        yield f"Other teams untouched: {_text(', '.join(report.untouched))}."


def _pictures(report: DiffReport) -> Iterator[str]:
    """The pools and the queue trees that change, before and after."""
    if not report.compared:
        return
    before, after = report.before, report.after
    pools = tuple(mermaid.pools(stack.teams.values()) for stack in (before, after))
    if pools[0] != pools[1]:
        yield _two("GPUs by node pool", *pools)
    trees = [_trees(stack, HOST) for stack in (before, after)]
    for name in sorted({*trees[0], *trees[1]}):
        drawn = tuple(tree.get(name, "") for tree in trees)
        if drawn[0] != drawn[1]:
            yield _two(f"Queues of {name}", *drawn)


def _two(title: str, before: str, after: str) -> str:
    """A picture of before and one of after, folded."""
    shown = []
    for word, drawn in (("Before", before), ("After", after)):
        if len(drawn) > _LONGEST_PICTURE:
            shown.append(f"{word}: too large to draw")
        else:
            shown.append(f"{word}:\n\n{_drawn(drawn)}" if drawn else f"{word}: none")
    summary = f"<summary>{_text(title)}, before and after</summary>"
    return "\n\n".join([f"<details open>{summary}", *shown, "</details>"])


def _fields(changes: list[ResourceChange]) -> str:
    rows = [
        (
            _text(change.team or HOST),
            _text(change.label),
            _code(item.path),
            _value(item.old, item.new),
            _value(item.new, item.old),
        )
        for change in changes
        for item in change.fields
    ]
    if not rows:
        return ""
    table = _table(("team", "resource", "field", "before", "after"), rows[:_MOST_ROWS])
    return table + _more(len(rows) - _MOST_ROWS, "field")


def _folded(kind: str, changes: tuple[ResourceChange, ...]) -> str:
    lines = [
        f"- {_text(change.team or HOST)}: {_text(change.label)}"
        + (f": {_text(change.reason)}" if change.reason else "")
        for change in changes
    ]
    summary = f"<summary>{counted(len(changes), 'resource')} {kind}</summary>"
    shown = "\n".join(lines[:_MOST_ROWS]) + _more(len(lines) - _MOST_ROWS, "resource")
    return f"<details>{summary}\n\n{shown}\n\n</details>"


def _more(number: int, thing: str) -> str:
    if number <= 0:
        return ""
    return f"\n\n… and {counted(number, thing)} more; `fleet diff --format json` has them all."


def _value(value: object, other: object) -> str:
    """A long one from a little before the place where it differs from the other."""
    if value is None:
        return "unset"
    text = str(value)
    pairs = zip(text, str(other), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    begin = same - _BEFORE_A_CHANGE if same > _LONGEST_VALUE - _BEFORE_A_CHANGE else 0
    shown = text[begin : begin + _LONGEST_VALUE]
    cut = "…" if begin + len(shown) < len(text) else ""
    return _code(f"{'…' if begin else ''}{shown}{cut}")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """A table; the cells are Markdown already, `_text` and `_code` make them.

    The last `numbers` columns are aligned to the right.
    """
    words = len(headings) - numbers
    lines = [headings, [*["---"] * words, *["---:"] * numbers], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _text(words: str) -> str:
    """Words that mean nothing to Markdown, on one line; they mention no user."""
    return " ".join(words.split()).translate(_SPECIAL)


def _code(value: str) -> str:
    """A code span of one line, also in a table's cell."""
    line = " ".join(value.split()).replace("|", "\\|")
    if not line:
        return ""
    fence = "`"
    while fence in line:
        fence += "`"
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def _problems(problems: Iterable[Mapping[str, str]]) -> str:
    """A plan's problems as a list, those that stop a preview first."""
    ordered = sorted(problems, key=lambda problem: problem["level"] != "mandatory")
    return "\n".join(_problem(problem) for problem in ordered)


def _problem(problem: Mapping[str, str]) -> str:
    word = "**refused**" if problem["level"] == "mandatory" else "warning"
    place = _code(problem["path"] or problem["subject"])
    message = _text(f"{problem['subject']}: {problem['message']}")
    return f"- {word} {_code(problem['rule'])} {place}<br>{message}"
