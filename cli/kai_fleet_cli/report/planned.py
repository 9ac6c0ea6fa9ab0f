"""What a stack's file alone tells: promises, pools, queues, versions, and what the rules say."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kai_fleet.fleet.model import DeclaredTeam, Fleet
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.settings import Settings
from kai_fleet_cli.doctor.sources import host_of
from kai_fleet_cli.report.model import PoolReport, StackReport, TeamReport, Version
from kai_fleet_cli.report.team_usage import OWN_STACK
from kubectl_fleet.declared.queues import DeclaredQueue
from kubectl_fleet.live.finding import Finding, Health
from kubectl_fleet.live.objects import KubeObject
from kubectl_fleet.releases import support
from kubectl_fleet.rules.problem import Level, Problem
from kubectl_fleet.usage.queues import QueueUse, tree
from kubectl_fleet.waiting.rule_violations import cause_and_fix

LIVE_PARTS = "GPUs in use, idle and waited for, nodes, the doctor's findings"


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
        trees={name: _tree(queues) for name, queues in trees.items() if queues},
        findings=[_finding(problem) for problem in problems],
        whole=not fleet.platform,
    )


def pools_of(teams: Iterable[DeclaredTeam]) -> dict[str, list[DeclaredTeam]]:
    """The node pools as `key=value` texts, and the teams that have each."""
    pools: dict[str, list[DeclaredTeam]] = {}
    for team in teams:
        pools.setdefault(pool_name(team.node_pool), []).append(team)
    return pools


def pool_name(labels: Mapping[str, str]) -> str:
    """The labels of a node pool as text."""
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def version(wanted: str | None, running: str | None, made: datetime) -> Version | None:
    """A KAI's version with its support; None where there is none."""
    name = running or wanted
    if name is None:
        return None
    known = support(name, made.date())
    return Version(wanted, running, known.words, known.maintained)


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


def _tree(queues: Iterable[DeclaredQueue]) -> list[QueueUse]:
    items = [KubeObject(metadata={"name": queue.name}, spec=queue.spec) for queue in queues]
    return list(tree(items).values())


def _finding(problem: Problem) -> Finding:
    health = Health.BROKEN if problem.level is Level.MANDATORY else Health.WARNING
    return Finding(problem.rule, health, problem.path, problem.subject, *cause_and_fix(problem))
