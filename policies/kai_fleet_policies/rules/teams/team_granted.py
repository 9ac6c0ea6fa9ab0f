"""A team stack has what its platform grants it, and no more."""

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called, of_team
from kai_fleet_policies.rules.teams import labels

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "Two stacks do not see each other: what one team takes beyond its grant, the platform or"
    " another team stack gives away a second time (V1, V9)."
)
REMEDY = "Agree on the grant in kai-fleet:teamStacks of the platform stack, and update it first."


def check(cluster: DeclaredCluster) -> Problems:
    """The team of a team stack against its grant; and a grant for a team that runs here."""
    grants = {grant.name: grant for grant in cluster.grants}
    others = f" (it grants {', '.join(sorted(grants))})" if grants else ""
    for team in cluster.teams:
        if not team.own_stack or not isinstance(team.name, str):
            continue
        grant = grants.get(team.name)
        if grant is not None:
            yield from _against(team, grant, cluster)
        else:
            yield of_team(team, "name").mandatory(
                f"is not granted by stack {cluster.platform}: write it there, kai-fleet:teamStacks:"
                f" {team.name}: {_written(team)}, and update that stack first{others}"
            )
    if not cluster.platform:
        for grant in cluster.grants:
            if grant.runs_here:
                yield of_team(grant).mandatory(
                    "still runs in this stack, and this update would delete it with all its pods"
                    " and volumes; put it back into kai-fleet:teams. To give it a stack of its own,"
                    f" remove it then (.venv/bin/fleet team remove {grant.name} --stack STACK;"
                    " docs/team-stacks.md)"
                )


def _against(team: DeclaredTeam, grant: DeclaredTeam, cluster: DeclaredCluster) -> Problems:
    where = f"stack {cluster.platform}"
    if team.node_pool is not UNKNOWN and dict(team.node_pool) != dict(grant.node_pool):
        pool = labels(grant.node_pool)
        yield of_team(team, "nodePool").mandatory(
            f"has nodes {labels(team.node_pool)}, but {where} grants {pool}; write {pool}, or"
            " have the grant changed"
        )
    bounded = None not in (team.gpus, grant.gpus) and team.gpus is not UNKNOWN
    # Each kind of its own: a slice is no whole GPU, whatever KAI counts it as.
    for kind, own in team.kinds.items() if bounded else ():
        most = grant.kinds.get(kind, 0)
        if own > most:
            what = "GPUs" if kind == team.inside.gpu_resource else kind
            yield ProblemPlace(f"team {called(team.name)}", team.gpus_path).mandatory(
                f"has {own} {what}, but {where} grants {most}; write {most} or less,"
                " or have the grant raised"
            )
    if team.mode == "host":
        yield from _queue(team, grant, cluster)


def _queue(team: DeclaredTeam, grant: DeclaredTeam, cluster: DeclaredCluster) -> Problems:
    mode, where = of_team(team, "scheduler", "mode"), f"stack {cluster.platform}"
    if not cluster.kai:
        yield mode.mandatory(
            f"has mode host, but {where} runs no KAI on the host; write virtual or default"
        )
    elif grant.parent_queue is None:
        yield mode.mandatory(
            f"has mode host, but {where} grants the team no queue; have parentQueue: added to its"
            " grant, or write mode default"
        )
    elif team.queue is not None and team.queue != grant.parent_queue:
        yield of_team(team, "queue").mandatory(
            f"has queue {called(team.queue)}, but {where} grants {grant.parent_queue}; write queue:"
            f" {grant.parent_queue}, or queues: {{…}} below it"
        )


def _written(team: DeclaredTeam) -> str:
    parts = []
    if team.node_pool is not UNKNOWN and team.node_pool:
        parts.append(f"nodePool: {labels(team.node_pool)}")
    if team.gpus is not None and team.gpus is not UNKNOWN:
        parts.append(f"gpus: {_written_gpus(team)}")
    if team.mode == "host":
        parts.append("parentQueue: …")
    return f"{{{', '.join(parts)}}}"


def _written_gpus(team: DeclaredTeam) -> str:
    """A team's GPUs as a stack file writes them: `8`, or `{nvidia.com/mig-1g.10gb: 14}`."""
    if not team.slices:
        return f"{team.gpus:g}"
    return "{" + ", ".join(f"{kind}: {count}" for kind, count in team.kinds.items()) + "}"
