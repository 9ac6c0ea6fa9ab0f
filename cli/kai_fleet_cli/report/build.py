"""One report: what a stack's file alone tells (promises, pools, queues, versions, what the rules
say), and what the clusters tell where they answer; with what is missing.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kai_fleet.fleet.model import DeclaredTeam, Fleet
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.settings import Settings
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.cluster_state import Snapshot
from kai_fleet_cli.doctor.gather import ClusterSources, Heard, gather
from kai_fleet_cli.doctor.sources import host_of, judged, of_stack
from kai_fleet_cli.recovery.resume import FLEET
from kai_fleet_cli.report import prometheus
from kai_fleet_cli.report.last_changes import last_changes
from kai_fleet_cli.report.live import live, pools_of, version
from kai_fleet_cli.report.model import PoolReport, StackReport, TeamReport, Version
from kai_fleet_cli.report.team_usage import OWN_STACK
from kai_fleet_cli.report.use_over_time import use_over_time
from kubectl_fleet.declared.queues import QueueIndex
from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.errors import UnreachableError
from kubectl_fleet.live.finding import ExitCode, Finding, Health
from kubectl_fleet.rules.problem import Level, Problem
from kubectl_fleet.usage.queues import tree
from kubectl_fleet.waiting.rule_violations import cause_and_fix

_LIVE_PARTS: Final = "GPUs in use, idle and waited for, nodes, the doctor's findings"


def of_file(stack: str, file: Path | None = None) -> StackReport:
    """The report of a stack's file alone. Raises UserError for one that cannot be read."""
    return planned(stack, *judged(stack, file), datetime.now(UTC))


def of_clusters(stack: str, heard: Heard) -> StackReport:
    """The report of a stack as it is now. `heard` is called with how many clusters answered.

    What cannot be read is a missing part of it: a cluster, Prometheus, the history. Raises
    UserError for a stack whose file cannot be read.
    """
    settings, problems = judged(stack)
    report = planned(stack, settings, problems, datetime.now(UTC))
    try:
        sources = replace(of_stack(stack, None, None), heard=heard)
    except UserError as error:
        return _lacking(report, _LIVE_PARTS, str(error), ExitCode.BLIND)
    never, look = "", None
    try:
        report = replace(report, updates=last_changes(stack, sources.variables))
    except UserError as error:
        report = _lacking(report, "the last changes", str(error))
    if report.updates == []:
        never = (
            f"stack {stack} was never deployed, by what `pulumi` says at this login; deploy it"
            f" with: {FLEET} up --stack {stack}"
        )
    try:
        look = gather(sources)
    except (UnreachableError, UserError) as error:
        why = f"{error}; {never}" if never else str(error)
        report = _lacking(report, _LIVE_PARTS, why, ExitCode.BLIND)
    else:
        if never and not _has_teams(look):
            return _lacking(report, _LIVE_PARTS, never)
        report = live(report, look, examine(look))
    return _with_hours(report, settings, sources, look)


def planned(
    stack: str, settings: Settings, problems: Sequence[Problem], made: datetime
) -> StackReport:
    """The report of a stack whose clusters are not asked."""
    fleet = fleet_of(settings)
    teams = fleet.every_team.values()
    trees = {"the host": host_of(fleet).queues}
    trees |= {name: team.inside.queues for name, team in fleet.teams.items()}
    return StackReport(
        stack=stack,
        cluster=fleet.cluster.name,
        made=made,
        live=False,
        teams=[_team(fleet, team, made) for team in teams],
        pools=[PoolReport(it, tuple(t.name for t in of)) for it, of in pools_of(teams).items()],
        trees={it: [*tree(QueueIndex(of)).values()] for it, of in trees.items() if of},
        findings=[_finding(problem) for problem in problems],
        whole=not fleet.platform,
    )


def _lacking(
    report: StackReport, part: str, why: str, exit_code: ExitCode = ExitCode.HEALTHY
) -> StackReport:
    code = report.exit_code or exit_code
    return replace(report, missing={**report.missing, part: why}, exit_code=code)


def _has_teams(look: Snapshot) -> bool:
    """Whether the vCluster of a team, or its namespace, answers or may be there."""
    return "namespaces" in look.host.unreadable or any(
        team.inside or look.host.named("namespaces", team.wanted.namespace)
        for team in look.teams.values()
    )


def _with_hours(
    report: StackReport, settings: Settings, sources: ClusterSources, look: Snapshot | None
) -> StackReport:
    server = settings.monitoring.prometheus if settings.monitoring else None
    if server is None:
        cost = "what they cost" if settings.prices else "with kai-fleet:prices what they cost"
        more = (
            "With a Prometheus this report also has the GPU-hours of each team and queue for the"
            f" last 7 and 30 days, their trend, {cost}, and what stood idle:"
            f" {prometheus.TURN_ON}"
        )
        return replace(report, more=more)
    try:
        use = use_over_time(lambda: prometheus.of(server, sources.host), settings, look)
    except UnreachableError as error:
        return _lacking(report, "GPU-hours and their cost", str(error), ExitCode.BLIND)
    return replace(report, over_time=use)


def _team(fleet: Fleet, team: DeclaredTeam, made: datetime) -> TeamReport:
    (release,) = (fleet.host if team.mode == "host" else team).kai or (None,)
    return TeamReport(
        name=team.name,
        mode=OWN_STACK if team.granted else team.mode,
        promised=float(team.gpus or 0),
        kai=version(release.version if release else None, None, made),
        vcluster=None if team.granted else Version(team.version),
        own_stack=team.granted,
    )


def _finding(problem: Problem) -> Finding:
    health = Health.BROKEN if problem.level is Level.MANDATORY else Health.WARNING
    return Finding(problem.rule, health, problem.path, problem.subject, *cause_and_fix(problem))
