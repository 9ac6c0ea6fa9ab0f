"""Plans and diffs as Markdown, as GitHub and GitLab show it: for a pull request's comment."""

import re
from collections.abc import Iterable
from typing import Any, Final

from kai_fleet.finding import Finding, Level
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import counted, without_controls
from kai_fleet_cli.diff.changes import HEADINGS, UNSET, carries_out
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.plan.offline import UNSEEN, Plan
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, Picture, picture
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    written,
)

# A comment holds 65,536 characters; a table of this many lines is not read anyway.
_MOST_ROWS: Final = 100
_CODE: Final = re.compile(r"(`[^`]+`)")
# Mermaid reads these inside quoted labels; it takes entities written with # and without &.
_ENTITIES: Final = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "&": "#amp;"}
_ESCAPED: Final = str.maketrans(_ENTITIES)
_SPECIAL: Final = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~@"})


def plan_page(plan: Plan) -> str:
    """The whole page, ending in a newline."""
    seen = picture(plan.resources)
    return _page("plan", plan.problems, plan=plan, teams=seen.teams, flowcharts=_flowcharts(seen))


def diff_page(report: DiffReport) -> str:
    """The whole page, ending in a newline."""
    now = report.now or Plan(report.stack)
    old, new = (_flowcharts(picture(side.resources)) for side in (report.base, now))
    trees = [
        (name, {"Before": old.get(name), "After": new.get(name)})
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    changes = [change for change in report.changes if not carries_out(change)]
    rows = [
        (change, *cells)
        for change in changes
        for cells in [(each.path, *each.shown()) for each in change.fields] or [("", "", "")]
    ]
    return _page("diff", now.problems, report=report, trees=trees, rows=rows, differ=len(changes))


def _page(name: str, problems: Iterable[Finding], **values: Any) -> str:
    """Fill a template; problems that stop a preview come first."""
    import jinja2  # text and JSON do without

    loader, strict = jinja2.PackageLoader("kai_fleet_cli.display", "."), jinja2.StrictUndefined
    environment = jinja2.Environment(
        loader=loader, undefined=strict, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"text": _text, "prose": _prose, "code": _code, "counted": counted}
    environment.globals |= {"headings": HEADINGS, "columns": TEAM_COLUMNS, "unseen": UNSEEN}
    environment.globals |= {"host": HOST, "most": _MOST_ROWS}
    values["problems"] = sorted(problems, key=lambda each: each.level is not Level.MANDATORY)
    return environment.get_template(f"{name}.md.jinja").render(values)


def _flowcharts(seen: Picture) -> dict[str, str]:
    return {name: queue_flowchart(tree) for name, tree in seen.trees.items()}


def _text(words: str) -> str:
    """Escape text for Markdown, on one line; it mentions no user."""
    return " ".join(without_controls(words).split()).translate(_SPECIAL)


def _prose(words: str) -> str:
    """Escape text; what stands between backticks stays code, to be copied."""
    parts = _CODE.split(" ".join(without_controls(words).split()))
    return "".join(
        _code(part[1:-1]) if n % 2 else part.translate(_SPECIAL) for n, part in enumerate(parts)
    )


def _code(value: str) -> str:
    """A code span of one line, also in a table's cell; none for a value that is not there."""
    line = " ".join(without_controls(value).split()).replace("|", "\\|")
    if line in ("", UNSET):
        return line
    fence = "`"
    while fence in line:
        fence += "`"
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def queue_flowchart(queues: Iterable[DeclaredQueue]) -> str:
    """A tree of queues for Mermaid with each one's shares, parents first, numbered in that order.

    Queues that pods may name have round corners.
    """
    tree, lines = QueueIndex(queues), ["flowchart TD"]
    names = dict.fromkeys([*tree.levels, *tree.by_name])  # what hangs below none comes last
    ids = {name: f"q{number}" for number, name in enumerate(names)}
    for name, queue in ((name, tree.by_name[name]) for name in names):
        left, right = ("(", ")") if tree.is_leaf(name) else ("[", "]")
        lines.append(f'  {ids[name]}{left}"{_label(queue)}"{right}')
        if queue.parent in ids:
            lines.append(f"  {ids[queue.parent]} --> {ids[name]}")
    return "\n".join(lines)


def _label(queue: DeclaredQueue) -> str:
    shares = {} if queue.shares is UNKNOWN else queue.shares
    lines = [str(queue.name).translate(_ESCAPED)]
    for resource in reversed(RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, QueueShare(limit=0.0))
        if resource == "gpu" or (share.quota, share.limit) != (UNLIMITED, UNLIMITED):
            words = [f"{resource} {_amount(resource, share.quota)}"]
            if share.limit != UNLIMITED:
                words.append(f"limit {_amount(resource, share.limit or 0.0)}")
            if share.weight != 1.0:
                words.append(f"weight {_amount('gpu', share.weight)}")
            lines.append(", ".join(words))
    return "<br>".join(lines)


def _amount(resource: Any, amount: float) -> str:
    return "not known yet" if amount is UNKNOWN else written(resource, amount, "")
