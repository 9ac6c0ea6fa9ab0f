"""The page: one file of HTML with its style and drawings in it, and nothing that is loaded.

Bars carry no text: their numbers stand beside them. Meaning never rests on colour alone: what is
used is filled, what is promised and idle is an empty outline, what waits is hatched.
"""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, TypeAlias

import jinja2
from markupsafe import Markup, escape

from kai_fleet.fleet.queues import UNLIMITED
from kai_fleet.wording import counted
from kai_fleet_cli.doctor.examine import COMMAND
from kai_fleet_cli.report.model import StackReport, TeamReport
from kai_fleet_cli.report.sections import UNKNOWN, age, changes_from, gpus, hours, idle
from kai_fleet_cli.usage.queues import ShareUse

SHOWN: Final = 12  # rows of who waits and of findings; the others are folded
OPEN_TREES: Final = 8  # more of them are folded
LEGEND: Final = {
    "used": "in use",
    "promised": "promised and idle",
    "spare": "promised to nobody",
    "away": "on nodes that are not Ready",
}
# The stretches of a bar: the class in the style sheet, where it begins and ends.
Bar: TypeAlias = list[tuple[str, float, float]]


def page(report: StackReport) -> str:
    """The report as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kai_fleet_cli.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    use, parts = report.over_time, parts_of(report)
    # Globals, since macros are not given the template's variables.
    environment.globals |= {
        "dash": UNKNOWN,
        "report": report,
        "age": lambda since: age(report.made - since) if since else "",
        "parts": parts,
        "all_gpus": _one_after_another(parts),
        "legend": LEGEND,
        "in_words": ", ".join(f"{amount:g} {LEGEND[kind]}" for kind, amount in parts if amount),
        "use": [("hours", hours(use)), ("idle", idle(use))] if use else [],
        "changes_from": changes_from(report),
        "shown": SHOWN,
        "open_trees": len(report.trees) <= OPEN_TREES,
    }
    environment.filters |= {
        "gpus": gpus,
        "counted": counted,
        "moment": lambda when: f"{when:%Y-%m-%d %H:%M}",
        "commands": commands,
        "team_bar": _team,
        "queue_bar": _queue,
        "longest": lambda bars: max((end for bar in bars for _, _, end in bar), default=0.0),
    }
    return environment.get_template("page.html.j2").render()


def parts_of(report: StackReport) -> list[tuple[str, float]]:
    """What the bar of all GPUs shows, and the table behind it: they add up to all GPUs."""
    of = report.gpus
    if of is None:
        return []
    promised = min(of.idle, report.promised_idle)
    amounts = of.in_use, promised, of.idle - promised, of.not_ready
    return [(kind, round(amount, 2)) for kind, amount in zip(LEGEND, amounts, strict=True)]


def _one_after_another(parts: Sequence[tuple[str, float]]) -> Bar:
    ends = accumulate(amount for _, amount in parts)
    return [(kind, end - amount, end) for (kind, amount), end in zip(parts, ends, strict=True)]


def _team(one: TeamReport) -> Bar:
    """A team: what it was promised as an outline, what it uses in it, what it waits for behind."""
    used, waiting = one.in_use or 0.0, one.waiting or 0.0
    behind = max(one.promised, used)
    return [
        ("promised", 0.0, one.promised),
        ("used", 0.0, used),
        ("waits", behind, behind + waiting),
    ]


def _queue(share: ShareUse, most: float = 0.0) -> Bar:
    """A queue: its quota as an outline, what it uses of it, what it borrows and waits for.

    An unlimited quota is as long as the longest bar.
    """
    quota = most if share.quota == UNLIMITED else share.quota
    own = min(share.in_use, quota)
    behind = max(quota, share.in_use)
    return [
        ("promised", 0.0, quota),
        ("used", 0.0, own),
        ("borrowed", own, share.in_use),
        ("waits", behind, behind + share.waiting),
    ]


def commands(fix: str) -> Markup:
    """A sentence with its commands as code."""
    return Markup(COMMAND.sub(_code, str(escape(fix))))


def _code(command: re.Match[str]) -> str:
    """Each word whole, so that no line ends within a flag."""
    words = (f"<span>{word}</span>" for word in command[1].split(" "))
    return f"<code>{' '.join(words)}</code>"
