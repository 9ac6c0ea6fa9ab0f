"""Plans and diffs for a terminal. Output to a file or a pipe has no colours."""

from collections.abc import Iterable, Mapping

from kai_fleet_cli.diff.changes import HEADINGS, Summary
from kai_fleet_cli.diff.report import DiffReport
from kai_fleet_cli.display.terminal import print_table, result
from kai_fleet_cli.plan.offline import UNSEEN, Plan
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, costs, picture
from kai_fleet_policies.finding import Finding, Level

# By verdict, or by section of a summary. A verdict with numbers has none.
_COLOURS: Mapping[str, str] = {
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
_MAX_LINES = 40  # of a section


def show_plan(plan: Plan) -> None:
    """Print a plan: its verdict, its problems, a table of its teams, and what no plan looks at."""
    verdict = "fine" if plan.ok else "refused"
    result(f"stack {plan.stack}: ", (verdict, _COLOURS[verdict]), f" ({plan.counts})")
    show_problems(plan.problems)
    teams = picture(plan.resources).teams
    if teams:
        print_table(TEAM_COLUMNS, teams)
    result("\n".join([*costs(plan.resources), UNSEEN]))


def show_diff(report: DiffReport) -> None:
    """Print a diff: its base, its note, its summary, the problems of the work tree, its verdict."""
    result((report.stack, "bold"), f": {report.base.at} → work tree")
    if report.note:
        result(report.note)
    show_summary(report.summary)
    show_problems(report.problems)
    result((report.verdict, _COLOURS.get(report.verdict, "")))


def show_summary(summary: Summary) -> None:
    """Print the sections of a summary that have lines, in its order: at most 40 lines of each."""
    for section, lines in summary.items():
        if not lines:
            continue
        result((HEADINGS[section], f"bold {_COLOURS[section]}"))
        for line in lines[:_MAX_LINES]:
            result("  ", (f"{line.team}:", "bold"), f" {line.subject} {line.words}")
        if len(lines) > _MAX_LINES:
            result(f"  … and {len(lines) - _MAX_LINES} more")


def show_problems(problems: Iterable[Finding]) -> None:
    """Print problems, mandatory ones first: level, check, and key or else subject; then the subject
    and what is wrong, with the fix.
    """
    for problem in sorted(problems, key=lambda problem: problem.level is not Level.MANDATORY):
        word = ("warning", "yellow")
        if problem.level is Level.MANDATORY:
            word = ("refused", "red")
        subject = problem.path or problem.subject
        result(word, " ", (f"[{problem.check}]", "bold"), f" {subject}")
        result(f"  {problem.subject}: {problem.message}")
