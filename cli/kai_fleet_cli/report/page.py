"""Write a report as a page: one file of HTML with its style and drawings, which loads nothing.

Numbers stand beside each bar, and no meaning rests on colour alone: a quota is an outline, GPUs in
use fill it, what pods wait for follows behind it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import jinja2
from markupsafe import Markup, escape

from kai_fleet.finding import Level
from kai_fleet.wording import counted
from kai_fleet_cli.doctor.diagnosis import WORDS
from kai_fleet_cli.report.build import Report
from kai_fleet_policies.model.queues import UNLIMITED

SHOWN: Final = 12  # rows of who waits and of findings; the others are folded
_COMMAND: Final = re.compile(r"`([^`]+)`")
OPEN_TREES: Final = 8  # where there are more, each is folded


def page(report: Report) -> str:
    """The report as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kai_fleet_cli.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"gpus": gpus, "counted": counted, "prose": _prose, "longest": _longest}
    levels = Counter(finding.level for finding in report.findings)
    problems = [finding for finding in report.findings if finding.level is not Level.OK]
    # Globals, since macros are not given the template's variables.
    environment.globals |= {
        "report": report,
        "age": lambda since: age(report.time - since) if since else "",
        "count": {level.value: levels[level] for level in Level},
        "problems": sorted(problems, key=lambda finding: finding.level is Level.ADVISORY),
        "shown": SHOWN,
        "words": WORDS,
        "open_trees": len(report.queues) <= OPEN_TREES,
    }
    return environment.get_template("page.html.jinja").render()


def _longest(rows: Iterable[Any], quota: str) -> float:
    """The end of the longest bar of some teams or queues: they share a scale."""
    ends = (max(getattr(row, quota), row.in_use or 0.0) + (row.waiting or 0.0) for row in rows)
    return max(ends, default=0.0)


def _prose(text: str) -> Markup:
    """A sentence with a capital and a full stop, and with its commands as code."""
    sentence = str(escape(f"{text[:1].upper()}{text[1:]}."))
    return Markup(_COMMAND.sub(r"<code>\1</code>", sentence))


def gpus(amount: float | None) -> str:
    """An amount with two decimals at most, `unlimited`, or a dash for not known."""
    if amount is None:
        return "\u2013"
    if amount == UNLIMITED:
        return "unlimited"
    return f"{round(amount, 2):,g}" if amount < 10**6 else f"{amount:,.0f}"


def age(since: timedelta) -> str:
    """An age in its two largest units."""
    minutes = max(0, int(since.total_seconds() // 60))
    if minutes >= 1440:
        return f"{minutes // 1440} d {minutes // 60 % 24} h"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
