"""Rules about teams: nodes of their own, one KAI for each GPU, and isolation that is on."""

from collections.abc import Mapping
from dataclasses import replace

from kai_fleet.values import UNKNOWN, at, pairs
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.model.cluster import Cluster, Team
from kai_fleet_policies.model.queues import UNLIMITED, DeclaredQueue
from kai_fleet_policies.rules.places import (
    QUEUES,
    TEAMS,
    Place,
    called,
    claims,
    of_team,
    of_vcluster,
)
from kai_fleet_policies.rules.rule import Findings, advisory, known, mandatory


def labels(pool: Mapping[str, str]) -> str:
    """A node pool as a stack file writes it: `{kai-fleet/pool: vision}`."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in sorted(pool.items())) + "}"


@mandatory("team-node-pools", "critical")
def team_node_pools(cluster: Cluster) -> Findings:
    """Teams with a KAI of their own have nodes of their own.

    A KAI inside a vCluster sees all GPUs of the nodes synced to it and none of the other teams'
    pods: two of them on one node hand out the same GPU twice.
    """
    every = [(t, place) for t, place in claims(cluster) if t.mode == "virtual" or t.gpus != 0]
    own_kai = any(team.mode in ("virtual", UNKNOWN) for team, _ in every)
    before: list[Team] = []
    for team, place in every:
        place = place.at("nodePool")
        if UNKNOWN in (team.mode, team.node_pool, *pairs(team.node_pool).values()):
            if own_kai and len(every) > 1:
                yield place.undecided("its node pool and scheduler mode are known")
            continue
        for other in before:
            # team-unique reports two of one name
            if team.name != other.name and _may_share(team, other):
                yield place.refuse(*_shared(team, other))
                break
        before.append(team)


def _may_share(team: Team, other: Team) -> bool:
    """Whether both may have pods on one node, and one of them hands out its GPUs by itself."""
    theirs = other.node_pool
    apart = any(theirs.get(key, value) != value for key, value in team.node_pool.items())
    return "virtual" in (team.mode, other.mode) and not apart


def _shared(team: Team, other: Team) -> tuple[str, str]:
    mine, theirs = team.node_pool, other.node_pool
    name, others = called(team.name), called(other.name)
    modes = ((name, team.mode), (others, other.mode))
    own = " and ".join(each for each, mode in modes if mode == "virtual")
    free = "".join(f", or gpus: 0 for {each}" for each, mode in modes if mode != "virtual")
    key = next(iter(theirs or mine), "kai-fleet/pool")
    value = theirs.get(key, others)
    return (
        (f"has the node pool {labels(mine)}" if mine else "has no node pool, so it uses every node")
        + f" and may share nodes with {'that of ' if theirs else ''}team {others}"
        + (f" ({labels(theirs)})" if theirs else ", which has no node pool")
        + f": the KAI inside {own} would hand out GPUs that are taken",
        "write different values of one label, for example"
        f" {{{key}: {name}}} and {{{key}: {others if value == name else value}}}{free}",
    )


@mandatory("team-one-mode", "critical", claims)
def team_one_mode(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A host has one KAI for all its teams, or teams with a KAI each, never both.

    Each start of a host's KAI deletes the running GPU-share pods of every KAI inside a vCluster
    of that host, and its admission breaks their new ones.
    """
    on_host = [f"KAI {called(kai.version or '(no version)')} on the host" for kai in cluster.kai]
    if team in cluster.grants:
        # What a team stack runs is not known here.
        if on_host and team.parent_queue is None:
            yield place.warn(
                f"may have a stack of its own, which is not seen here, beside {on_host[0]}: if it"
                " runs in mode virtual, that KAI deletes its running pods",
                "write parentQueue: for mode host, or make sure that it is in mode default",
            )
        return
    in_host_mode = [called(each.name) for each in cluster.teams if each.mode == "host"]
    if in_host_mode:
        on_host.append(f"the host mode of {listed(in_host_mode)}")
    if team.mode == "virtual" and on_host:
        yield place.at("scheduler", "mode").refuse(
            f"runs a KAI of its own beside {listed(on_host, 'and')}: each start of the host's KAI"
            " would delete this team's running pods",
            "write mode host (or default) here, or take KAI off the host and give every team mode"
            " virtual",
        )
    elif on_host or any(each.mode == "virtual" for each in cluster.teams):
        known(team.mode, "its scheduler mode is known")


@mandatory("team-unique", "critical", claims)
def team_unique(cluster: Cluster, team: Team, place: Place) -> Findings:
    """vCluster names are unique on a host.

    vCluster tells its pods from the others' by its name alone, in all namespaces: two of one
    name count each other's pods as their own.
    """
    name = known(team.name, "its name is known")
    first = next(each for each, _ in claims(cluster) if each.name == name)
    if first is not team and team in cluster.grants:
        yield place.refuse(
            "is granted to a team stack and is a team of this stack too",
            "drop one of the two (to give a running team its own stack, remove it first:"
            " docs/team-stacks.md)",
        )
    elif first is not team:
        own, other = (called(each.namespace or "default") for each in (team, first))
        yield replace(place, kind="vCluster", name=f"{name} in {cluster.name}").refuse(
            f"is declared in namespace {own} and again in {other}: names are unique on a host",
            f"write another name, for example {name}-2",
        )


@mandatory("team-parent-queue", "high")
def team_parent_queue(cluster: Cluster) -> Findings:
    """The queue that a team stack is granted is its own, and its queues carry its name.

    Queues are cluster-wide, and no stack sees another's: two teams below one queue take each
    other's share, two queues of one name overwrite each other.
    """
    if cluster.platform:
        yield from _names(cluster)
        return
    tree = cluster.tree
    taken = {team.queue: f"team {called(team.name)}" for team in cluster.teams}
    for grant in cluster.grants:
        if (queue := grant.parent_queue) is None:
            continue
        free = [name for name in tree.by_name if tree.is_leaf(name) and name not in taken]
        choice = listed(nearest_first(queue, free))
        fix = f"write {choice}" if choice else "add a queue for the team to kai-fleet:queues"
        place, cause = of_team(grant, "parentQueue"), ""
        if not cluster.kai:
            cause, fix = "but there is no KAI on this host", "drop parentQueue"
        elif queue not in tree.by_name:
            cause = "which is no queue of kai-fleet:queues"
        elif queue in taken:
            cause = f"which {taken[queue]} has"
        elif not tree.is_leaf(queue):
            cause = "which has queues of the platform below it"
        if cause:
            yield place.refuse(f"is {queue}, {cause}", fix)
        taken.setdefault(queue, f"the team stack of {grant.name}")


def _names(cluster: Cluster) -> Findings:
    """The queues of a team's own stack, which the host's policies know by their names."""
    (team,) = cluster.teams
    own = [queue for queue in cluster.queues if queue.path.startswith(f"{team.path}.queues.")]
    for queue in own:
        # The team to which the name belongs is the longest that it begins with.
        names = (f"{grant.name}-" for grant in (team, *cluster.grants))
        owners = [name for name in names if f"{queue.name}-".startswith(name)]
        if max(owners, key=len, default="") != f"{team.name}-":
            yield Place("queue", queue.name, queue.path).refuse(
                "does not carry the team's name, so that another team's stack may use it too",
                f"write {team.name}-{queue.name}",
            )
        # The host's policy refuses a new one: it cannot see rings but by names.
        elif queue.parent in {each.name for each in own} and len(queue.name) <= len(queue.parent):
            yield Place("queue", queue.name, queue.path).warn(
                f"is below {queue.parent}, whose name is not shorter than its own; where it is new,"
                " the host refuses it, for a ring of queues stops its KAI",
                f"write {queue.parent}-{queue.name.removeprefix(f'{team.name}-')}",
            )


@mandatory("team-queue-limit", "critical", QUEUES)
def team_queue_limit(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """In host mode the queue of a team holds no more GPUs than the team may have.

    The host's KAI reserves shared GPUs in its own namespace, so that the team's quota counts no
    fraction: only the limit of its queue does.
    """
    grants = () if cluster.platform else cluster.grants
    gpus = [team.gpus for team in cluster.teams if team.mode == "host" and team.queue == queue.name]
    gpus += [grant.gpus for grant in grants if grant.parent_queue == queue.name]
    counts = [count for count in gpus if isinstance(count, float | int)]
    share = None if queue.shares is UNKNOWN else queue.shares.get("gpu")
    if not counts or share is None:
        return
    most = sum(counts)  # teams that share one have its limit together
    for word, value in (("quota", share.quota), ("limit", share.limit)):
        if isinstance(value, float | int) and (value == UNLIMITED or value > most):
            has = "unlimited" if value == UNLIMITED else f"{value:g}"
            yield place.at("gpu", word).refuse(
                f"has gpu {word} {has}, and the teams whose queue it is have {most:g} GPUs:"
                " fractions would pass that",
                f"write {most:g} or less, or raise their gpus",
            )


@advisory("team-isolation", "critical", claims)
def team_isolation(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Isolation that is off is a warning, and refused for a team with a stack of its own.

    Without it, whoever holds the kubeconfig of the team's vCluster is root on its nodes with
    one pod, and sees every GPU there. The account of a team's own stack makes pods on the host
    itself, and no cluster role, which the vCluster's chart would bring then.
    """
    if team.level != "off":
        return
    if team in cluster.grants:
        yield place.at("isolation", "level").refuse(
            "is off, and the team has a stack of its own: its account could not install the"
            " vCluster, whose chart brings a cluster role then, and with one pod it would be root"
            " on the nodes",
            f"write {at(team.path, 'isolation')}: {{level: baseline}}, or run the team in this"
            f" stack, under kai-fleet:teams.{team.name}",
        )
    else:
        yield Place("team", called(team.name), team.written_at("isolation", "level")).warn(
            "is off: nothing on the host but a quota of GPUs keeps the team from the nodes, the"
            " GPUs and the pods of others",
            "write baseline",
        )


@advisory("team-gang", "low", TEAMS)
def team_gang(cluster: Cluster, team: Team, place: Place) -> Findings:
    """What host mode costs: pods of one job are no longer started together.

    The host sees a team's pods but not the Jobs that own them, so each pod is a group of its
    own.
    """
    if team.mode == "host":
        yield place.at("scheduler", "mode").warn(
            "is in host mode, where KAI schedules the pods of a job one by one, not as a gang",
            "write mode virtual if its training jobs need all their pods at once",
        )


@advisory("vcluster-node-pool", "medium", TEAMS)
def vcluster_node_pool(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A control plane is on no other team's nodes.

    Pods of the team whose nodes these are can fill them, and another team's API server with its
    Secrets runs beside them.
    """
    pool = team.control_pool
    if pool == team.node_pool:
        return
    for other, _ in claims(cluster):
        own = pairs(other.node_pool)
        if own and other.name != team.name and own.items() <= pool.items():
            yield of_vcluster(team, "nodePool").warn(
                f"would run on {labels(pool)}, the nodes of team {called(other.name)}",
                "write the labels of nodes of no team, or drop the key: then the team's own nodes"
                " run it",
            )
            return
