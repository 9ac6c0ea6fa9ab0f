"""What a stack's file alone tells: promises, pools, queues, versions, and what the rules say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from kai_fleet.fleet.model import DeclaredTeam, Fleet
from kai_fleet.fleet.queues import DeclaredQueue
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.releases import KAI, support
from kai_fleet.settings import Settings
from kai_fleet_cli.doctor.declared import host_of
from kai_fleet_cli.gpu_usage.queues import tree
from kai_fleet_cli.report.model import Missing, Pool, Report, Said, TeamReport, Tree, Version
from kai_fleet_policies.problem import Level, Problem

LIVE_PARTS = "GPUs in use, idle and waited for, nodes, the doctor's findings"


def planned(
    stack: str,
    settings: Settings,
    problems: Sequence[Problem],
    made: datetime,
    missing: Iterable[Missing] = (),
) -> Report:
    """The report of a stack whose clusters are not asked."""
    fleet = fleet_of(settings)
    teams = fleet.every_team.values()
    return Report(
        stack=stack,
        cluster=fleet.cluster.name,
        made=made,
        live=False,
        teams=tuple(_team(fleet, team, made) for team in teams),
        pools=tuple(Pool(labels, tuple(names)) for labels, names in pools_of(teams).items()),
        trees=tuple(_trees(fleet)),
        said=tuple(_said(problem) for problem in problems),
        missing=tuple(missing),
        whole=not fleet.platform,
    )


def pools_of(teams: Iterable[DeclaredTeam]) -> dict[str, list[str]]:
    """The node pools as `key=value` texts, and the teams that have each."""
    found: dict[str, list[str]] = {}
    for team in teams:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(team.node_pool.items()))
        found.setdefault(labels, []).append(team.name)
    return found


def version(wanted: str | None, running: str | None, made: datetime) -> Version | None:
    """A KAI's version with its support; None where there is none."""
    name = running or wanted
    if name is None:
        return None
    said = support(name, made.date())
    known = KAI.get(name)
    ends = known.support_end if known else None
    return Version(wanted, running, said.words, said.maintained, ends)


def _team(fleet: Fleet, team: DeclaredTeam, made: datetime) -> TeamReport:
    (release,) = (fleet.host if team.mode == "host" else team).kai or (None,)
    return TeamReport(
        name=team.name,
        mode="own stack" if team.granted else team.mode,
        promised=float(team.gpus or 0),
        kai=version(release.version if release else None, None, made),
        vcluster=None if team.granted else Version(team.version),
        own_stack=team.granted,
    )


def _trees(fleet: Fleet) -> Iterable[Tree]:
    if on_host := host_of(fleet).queues:
        yield _tree("the host", on_host)
    for name, team in fleet.teams.items():
        if team.inside.queues:
            yield _tree(name, team.inside.queues)


def _tree(name: str, queues: Iterable[DeclaredQueue]) -> Tree:
    items = [{"metadata": {"name": queue.name}, "spec": queue.spec} for queue in queues]
    return Tree(name, tuple(tree(items, {}).values()))


def _said(problem: Problem) -> Said:
    cause, _, fix = problem.message.rpartition("; ")
    return Said(
        "broken" if problem.level is Level.MANDATORY else "warning",
        problem.path,
        problem.subject,
        cause or problem.message,
        fix if cause else "",
    )
