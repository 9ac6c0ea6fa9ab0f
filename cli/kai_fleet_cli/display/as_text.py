"""Plans and diffs for a terminal. Output to a file or a pipe has no colours."""

from collections.abc import Iterable, Mapping
from typing import Final

from rich.console import Console

from kai_fleet_cli.diff.changes import HEADINGS, Summary
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.display.terminal import print_line, print_table
from kai_fleet_cli.plan.offline import UNSEEN, Plan
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, costs, picture
from kai_fleet_policies.finding import Finding, Level

# By verdict, or by section of a summary. A verdict with numbers has none.
_COLOURS: Final[Mapping[str, str]] = {
    "fine": "green",
    "nothing changes": "green",
    "not compared": "yellow",
    "refused": "red",
    "lost": "red",
    "granted": "yellow",
    "secret": "yellow",
    "restarted": "magenta",
    "changed": "",
}
_MAX_LINES: Final = 40  # of a section


def show_plan(plan: Plan, console: Console) -> None:
    """Print a plan: its verdict, its problems, a table of its teams, and what no plan looks at."""
    verdict = "fine" if plan.ok else "refused"
    print_line(console, f"stack {plan.stack}: ", (verdict, _COLOURS[verdict]), f" ({plan.counts})")
    show_problems(plan.problems, console)
    teams = picture(plan.resources).teams
    if teams:
        print_table(console, TEAM_COLUMNS, teams)
    print_line(console, "\n".join([*costs(plan.resources), UNSEEN]))


def show_diff(report: DiffReport, console: Console) -> None:
    """Print a diff: its base, its note, its summary, the problems of the work tree, its verdict."""
    print_line(console, (report.stack, "bold"), f": {report.base.at} → work tree")
    if report.note:
        print_line(console, report.note)
    show_summary(report.summary, console)
    show_problems(report.problems, console)
    print_line(console, (report.verdict, _COLOURS.get(report.verdict, "")))


def show_summary(summary: Summary, console: Console) -> None:
    """Print the sections of a summary that have lines, in its order: at most 40 lines of each."""
    for section, lines in summary.items():
        if not lines:
            continue
        print_line(console, (HEADINGS[section], f"bold {_COLOURS[section]}"))
        for line in lines[:_MAX_LINES]:
            print_line(console, "  ", (f"{line.team}:", "bold"), f" {line.subject} {line.words}")
        if len(lines) > _MAX_LINES:
            print_line(console, f"  … and {len(lines) - _MAX_LINES} more")


def show_problems(problems: Iterable[Finding], console: Console) -> None:
    """Print problems, mandatory ones first: level, check, and key or else subject; then the subject
    and what is wrong, with the fix.
    """
    for problem in sorted(problems, key=lambda problem: problem.level is not Level.MANDATORY):
        word = ("warning", "yellow")
        if problem.level is Level.MANDATORY:
            word = ("refused", "red")
        subject = problem.path or problem.subject
        print_line(console, word, " ", (f"[{problem.check}]", "bold"), f" {subject}")
        print_line(console, f"  {problem.subject}: {problem.message}")
