"""The page of a report.

It is one HTML file that loads nothing: style and drawings are in it. Each bar has its numbers
beside it, and no meaning rests on colour alone: a quota is an outline, GPUs in use fill it, and
GPUs that pods wait for follow behind it. Texts of tenants are escaped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

import jinja2
from markupsafe import Markup, escape

from kai_fleet.queues.amounts import is_unlimited_in_spec
from kai_fleet.wording import number_with_noun
from kai_fleet_cli.doctor.diagnosis import WORDS, causes_in
from kai_fleet_cli.report.records import QueueRow, Report, Team
from kai_fleet_policies.finding import Command, Level, split_at

SHOWN = 12  # rows of waits and of findings, and queue trees; the page folds the others
_DAY_MINUTES = 24 * 60


def page(report: Report) -> str:
    """Return the report as HTML, with every text of others escaped.

    Findings of level `ok` are only counted; the others are in the order of WORDS.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kai_fleet_cli.report", "."),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        gpus=gpus,
        counted=number_with_noun,
        prose=_prose,
        longest=_longest_bar,
    )
    levels = Counter(finding.level for finding in report.findings)
    # Globals, because macros do not get the variables of the template.
    environment.globals.update(
        report=report,
        age=lambda since: age(report.time - since) if since else "",
        count={level.value: levels[level] for level in Level},
        problems=causes_in(report.findings),
        shown=SHOWN,
        words=WORDS,
    )
    return environment.get_template("page.html.jinja").render()


def _longest_bar(rows: Iterable[Team | QueueRow], quota: str) -> float:
    """Return the GPUs at the end of the longest bar of some teams or queues: they share a scale.

    A bar is as long as the quota or what is in use, the larger one, and what waits. An unlimited
    quota, and what is unknown, count as nothing. 0 without rows. `quota` is the name of the field
    with the quota.
    """
    ends = [max(getattr(row, quota), row.in_use or 0.0) + (row.waiting or 0.0) for row in rows]
    return max(ends, default=0.0)


def _prose(text: str, commands: Sequence[str] = ()) -> Markup:
    """Return a sentence with a capital, a full stop, and these commands as code, for HTML.

    The commands stand in `text` between backticks, in this order. `text` has no full stop.
    """
    page_text = Markup()
    for part in split_at(commands, f"{text[:1].upper()}{text[1:]}."):
        if isinstance(part, Command):
            page_text += Markup("<code>{}</code>").format(part.line)
        else:
            page_text += escape(part)
    return page_text


def gpus(amount: float | None) -> str:
    """Return an amount of GPUs with all its digits, two of them decimals at most.

    `unlimited` for -1, a dash for None.
    """
    if amount is None:
        return "\u2013"
    if is_unlimited_in_spec(amount):
        return "unlimited"
    return f"{amount:,.2f}".rstrip("0").rstrip(".")


def age(since: timedelta) -> str:
    """Return an age in two units, days and hours or hours and minutes, rounded down.

    Below an hour in minutes only, `0 min` for a negative one.
    """
    minutes = max(0, int(since.total_seconds() // 60))
    days, minutes_of_day = divmod(minutes, _DAY_MINUTES)
    hours, minutes_of_hour = divmod(minutes_of_day, 60)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes_of_hour} min" if hours else f"{minutes} min"
