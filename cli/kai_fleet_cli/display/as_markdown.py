"""Plans and diffs as Markdown, as GitHub and GitLab show it: for a pull request's comment."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kai_fleet import releases
from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.model import HOST
from kai_fleet.kube.text import without_controls
from kai_fleet.wording import counted
from kai_fleet_cli.diff.changes import UNSET, ResourceChange
from kai_fleet_cli.diff.consequences import HEADINGS, Sentence, by_hazard
from kai_fleet_cli.diff.report import SECRETS, DiffReport
from kai_fleet_cli.display.terminal import units
from kai_fleet_cli.plan import summary
from kai_fleet_cli.plan.offline import Plan
from kai_fleet_cli.plan.picture import Picture, picture

# A comment holds 65,536 characters; a table of this many lines is not read anyway.
_MOST_ROWS: Final = 100
_LONGEST_PICTURE: Final = 6_000
_CODE: Final = re.compile(r"(\(?)`?(.+?)`?([),;.:]*)", re.DOTALL)
_SPECIAL: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~@"})


def plan_page(plan: Plan) -> str:
    """The whole page, ending in a newline."""
    verdict = "**fine**" if plan.ok else "**refused**"
    parts = [f"## Stack {_text(plan.stack)}", f"{verdict}: {plan.counts}"]
    parts += ["### Problems", _problems(plan.problems) or "None: every rule holds."]
    if plan.resources:
        parts += _overview(picture(plan.resources), plan.problems)
    return "\n\n".join(parts) + "\n"


def _overview(stack: Picture, problems: Iterable[Finding]) -> list[str]:
    """The parts about teams, GPUs and queues."""
    parts = ["### Teams", _team_table(stack, problems) if stack.teams else "None."]
    if stack.kai is not None:
        support = releases.support(stack.kai).words
        parts.append(f"The host runs KAI {_code(stack.kai)} ({support}).")
    if stack.teams:
        parts += [
            "### GPUs",
            _table(summary.POOL_COLUMNS, map(_pool, summary.pool_rows(stack))),
            "GPUs are the bounds that the teams' ResourceQuotas set; how many the nodes have,"
            " only the cluster knows.",
        ]
    trees = stack.trees("the host")
    if trees:
        parts.append("### Queues")
    for name, tree in trees.items():
        parts += [f"**{_text(name)}**", _drawn(summary.queue_flowchart(tree))]
    return parts


def _drawn(mermaid_text: str) -> str:
    return f"```mermaid\n{mermaid_text}\n```"


def _team_table(stack: Picture, problems: Iterable[Finding] = ()) -> str:
    """One line per team; those with something to look at first, and why."""
    rows = [
        [*map(_text, cells), f"**{concerns}**" if concerns else ""]
        for *cells, concerns in summary.team_rows(stack, problems)
    ]
    most = None if any(row[-1] for row in rows) else -1
    return _table(summary.TEAM_COLUMNS[:most], (row[:most] for row in rows))


def _pool(pool: summary.PoolRow) -> list[str]:
    """What the teams of a node pool may hold, against what their queues are guaranteed."""
    names = ", ".join(_code(name) if name else "any node" for name in pool.pools)
    teams, *amounts, left = pool.cells
    by_host = " (host's KAI)" if pool.by_host else ""
    return [f"{names}{by_host}", _text(teams), *amounts, f"**{left}**" if pool.over else left]


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
    if report.shown.edited:
        parts.append(_fields(report.shown.edited))
    if report.left_out:
        parts.append(f"{report.left_out}.")
    for kind in ("created", "replaced", "deleted"):
        if report.shown.parts[kind]:
            parts.append(_folded(kind, report.shown.parts[kind]))
    all_hold = "Every rule holds." if report.now else "There is nothing to judge."
    parts += ["### Rules", _problems(report.problems) or all_hold]
    return "\n\n".join(parts) + "\n"


def _meaning(report: DiffReport) -> Iterator[str]:
    for hazard, group in by_hazard(report.sentences).items():
        yield f"### {HEADINGS[hazard]}"
        yield "\n".join(map(_sentence, group))
    if report.secrets:
        yield "\n".join(f"- {_code(key)} {SECRETS[it]}" for key, it in report.secrets.items())
    if report.sentences and report.untouched:
        yield f"Other teams untouched: {_text(', '.join(report.untouched))}."


def _sentence(sentence: Sentence) -> str:
    lead = f"- **{_text(sentence.subject)}**:"
    parts = [_prose(part.text) for part in sentence.parts]
    return f"{lead} {parts[0]}" if len(parts) == 1 else "\n  - ".join((lead, *parts))


def _pictures(report: DiffReport) -> Iterator[str]:
    """The pools and the queue trees that change, before and after."""
    if not report.compared:
        return
    stacks = report.before, report.after
    drawn = {"GPUs by node pool": [summary.pool_flowchart(it.teams.values()) for it in stacks]}
    trees = [stack.trees() for stack in stacks]
    for name in sorted(set().union(*trees)):
        pair = [summary.queue_flowchart(it[name]) if name in it else "" for it in trees]
        drawn[f"Queues of {name}"] = pair
    for title, (before, after) in drawn.items():
        if before != after:
            yield f"<details open><summary>{_text(title)}, before and after</summary>"
            yield from (_drawn_as("Before", before), _drawn_as("After", after), "</details>")


def _drawn_as(word: str, flowchart: str) -> str:
    if len(flowchart) > _LONGEST_PICTURE:
        return f"{word}: too large to draw"
    return f"{word}:\n\n{_drawn(flowchart)}" if flowchart else f"{word}: none"


def _fields(changes: Sequence[ResourceChange]) -> str:
    rows = [
        (
            _text(change.team or HOST),
            _text(change.label),
            _code(item.path),
            *(value if value == UNSET else _code(value) for value in item.shown()),
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
    head = f"<details><summary>{counted(len(changes), 'resource')} {kind}</summary>"
    shown = "\n".join(lines[:_MOST_ROWS]) + _more(len(lines) - _MOST_ROWS, "resource")
    return f"{head}\n\n{shown}\n\n</details>"


def _more(number: int, thing: str) -> str:
    if number <= 0:
        return ""
    return f"\n\n… and {counted(number, thing)} more; `fleet diff --format json` has them all."


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the cells are Markdown already, `_text` and `_code` make them."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _text(words: str) -> str:
    """Words that mean nothing to Markdown, on one line; they mention no user."""
    return " ".join(without_controls(words).split()).translate(_SPECIAL)


def _prose(words: str) -> str:
    """The same with commands and YAML as code, to be copied."""
    return " ".join(_unit(unit) if " " in unit else _text(unit) for unit in units(words))


def _unit(unit: str) -> str:
    found = _CODE.fullmatch(unit)
    return f"{found[1]}{_code(found[2])}{found[3]}" if found else _text(unit)


def _code(value: str) -> str:
    """A code span of one line, also in a table's cell."""
    line = " ".join(without_controls(value).split()).replace("|", "\\|")
    if not line:
        return ""
    fence = "`"
    while fence in line:
        fence += "`"
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def _problems(problems: Iterable[Finding]) -> str:
    """A plan's problems as a list, those that stop a preview first."""
    lines = []
    for it in sorted(problems, key=lambda problem: problem.level is not Level.MANDATORY):
        word = "**refused**" if it.level is Level.MANDATORY else "warning"
        message = _prose(f"{it.subject}: {it.message}")
        lines.append(f"- {word} {_code(it.check)} {_code(it.path or it.subject)}<br>{message}")
    return "\n".join(lines)
