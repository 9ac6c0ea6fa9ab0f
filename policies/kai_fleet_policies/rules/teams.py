"""Rules about teams: nodes of their own, one KAI for each GPU, and isolation that is on."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kai_fleet.releases import queue_bounds
from kai_fleet.values import UNKNOWN, at, get, pairs, value_at
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.model.cluster import Cluster, Team
from kai_fleet_policies.model.queues import UNLIMITED, DeclaredQueue, written
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    advisory,
    called,
    each_claim,
    each_queue,
    each_vcluster,
    known,
    mandatory,
    of_kai,
    of_team,
    row,
)


def _pool(labels: Mapping[str, str]) -> str:
    """A node pool as a stack file writes it: `node pool {kai-fleet/pool: vision}`."""
    written = ", ".join(f"{key}: {value}" for key, value in sorted(labels.items()))
    return f"node pool {{{written}}}" if labels else "no node pool"


@mandatory("team-node-pools", "critical")
def team_node_pools(cluster: Cluster) -> Findings:
    """Teams with a KAI of their own have nodes of their own.

    A KAI inside a vCluster sees all GPUs of the nodes synced to it and none of the other teams'
    pods: two of them on one node hand out the same GPU twice.
    """
    every = [(t, place) for t, place in each_claim(cluster) if t.mode == "virtual" or t.gpus != 0]
    own_kai = any(team.mode in ("virtual", UNKNOWN) for team, _ in every)
    before: list[Team] = []
    for team, place in every:
        place = place.at("nodePool")
        if UNKNOWN in (team.mode, team.node_pool, *pairs(team.node_pool).values()):
            if own_kai and len(every) > 1:
                yield place.undecided("its node pool and scheduler mode are known")
            continue
        mine = team.node_pool.items()
        for other in before:
            apart = any(other.node_pool.get(key, value) != value for key, value in mine)
            # One of them hands out its GPUs by itself; team-unique reports two of one name.
            if not apart and "virtual" in (team.mode, other.mode) and team.name != other.name:
                both = (team, other)
                values = {
                    "pool": _pool(team.node_pool),
                    "other_pool": _pool(other.node_pool),
                    "name": called(team.name),
                    "other": called(other.name),
                    "own": " and ".join(called(t.name) for t in both if t.mode == "virtual"),
                    "free": "".join(
                        f", or gpus: 0 for {t.name}" for t in both if t.mode != "virtual"
                    ),
                }
                yield place.refuse(*row("team-shares-nodes", **values))
                break
        before.append(team)


@mandatory("team-one-mode", "critical", each_claim)
def team_one_mode(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A host has one KAI for all its teams, or teams with a KAI each, never both.

    Each start of a host's KAI deletes the running GPU-share pods of every KAI inside a vCluster
    of that host, and its admission breaks their new ones.
    """
    on_host = [f"KAI {called(kai.version or '(no version)')} on the host" for kai in cluster.kai]
    on_host += [f"the host mode of {called(t.name)}" for t in cluster.teams if t.mode == "host"]
    if team.mode == "virtual" and on_host:
        place = place.at("scheduler", "mode")
        yield place.refuse(*row("team-beside-host-kai", others=listed(on_host, "and")))
    elif on_host or any(each.mode == "virtual" for each in cluster.teams):
        known(team.mode, "its scheduler mode is known")


@mandatory("team-unique", "critical", each_claim)
def team_unique(cluster: Cluster, team: Team, place: Place) -> Findings:
    """vCluster names are unique on a host.

    vCluster tells its pods from the others' by its name alone, in all namespaces: two of one
    name count each other's pods as their own.
    """
    name = known(team.name, "its name is known")
    first = next(each for each, _ in each_claim(cluster) if each.name == name)
    if first is not team:
        own, other = (called(each.namespace or "default") for each in (team, first))
        place = replace(place, kind="vCluster", name=f"{name} in {cluster.name}")
        yield place.refuse(*row("team-twice", name=name, own=own, other=other))


def _granted(cluster: Cluster) -> Iterable[tuple[Team | DeclaredQueue, Place]]:
    """On a platform the teams that it grants a queue; in a team's own stack the team's queues."""
    for grant in () if cluster.platform else cluster.grants:
        if grant.parent_queue is not None:
            yield grant, of_team(grant, "parentQueue")
    for team in cluster.teams if cluster.platform else ():
        for queue in cluster.queues:
            if queue.path.startswith(f"{team.path}.queues."):
                yield queue, Place("queue", queue.name, queue.path)


@mandatory("team-parent-queue", "high", _granted)
def team_parent_queue(cluster: Cluster, item: Team | DeclaredQueue, place: Place) -> Findings:
    """The queue that a team stack is granted is its own, and its queues carry its name.

    Queues are cluster-wide, and no stack sees another's: two teams below one queue take each
    other's share, two queues of one name overwrite each other.
    """
    if isinstance(item, DeclaredQueue):
        (team,) = cluster.teams
        if not f"{item.name}-".startswith(f"{team.name}-"):
            yield place.refuse(*row("team-queue-name", team=team.name, name=item.name))
        shown = known(get(item.spec, "displayName"), "its displayName is known")
        if shown is not None and not queue_bounds.is_display_name_of(team.name, shown):
            values = {"team": team.name, "name": shown}
            yield place.at("displayName").refuse(*row("team-queue-display", **values))
        return
    tree, queue = cluster.tree, str(item.parent_queue)
    taken = {team.queue: f"team {called(team.name)}" for team in cluster.teams}
    for grant in cluster.grants:
        if grant is item:
            break
        taken.setdefault(grant.parent_queue, f"the team stack of {grant.name}")
    causes = {
        "which is no queue of kai-fleet:queues": queue not in tree.by_name,
        f"which {taken.get(queue)} has": queue in taken,
        "which has queues of the platform below it": not tree.is_leaf(queue),
    }
    if cause := next((cause for cause, wrong in causes.items() if wrong), None):
        choice = listed(nearest_first(queue, [name for name in tree.leaves if name not in taken]))
        fix = f"write {choice}" if choice else "add a queue for the team to kai-fleet:queues"
        yield place.refuse(f"is {queue}, {cause}", fix)


@mandatory("team-queue-limit", "critical", each_queue)
def team_queue_limit(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """In host mode the queue of a team holds no more GPUs than the team may have.

    The host's KAI reserves shared GPUs in its own namespace, so that the team's quota counts no
    fraction: only the limit of its queue does.
    """
    grants = () if cluster.platform else cluster.grants
    owners = [team for team in cluster.teams if (team.mode, team.queue) == ("host", queue.name)]
    owners += [grant for grant in grants if grant.parent_queue == queue.name]
    counts = [team.gpus for team in owners if isinstance(team.gpus, float | int)]
    share = None if queue.shares is UNKNOWN else queue.shares.get("gpu")
    if not counts or share is None:
        return
    most = sum(counts)  # teams that share one have its limit together
    for word, value in (("quota", share.quota), ("limit", share.limit)):
        if isinstance(value, float | int) and (value == UNLIMITED or value > most):
            has = {"key": word, "has": written("gpu", value, ""), "most": most}
            yield place.at("gpu", word).refuse(*row("team-queue-limit", **has))


@advisory("team-isolation", "critical", each_claim)
def team_isolation(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Isolation that is off is a warning, and refused for a team with a stack of its own.

    Without it, whoever holds the kubeconfig of the team's vCluster is root on its nodes with
    one pod, and sees every GPU there. The account of a team's own stack makes pods on the host
    itself, and no cluster role, which the vCluster's chart would bring then.
    """
    if team.level != "off":
        return
    if team in cluster.grants:
        key = at(team.path, "isolation")
        yield place.at("isolation", "level").refuse(*row("team-stack-not-isolated", key=key))
    else:
        path = team.written_at("isolation", "level")
        yield replace(place, path=path).warn(*row("team-not-isolated"))


@advisory("team-mode", "high", each_vcluster)
def team_mode(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Keys whose promise the team's mode can keep.

    In mode virtual a pod comes to the host with its node chosen: no autoscaler sees one that waits,
    nor the pods by which KAI asks for nodes.
    """
    if team.mode == "virtual" and team.autoscaled:
        yield of_team(team, "autoscaled").warn(*row("team-not-scaled"))
    for kai in team.kai:
        if value_at(kai.values, "global.clusterAutoscaling") is True:
            key = of_kai(kai, team.inside, "values", "global", "clusterAutoscaling")
            yield key.warn(*row("team-not-scaled"))


@advisory("team-gang", "low", each_vcluster)
def team_gang(cluster: Cluster, team: Team, place: Place) -> Findings:
    """What host mode costs: pods of one job are no longer started together.

    The host sees a team's pods but not the Jobs that own them, so each pod is a group of its
    own.
    """
    if team.mode == "host":
        yield of_team(team, "scheduler", "mode").warn(*row("team-gang"))


@advisory("vcluster-node-pool", "medium", each_vcluster)
def vcluster_node_pool(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A control plane is on no other team's nodes.

    Pods of the team whose nodes these are can fill them, and another team's API server with its
    Secrets runs beside them.
    """
    pool = team.control_pool
    others = [(each, pairs(each.node_pool)) for each, _ in each_claim(cluster)]
    owners = (each for each, own in others if own and own.items() <= pool.items())
    owner = next((each for each in owners if each.name != team.name), None)
    if owner is not None and pool != team.node_pool:
        values = {"pool": _pool(pool), "owner": called(owner.name)}
        yield place.at("nodePool").warn(*row("vcluster-node-pool", **values))
