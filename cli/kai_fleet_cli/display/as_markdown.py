"""Plans and diffs as Markdown for comments on pull requests, as GitHub and GitLab render it."""

from collections.abc import Iterable, Iterator, Sequence

import jinja2

from kai_fleet.values import UNKNOWN, Maybe, known_or
from kai_fleet.wording import number_with_noun, without_controls
from kai_fleet_cli.diff.changes import HEADINGS, UNSET, Change, carries_out
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.plan.offline import UNSEEN, Plan
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, Picture, picture
from kai_fleet_cli.plan.recorder import Registered
from kai_fleet_policies.finding import Command, Finding, Level, split_at
from kai_fleet_policies.model.cluster import HOST
from kai_fleet_policies.model.queues import (
    RESOURCES,
    UNLIMITED,
    DeclaredQueue,
    QueueIndex,
    QueueShare,
    Resource,
    as_written,
)

_MAX_ROWS = 100  # a comment holds 65,536 characters, and nobody reads a longer table
_MARKDOWN_ESCAPES = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~@"})
# Mermaid reads these in quoted labels. Its entities begin with `#`, not with `&`.
_MERMAID_ESCAPES = str.maketrans(
    {
        "#": "#35;",
        '"': "#quot;",
        "<": "#lt;",
        ">": "#gt;",
        "`": "#96;",
        "&": "#amp;",
    }
)


def plan_page(plan: Plan) -> str:
    """A plan's page, ending in a newline."""
    stack = picture(plan.resources)
    return _page(
        "plan",
        plan.problems,
        plan=plan,
        teams=stack.teams,
        flowcharts=_flowcharts(stack),
    )


def diff_page(report: DiffReport) -> str:
    """A diff's page, ending in a newline. Changes that only carry out others are left out."""
    now = report.now or Plan(report.stack)
    changes = [change for change in report.changes if not carries_out(change)]
    return _page(
        "diff",
        now.problems,
        report=report,
        trees=list(_changed_trees(report.base.resources, now.resources)),
        rows=list(_field_rows(changes)),
        differ=len(changes),
    )


def _changed_trees(
    before: Sequence[Registered], after: Sequence[Registered]
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Name and flowcharts of each queue tree that differs, sorted by name.

    The flowcharts are at `Before` and `After`; None where there is no such tree.
    """
    old = _flowcharts(picture(before))
    new = _flowcharts(picture(after))
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield name, {"Before": old.get(name), "After": new.get(name)}


def _field_rows(changes: Iterable[Change]) -> Iterator[tuple[Change, str, str, str]]:
    """A row for each field of a change: the change, the field's path, its text before and after.

    A change without fields, such as of a resource that is created or deleted, has one row, with
    empty texts.
    """
    for change in changes:
        if not change.fields:
            yield change, "", "", ""
        for field in change.fields:
            yield change, field.path, *field.shown()


def _page(name: str, problems: Iterable[Finding], **values: object) -> str:
    """Fill the template `NAME.md.jinja` with `values` and the problems, mandatory ones first.

    Its filters `text`, `prose` and `code` make texts safe for Markdown. Raises
    jinja2.UndefinedError if it names a value that `values` lack.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kai_fleet_cli.display", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "text": _text,
        "prose": _prose,
        "code": _code,
        "counted": number_with_noun,
    }
    environment.globals |= {
        "headings": HEADINGS,
        "columns": TEAM_COLUMNS,
        "unseen": UNSEEN,
        "host": HOST,
        "most": _MAX_ROWS,
    }
    values["problems"] = sorted(problems, key=lambda problem: problem.level is not Level.MANDATORY)
    return environment.get_template(f"{name}.md.jinja").render(values)


def _flowcharts(stack: Picture) -> dict[str, str]:
    """The flowchart of each queue tree, by its name."""
    return {name: queue_flowchart(queues) for name, queues in stack.trees.items()}


def _on_one_line(text: str) -> str:
    return " ".join(without_controls(text).split())


def _text(text: str) -> str:
    """Plain text for Markdown, on one line. It has no markup, and mentions no user (`@name`)."""
    return _on_one_line(text).translate(_MARKDOWN_ESCAPES)


def _prose(text: str, commands: Sequence[str]) -> str:
    """Text for Markdown, on one line. Only these commands in it have markup: they are code.

    They stand in the text between backticks, in this order.
    """
    pieces = []
    for part in split_at(commands, _on_one_line(text)):
        if isinstance(part, Command):
            pieces.append(_code(part.line))
        else:
            pieces.append(part.translate(_MARKDOWN_ESCAPES))
    return "".join(pieces)


def _code(value: str) -> str:
    """A code span of one line for a table's cell: `|` has a backslash before it.

    "" and UNSET stay without a span.
    """
    line = _on_one_line(value).replace("|", "\\|")
    if line in ("", UNSET):
        return line
    fence = "`"
    while fence in line:
        fence += "`"
    space = " " if "`" in line else ""
    return f"{fence}{space}{line}{space}{fence}"


def queue_flowchart(queues: Iterable[DeclaredQueue]) -> str:
    """A queue tree with the shares of each queue, as a flowchart for Mermaid.

    Parents are before their children; queues in or under a cycle or a gap are last. Queues that
    pods may name have round corners. Of several with one name the first counts; one whose name is
    unknown is left out.
    """
    tree = QueueIndex(queues)
    names = dict.fromkeys([*tree.levels, *tree.by_name])
    ids = {name: f"q{number}" for number, name in enumerate(names)}
    lines = ["flowchart TD"]
    for name, id_ in ids.items():
        queue = tree.by_name[name]
        label = _label(queue)
        lines.append(f'  {id_}("{label}")' if tree.is_leaf(name) else f'  {id_}["{label}"]')
        if queue.parent in ids:
            lines.append(f"  {ids[queue.parent]} --> {id_}")
    return "\n".join(lines)


def _label(queue: DeclaredQueue) -> str:
    """The name and the shares, a line each; CPU and memory unless quota and limit are unlimited.

    A resource without a share has a quota and a limit of 0, as KAI reads it. If all shares are
    UNKNOWN, each is shown so.
    """
    unknown = QueueShare(UNKNOWN, UNKNOWN, UNKNOWN)
    shares = known_or(queue.shares, dict.fromkeys(RESOURCES, unknown))
    lines = [str(queue.name).translate(_MERMAID_ESCAPES)]
    for resource in reversed(RESOURCES):  # GPUs first: they are what the tree is for
        share = shares.get(resource, QueueShare(limit=0.0))
        is_unlimited = (share.quota, share.limit) == (UNLIMITED, UNLIMITED)
        if resource == "gpu" or not is_unlimited:
            lines.append(_share_in_words(resource, share))
    return "<br>".join(lines)


def _share_in_words(resource: Resource, share: QueueShare) -> str:
    """The quota, the limit unless it is unlimited, and the weight unless it is 1.

    A limit of None is written as 0, as KAI reads it.
    """
    words = [f"{resource} {_amount(resource, share.quota)}"]
    if share.limit != UNLIMITED:
        words.append(f"limit {_amount(resource, share.limit or 0.0)}")
    if share.weight != 1.0:
        words.append(f"weight {_amount('gpu', share.weight)}")  # a number without a unit, too
    return ", ".join(words)


def _amount(resource: Resource, amount: Maybe[float]) -> str:
    """An amount in KAI's unit of the resource, as a stack file has it, or `not known yet`."""
    if amount is UNKNOWN:
        return "not known yet"
    return as_written(resource, amount, "")
