"""The page: one file of HTML with its style and drawings in it, and nothing that is loaded."""

import re
from datetime import timedelta
from typing import Final

import jinja2
from markupsafe import Markup, escape

from kai_fleet_cli.doctor.causes import COMMAND
from kai_fleet_cli.report import charts, use_tables
from kai_fleet_cli.report.model import StackReport
from kai_fleet_cli.report.use_tables import UNKNOWN
from kubectl_fleet.usage.amounts import UNLIMITED
from kubectl_fleet.wording import counted

SHOWN: Final = 12  # rows of who waits and of findings; the others are folded
OPEN_TREES: Final = 8  # more of them are folded


def page(report: StackReport) -> str:
    """The report as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("kai_fleet_cli.report", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Globals, since macros are not given the template's variables.
    environment.globals |= {
        "dash": UNKNOWN,
        "report": report,
        "age": lambda since: age(report.made - since) if since else "",
        "charts": charts,
        "tables": use_tables,
        "shown": SHOWN,
        "open_trees": len(report.trees) <= OPEN_TREES,
    }
    environment.filters |= {
        "gpus": gpus,
        "counted": counted,
        "moment": lambda when: f"{when:%Y-%m-%d %H:%M}",
        "commands": commands,
        "team_bar": charts.team,
        "queue_bar": charts.queue,
    }
    return environment.get_template("page.html.j2").render()


def gpus(amount: float | None) -> str:
    """An amount of GPUs: no more than two decimals, `unlimited`, a dash for not known."""
    if amount is None:
        return UNKNOWN
    if amount == UNLIMITED:
        return "unlimited"
    return f"{round(amount, 2):,g}" if amount < 10**6 else f"{amount:,.0f}"


def age(since: timedelta) -> str:
    """How long something takes already, in its two largest units."""
    minutes = max(0, int(since.total_seconds() // 60))
    if not minutes:
        return "< 1 min"
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def commands(fix: str) -> Markup:
    """A sentence with its commands as code."""
    return Markup(COMMAND.sub(_code, str(escape(fix))))


def _code(command: re.Match[str]) -> str:
    """Each word whole, so that no line ends within a flag."""
    words = (f"<span>{word}</span>" for word in command[1].split(" "))
    return f"<code>{' '.join(words)}</code>"
