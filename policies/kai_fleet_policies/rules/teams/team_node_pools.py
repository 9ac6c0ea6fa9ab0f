"""Teams with a KAI of their own have nodes of their own."""

from collections import Counter
from collections.abc import Iterator, Mapping

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.values import UNKNOWN, pairs
from kai_fleet_policies.problem import Level, Problems, Severity, called, of_team
from kai_fleet_policies.rules.teams import claims, labels

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "A KAI inside a vCluster sees all GPUs of the nodes synced to it and none of the other teams'"
    " pods: two of them on one node hand out the same GPU twice (V1)."
)
REMEDY = (
    "Give such teams node pools that share a label key and differ in its value. A team that the"
    " host schedules needs one too, or gpus: 0."
)


def check(cluster: DeclaredCluster) -> Problems:
    """Each pair of teams of which one has its own KAI; each team is reported once.

    A team that has, or may have, a stack of its own counts as one that does.
    """
    teams = [t for t in claims(cluster) if t.mode == "virtual" or t.gpus != 0]
    waiting = [t for t in teams if _unclear(t)]
    known = [t for t in teams if not _unclear(t)]
    if len(teams) > 1 and any(t.mode in ("virtual", UNKNOWN) for t in teams):
        for team in waiting:
            yield of_team(team, "nodePool").undecided("its node pool and scheduler mode are known")
    for team, other in _overlaps(known):
        yield of_team(team, "nodePool").mandatory(_message(team, other))


def _unclear(team: DeclaredTeam) -> bool:
    pool = team.node_pool
    return team.mode is UNKNOWN or pool is UNKNOWN or UNKNOWN in pool.values()


def _overlaps(teams: list[DeclaredTeam]) -> Iterator[tuple[DeclaredTeam, DeclaredTeam]]:
    """The first earlier team on whose nodes each team may sit, with one of the two in virtual mode.

    Teams are grouped by their value for the most common label key, as teams with different values
    there are disjoint, so that a hundred well-kept teams take a hundred steps.
    """
    key = _commonest_key(teams)
    groups: dict[str | None, list[DeclaredTeam]] = {}
    for team in teams:
        value = pairs(team.node_pool).get(key)
        candidates = (
            groups.get(value, []) + groups.get(None, [])
            if value is not None
            else [other for group in groups.values() for other in group]
        )
        for other in candidates:
            if team.name == other.name:
                continue  # team-unique says it
            if "virtual" in (team.mode, other.mode) and not _disjoint(
                pairs(team.node_pool), pairs(other.node_pool)
            ):
                yield team, other
                break
        groups.setdefault(value, []).append(team)


def _commonest_key(teams: list[DeclaredTeam]) -> str:
    counts = Counter(key for team in teams for key in pairs(team.node_pool))
    return min(counts, key=lambda key: (-counts[key], key), default="")


def _disjoint(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return any(key in other and other[key] != value for key, value in one.items())


def _message(team: DeclaredTeam, other: DeclaredTeam) -> str:
    mine, theirs = pairs(team.node_pool), pairs(other.node_pool)
    key = next(iter(theirs or mine), "kai-fleet/pool")
    if mine:
        nodes = f"has the node pool {labels(mine)}"
    else:
        nodes = "has no node pool, so it uses every node"
    others = (
        f"that of team {called(other.name)} ({labels(theirs)})"
        if theirs
        else (f"team {called(other.name)}, which has no node pool")
    )
    own = [called(t.name) for t in (team, other) if t.mode == "virtual"]
    other_value = called(theirs.get(key, other.name))
    if other_value == called(team.name):
        other_value = called(other.name)
    message = (
        f"{nodes} and may share nodes with {others}: the KAI inside {' and '.join(own)} would hand"
        f" out GPUs that are taken; write different values of one label, for example"
        f" {{{key}: {called(team.name)}}} and {{{key}: {other_value}}}"
    )
    free = [called(t.name) for t in (team, other) if t.mode != "virtual"]
    return message + (f", or gpus: 0 for {free[0]}" if free else "")
