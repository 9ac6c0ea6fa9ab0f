"""A whole report as tables of text, for a terminal and for Markdown."""

from collections.abc import Iterator

from kai_fleet_cli.report.model import StackReport
from kai_fleet_cli.report.page import age, gpus
from kai_fleet_cli.report.use_tables import UNKNOWN, Section, changes_from, hours, idle
from kubectl_fleet.live.finding import Health


def sections(report: StackReport) -> Iterator[Section]:
    """The whole report, but for the queue trees: those are on the page and in the JSON."""
    if report.over_time is not None:
        yield hours(report.over_time)
        yield idle(report.over_time)
    yield _teams(report)
    if report.live:
        yield _waits(report)
        yield _pools(report)
    yield _versions(report)
    yield _findings(report)
    yield _changes(report)


def summary(report: StackReport) -> Iterator[str]:
    """The first lines: what it is about, and the figures."""
    seen = "as seen" if report.live else "as declared"
    yield f"Cluster {report.cluster}, {seen} on {report.made:%Y-%m-%d %H:%M} UTC."
    figures = [f"{gpus(report.promised)} GPUs promised"]
    if report.gpus is not None:
        figures += [f"{gpus(report.gpus.in_use)} in use", f"{gpus(report.gpus.idle)} idle"]
    if report.live:
        of = ", of those that were read" if report.unread else ""
        figures.append(f"{gpus(report.waiting)} waited for by {report.waiting_pods} pods{of}")
    yield f"{', '.join(figures)}."
    for part, why in report.missing.items():
        yield f"Not in it: {part}: {why}."
    if report.more:
        yield report.more


def _teams(report: StackReport) -> Section:
    rows = []
    for team in sorted(report.teams, key=lambda team: -team.promised):
        now = (team.in_use, team.idle, team.waiting) if report.live else ()
        rows.append([team.name, team.scheduled_by, *map(gpus, (team.promised, *now))])
    now_headings = ("in use", "idle", "waiting") if report.live else ()
    return Section("Teams", ["team", "scheduled by", "promised", *now_headings], rows, 2)


def _waits(report: StackReport) -> Section:
    rows = [
        [
            wait.team,
            ", ".join(wait.queues),
            wait.cause or "on its way",
            str(wait.pods),
            gpus(wait.gpus),
            age(report.made - wait.since) if wait.since else "",
        ]
        for wait in report.waits
    ]
    return Section("Who waits", ["team", "queues", "why", "pods", "GPUs", "longest"], rows, 3)


def _pools(report: StackReport) -> Section:
    rows = []
    for pool in report.pools:
        of = pool.gpus
        amounts = (of.ready, of.in_use, of.free) if of else (None, None, None)
        nodes = UNKNOWN if pool.nodes is None else f"{pool.ready} of {pool.nodes}"
        about = [pool.labels or "no labels of a pool", ", ".join(pool.teams)]
        rows.append([*about, ", ".join(pool.products), nodes, *map(gpus, amounts)])
    headings = ["nodes with", "teams", "GPU", "Ready nodes", "GPUs", "in use", "free devices"]
    return Section("Node pools", headings, rows, 3)


def _versions(report: StackReport) -> Section:
    rows = [
        [
            team.name,
            team.kai.name if team.kai else "none",
            team.kai.support if team.kai else "",
            team.vcluster.name if team.vcluster else "none",
        ]
        for team in report.teams
        if not team.own_stack
    ]
    return Section("Versions and support", ["team", "KAI", "support", "vCluster"], rows, 4)


def _findings(report: StackReport) -> Section:
    rows = [
        [
            each.health if report.live or each.health is Health.WARNING else "refused",
            each.cluster,
            each.subject,
            each.cause,
            each.fix,
        ]
        for each in sorted(report.findings, key=lambda each: each.health)
    ]
    title = "Health" if report.live else "What the rules say"
    return Section(title, ["how bad", "where", "what", "why", "what to do"], rows, 5)


def _changes(report: StackReport) -> Section:
    rows = [
        [
            f"{update.when:%Y-%m-%d %H:%M}",
            "; ".join(update.changes) or UNKNOWN,
            f"{update.kind} {update.result}",
            update.resources or "none changed",
            update.checkout or UNKNOWN,
        ]
        for update in report.updates or ()
    ]
    headings = ["when, UTC", "what", "result", "resources", "run from commit"]
    return Section("Last changes", headings, rows, 5, [changes_from(report)])
