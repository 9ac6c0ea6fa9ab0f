"""The queue that a team stack is granted is its own, and its queues carry its name."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity, called, of_team

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "Queues are cluster-wide, and no stack sees another's: two teams below one queue take each"
    " other's share, two queues of one name overwrite each other (Q5)."
)
REMEDY = (
    "Grant each team stack a leaf of kai-fleet:queues that nobody else has; name a team's queues"
    " after the team."
)


def check(cluster: DeclaredCluster) -> Problems:
    """Each grant's queue on the platform's side, and the queues' names on the team's."""
    if cluster.platform:
        yield from _names(cluster)
        return
    taken = {
        team.queue: f"team {called(team.name)}"
        for team in cluster.teams
        if isinstance(team.queue, str)
    }
    for grant in cluster.grants:
        if grant.parent_queue is None:
            continue
        message = _wrong(grant.parent_queue, taken, cluster)
        if message is not None:
            yield of_team(grant, "parentQueue").mandatory(f"is {grant.parent_queue}, {message}")
        taken.setdefault(grant.parent_queue, f"the team stack of {grant.name}")


def _wrong(queue: str, taken: dict[str, str], cluster: DeclaredCluster) -> str | None:
    tree = cluster.tree
    free = [name for name in tree.by_name if tree.is_leaf(name) and name not in taken]
    choice = listed(nearest_first(queue, free))
    write = f"write {choice}" if choice else "add a queue for the team to kai-fleet:queues"
    if not cluster.kai:
        return "but there is no KAI on this host; drop parentQueue"
    if queue not in tree.by_name:
        return f"which is no queue of kai-fleet:queues; {write}"
    if queue in taken:
        return f"which {taken[queue]} has; {write}"
    if not tree.is_leaf(queue):
        return f"which has queues of the platform below it; {write}"
    return None


def _names(cluster: DeclaredCluster) -> Problems:
    own = next((t for t in cluster.teams if t.own_stack), None)
    if own is None or own.mode != "host" or not isinstance(own.name, str):
        return
    names = [*(grant.name for grant in cluster.grants), own.name]
    within = {it.name for it in cluster.tree.queues if it.path.startswith(f"{own.path}.")}
    for queue in cluster.tree.queues:
        name = queue.name
        if not queue.path.startswith(f"{own.path}.") or not isinstance(name, str):
            continue
        # The team to which the name belongs is the longest that it begins with.
        owners = [it for it in names if name == it or name.startswith(f"{it}-")]
        if max(owners, key=len, default=None) != own.name:
            yield ProblemPlace(f"queue {name}", queue.path).mandatory(
                f"does not carry the team's name, so that another team's stack may use it too;"
                f" write {own.name}-{name}"
            )
        # The host's policy refuses a new one: it cannot see rings but by names.
        elif (above := queue.parent) in within and len(name) <= len(str(above)):
            rest = name.removeprefix(f"{own.name}-")
            yield ProblemPlace(f"queue {name}", queue.path).advisory(
                f"is below {above}, whose name is not shorter than its own; where it is new, the"
                f" host refuses it, for a ring of queues stops its KAI: write {above}-{rest}"
            )
