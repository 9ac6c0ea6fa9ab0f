"""Build a report of a stack: from its file, its history and its clusters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from kai_fleet.fleet.model import HOST, DeclaredTeam, Fleet
from kai_fleet.fleet.queues import QueueIndex
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.kube.errors import UnreachableError
from kai_fleet.settings import Settings
from kai_fleet.values import pairs
from kai_fleet_cli.doctor.cluster_state import Snapshot
from kai_fleet_cli.doctor.examine import examine
from kai_fleet_cli.doctor.gather import ClusterSources, Heard, gather
from kai_fleet_cli.doctor.sources import host_of, judged, of_stack
from kai_fleet_cli.engine.targeting import was_about
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.resume import FLEET
from kai_fleet_cli.report import prometheus
from kai_fleet_cli.report.live import live, pools_of, version
from kai_fleet_cli.report.model import PoolReport, StackReport, StackUpdate, TeamReport, Version
from kai_fleet_cli.report.team_usage import OWN_STACK
from kai_fleet_cli.report.use_over_time import use_over_time
from kai_fleet_cli.teams import stack_state
from kai_fleet_cli.usage.queues import tree
from kai_fleet_cli.waiting.finding import ExitCode, Finding, Health
from kai_fleet_cli.waiting.rule_violations import cause_and_fix
from kai_fleet_policies.problem import Level, Problem

_LIVE_PARTS: Final = "GPUs in use, idle and waited for, nodes, the doctor's findings"
_SHOWN: Final = 10  # of the last changes
_READ: Final = 20  # the older ones tell from what the shown ones changed it
_SHORT: Final = 8  # of a commit
_OPERATIONS: Final = ("create", "update", "delete", "replace")
# By team, or the host: what runs there, and its version.
Versions: TypeAlias = dict[str, dict[str, str]]
_NOTHING: Final[Versions] = {HOST: {"KAI": "none"}}


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


def last_changes(stack: str, variables: Mapping[str, str]) -> list[StackUpdate]:
    """A stack's newest updates, newest first; none where it was never deployed. Raises UserError.

    The configuration that Pulumi keeps of each update says what it changed, whatever commit the
    checkout is at now.
    """
    try:
        read = list(islice(stack_state.updates(stack, variables), _READ))
    except stack_state.NeverUpdatedError:
        return []
    ran = _NOTHING if len(read) < _READ else None  # None: who knows
    told: list[StackUpdate] = []
    for item in reversed([item for item in read if item.get("startTime")]):
        counts, after = pairs(item.get("resourceChanges")), _after(item, ran)
        message = str(item.get("message") or "")
        # Without one Pulumi takes the title of the checkout's last commit, which changed nothing.
        about = "" if was_about(message, HOST) else message
        if ran is None or after is None:
            changes = [about] if about else []
        else:
            changes = list(_sentences(ran, after)) or [about or "no team, no version"]
        told.append(
            StackUpdate(
                when=datetime.fromisoformat(str(item["startTime"])),
                kind=str(item.get("kind", "")),
                result=str(item.get("result", "")),
                version=item.get("version"),
                changes=tuple(changes),
                checkout=_checkout(pairs(item.get("environment"))),
                message=message.partition("\n")[0],
                resources=", ".join(f"{counts[it]} {it}d" for it in _OPERATIONS if counts.get(it)),
            )
        )
        if item.get("result") == "succeeded":
            ran = after
    return told[: -_SHOWN - 1 : -1]


def _after(item: Mapping[str, Any], ran: Versions | None) -> Versions | None:
    """What runs once the update is through; None where that is not known."""
    if item.get("kind") == "destroy":
        return _NOTHING
    if item.get("kind") != "update":
        return ran
    wanted, message = _versions(item), str(item.get("message") or "")
    if was_about(message, HOST) or ran is None:
        return wanted if was_about(message, HOST) else None
    # Of a team alone: what else its configuration said was not carried out.
    sources = {name: wanted if was_about(message, name) else ran for name in {**ran, **wanted}}
    return {name: source[name] for name, source in sources.items() if name in source}


def _versions(item: Mapping[str, Any]) -> Versions:
    """What an update's configuration declares."""

    def written(key: str) -> Mapping[str, Any]:
        return pairs(stack_state.config_value(item, key))

    teams, own = dict(written("teams")), written("team")
    if own:
        teams[str(own.get("name"))] = own
    of_all = written("vcluster").get("version") or "default"
    versions = {HOST: {"KAI": str(written("kai").get("version") or "none")}}
    for name, team in teams.items():
        scheduler, vcluster = (pairs(pairs(team).get(k)) for k in ("scheduler", "vcluster"))
        kai = {"host": "of the host", "virtual": str(scheduler.get("version"))}
        versions[name] = {
            "KAI": kai.get(str(scheduler.get("mode")), "none"),
            "vCluster": str(vcluster.get("version") or of_all),
        }
    return versions


def _sentences(before: Versions, after: Versions) -> Iterator[str]:
    for name in {**before, **after}:
        subject = "the host" if name == HOST else f"team {name}"
        old, new = before.get(name), after.get(name)
        if new is None:
            yield f"{subject}: removed"
        elif old is None:
            yield f"{subject}: new with {', '.join(f'{what} {new[what]}' for what in new)}"
        elif old != new:
            parts = (f"{what} {old[what]} → {new[what]}" for what in new if old[what] != new[what])
            yield f"{subject}: {', '.join(parts)}"


def _checkout(environment: Mapping[str, Any]) -> str:
    """The commit that it was run from; Pulumi keeps its author, and not who ran it."""
    commit, author = environment.get("git.head"), environment.get("git.author")
    if not commit:
        return ""
    edited = " with edits" if environment.get("git.dirty") == "true" else ""
    return f"{str(commit)[:_SHORT]}{f' of {author}' if author else ''}{edited}"
