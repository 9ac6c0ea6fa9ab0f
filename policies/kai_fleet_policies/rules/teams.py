"""Rules about teams: nodes of their own, one KAI for each GPU, and isolation that is on."""

from collections.abc import Mapping
from dataclasses import replace

from kai_fleet.releases import queue_bounds
from kai_fleet.values import UNKNOWN, at, get, pairs, value_at
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.model.queues import DeclaredQueue, as_written
from kai_fleet_policies.rules.rule import (
    Findings,
    Judged,
    Subject,
    advisory,
    each_claim,
    each_queue,
    each_vcluster,
    kai_subject,
    mandatory,
    name_in_words,
    require_known,
    team_subject,
)


def _pool_text(labels: Mapping[str, object]) -> str:
    """A node pool as a stack file writes it: `node pool {kai-fleet/pool: vision}`."""
    if not labels:
        return "no node pool"
    pool = ", ".join(f"{key}: {value}" for key, value in sorted(labels.items()))
    return f"node pool {{{pool}}}"


def _may_hold_gpus(team: TeamModel) -> bool:
    """Whether a team has a KAI inside, or not a quota that is known to be 0.

    It may without a quota, and with an UNKNOWN one.
    """
    return team.mode == "virtual" or team.gpus != 0


def _claims_of_nodes(cluster: ClusterModel) -> Judged[TeamModel]:
    """The teams that may hold GPUs, and the keys of their nodes."""
    for team, subject in each_claim(cluster):
        if _may_hold_gpus(team):
            yield team, subject.at("nodePool")


@mandatory("team-node-pools", "critical", _claims_of_nodes)
def team_node_pools(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """Teams with a KAI of their own have nodes of their own.

    A KAI inside a vCluster sees all GPUs of the nodes synced to it and none of the other teams'
    pods: two of them on one node hand out the same GPU twice.
    """
    # Two teams are found at the later one; a team with an UNKNOWN mode or label is undecided.
    claims = list(filter(_may_hold_gpus, cluster.claims))
    may_have_kai_inside = any(claim.mode in ("virtual", UNKNOWN) for claim in claims)
    if not may_have_kai_inside or len(claims) == 1:
        return
    if _is_unknown(team):
        yield subject.undecided("its node pool and scheduler mode are known")
        return
    for other in claims:
        if other is team:
            return
        if not _is_unknown(other) and _may_share_gpus(team, other):
            yield subject.refuse(*_shared_nodes(team, other))
            return  # the first one is enough for a finding


def _is_unknown(team: TeamModel) -> bool:
    """Whether the mode of a team or a label of its nodes is not known."""
    return UNKNOWN in (team.mode, team.node_pool, *pairs(team.node_pool).values())


def _may_share_gpus(team: TeamModel, other: TeamModel) -> bool:
    """Whether a node may be in the pools of two teams of which one or both have a KAI inside.

    Modes and labels have to be known, as `_is_unknown` tells: an UNKNOWN pool would count as all
    nodes, as one without labels does. Two teams of one name are no pair: team-unique reports them.
    """
    if team.name == other.name or "virtual" not in (team.mode, other.mode):
        return False
    pool = pairs(team.node_pool)
    other_pool = pairs(other.node_pool)
    return all(other_pool.get(key, value) == value for key, value in pool.items())


def _shared_nodes(team: TeamModel, other: TeamModel) -> tuple[str, str]:
    """Cause and fix where two teams may share nodes, for a finding about `team`.

    One of them or both have a KAI inside; the fix offers `gpus: 0` for one that has none.
    """
    with_kai_inside = list[str]()
    without_gpus = list[str]()
    for each in (team, other):
        name = name_in_words(each.name)
        if each.mode == "virtual":
            with_kai_inside.append(name)
        else:
            without_gpus.append(f", or gpus: 0 for {name}")
    name = name_in_words(team.name)
    other_name = name_in_words(other.name)
    return (
        f"has {_pool_text(pairs(team.node_pool))} and may share nodes with team {other_name},"
        f" which has {_pool_text(pairs(other.node_pool))}: the KAI inside"
        f" {' and '.join(with_kai_inside)} would hand out GPUs that are taken",
        f"write different values of one label, for example {{kai-fleet/pool: {name}}}"
        f" and {{kai-fleet/pool: {other_name}}}{''.join(without_gpus)}",
    )


@mandatory("team-one-mode", "critical", each_claim)
def team_one_mode(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """A host has one KAI for all its teams, or teams with a KAI each, never both.

    Each start of a host's KAI deletes the running GPU-share pods of every KAI inside a vCluster
    of that host, and its admission breaks their new ones.
    """
    # An UNKNOWN mode is undecided only if the host has a KAI, or a team has mode host or virtual. A
    # grant's mode is judged, but is no reason against that of others.
    on_host = [
        f"KAI {name_in_words(kai.version or '(no version)')} on the host" for kai in cluster.kai
    ]
    on_host += [
        f"the host mode of {name_in_words(t.name)}" for t in cluster.teams if t.mode == "host"
    ]
    if team.mode == "virtual" and on_host:
        yield subject.at("scheduler", "mode").refuse(
            f"runs a KAI of its own beside {listed(on_host, 'and')}: each start of the host's KAI"
            " would delete this team's running pods",
            "write mode host (or default) here, or take KAI off the host and give every team mode"
            " virtual",
        )
    elif on_host or any(other.mode == "virtual" for other in cluster.teams):
        require_known(team.mode, "its scheduler mode is known")


@mandatory("team-unique", "critical", each_claim)
def team_unique(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """vCluster names are unique on a host.

    vCluster tells its pods from the others' by its name alone, in all namespaces: two of one
    name count each other's pods as their own.
    """
    name = require_known(team.name, "its name is known")
    # Grants come after teams. Each later claim of a name is found, beside the first one.
    first = next(claim for claim in cluster.claims if claim.name == name)
    if first is team:
        return
    vcluster = replace(subject, kind="vCluster", name=f"{name} in {cluster.name}")
    namespace = name_in_words(team.namespace or "default")
    other_namespace = name_in_words(first.namespace or "default")
    yield vcluster.refuse(
        f"is declared in namespace {namespace} and again in {other_namespace}: names are unique on"
        " a host",
        f"write another name, for example {name}-2, or drop one of the two",
    )


def _grants_and_queues_below(
    cluster: ClusterModel,
) -> Judged[TeamModel | DeclaredQueue]:
    """On a platform the teams that it grants a queue; in a team's own stack the team's queues.

    The latter without those of the platform above them.
    """
    if not cluster.platform_stack:
        for grant in cluster.grants:
            if grant.queue is not None:
                yield grant, team_subject(grant).at("parentQueue")
        return
    for team in cluster.teams:
        for queue in cluster.queues:
            if queue.path.startswith(f"{team.path}.queues."):
                yield queue, Subject("queue", name_in_words(queue.name), queue.path)


@mandatory("team-parent-queue", "high", _grants_and_queues_below)
def team_parent_queue(
    cluster: ClusterModel, claim: TeamModel | DeclaredQueue, subject: Subject
) -> Findings:
    """The queue that a team stack is granted is its own, and its queues carry its name.

    Queues are cluster-wide, and no stack sees another's: two teams below one queue take each
    other's share, two queues of one name overwrite each other.
    """
    if isinstance(claim, DeclaredQueue):
        (team,) = cluster.teams
        yield from _foreign_names(claim, team, subject)
    else:
        yield from _wrong_grant(cluster, claim, subject)


def _foreign_names(queue: DeclaredQueue, team: TeamModel, subject: Subject) -> Findings:
    """What is wrong with the name, and then with the displayName, of a team's queue.

    The name is the team's, or begins with it and `-`. A displayName may be absent. Raises
    UnknownValueError if it is not known.
    """
    if not f"{queue.name}-".startswith(f"{team.name}-"):
        yield subject.refuse(
            "does not carry the team's name, so that another team's stack may use it too",
            f"write {team.name}-{queue.name}",
        )
    display_name = require_known(get(queue.spec, "displayName"), "its displayName is known")
    name = str(team.name)
    if display_name is None or queue_bounds.is_display_name_of(name, display_name):
        return
    yield subject.at("displayName").refuse(
        f"has displayName {display_name}, by which it may be taken for a queue of another team",
        f"begin it with {name}, or drop it",
    )


def _wrong_grant(cluster: ClusterModel, grant: TeamModel, subject: Subject) -> Findings:
    """What is wrong with the queue that a team with a stack of its own is granted.

    The first of these: it is not declared, somebody else has it, it is no leaf. `queue` of the
    grant must not be None.
    """
    tree = cluster.tree
    queue = str(grant.queue)
    owners = _owners_of_queues(cluster, grant)
    if queue not in tree.by_name:
        reason = "which is no queue of kai-fleet:queues"
    elif queue in owners:
        reason = f"which {owners[queue]} has"
    elif not tree.is_leaf(queue):
        reason = "which has queues of the platform below it"
    else:
        return
    free = [name for name in tree.leaves if name not in owners]
    choice = listed(nearest_first(queue, free))
    fix = f"write {choice}" if choice else "add a queue for the team to kai-fleet:queues"
    yield subject.refuse(f"is {queue}, {reason}", fix)


def _owners_of_queues(cluster: ClusterModel, grant: TeamModel) -> dict[str | None, str]:
    """Who has each queue already: teams of this stack, and grants that are before `grant`.

    Whoever has no queue is at None. A team counts before a grant, the last of several teams, the
    first of several grants.
    """
    owners = {team.queue: f"team {name_in_words(team.name)}" for team in cluster.teams}
    for other in cluster.grants:
        if other is grant:
            break
        owners.setdefault(other.queue, f"the team stack of {other.name}")
    return owners


@mandatory("team-queue-limit", "critical", each_queue)
def team_queue_limit(cluster: ClusterModel, queue: DeclaredQueue, subject: Subject) -> Findings:
    """In host mode the queue of a team holds no more GPUs than the team may have.

    The host's KAI reserves shared GPUs in its own namespace, so that the team's quota counts no
    fraction: only the limit of its queue does.
    """
    owners = [claim for claim in cluster.claims if claim.mode == "host"]
    # Owners without a quota, or with an UNKNOWN one, add nothing; without any other all is fine.
    gpus = [
        owner.gpus
        for owner in owners
        if owner.queue == queue.name and isinstance(owner.gpus, float | int)
    ]
    if not gpus or queue.shares is UNKNOWN or "gpu" not in queue.shares:
        return
    share = queue.shares["gpu"]
    most = sum(gpus)  # teams that share a queue have its limit together
    for key, amount in (("quota", share.quota), ("limit", share.limit)):
        if not isinstance(amount, float | int):
            continue  # not known, or left out: KAI reads such a limit as 0
        if amount > most:  # as UNLIMITED is
            yield subject.at("gpu", key).refuse(
                f"has gpu {key} {as_written('gpu', amount, '')}, and the teams whose queue it is"
                f" have {most:g} GPUs: fractions would pass that",
                f"write {most:g} or less, or raise their gpus",
            )


@advisory("team-isolation", "critical", each_claim)
def team_isolation(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """Isolation that is off is a warning, and refused for a team with a stack of its own.

    Without it, whoever holds the kubeconfig of the team's vCluster is root on its nodes with
    one pod, and sees every GPU there. The account of a team's own stack makes pods on the host
    itself, and may make no cluster role, although the vCluster's chart then has one.
    """
    if team.level != "off":
        return  # also None, as from resources: nothing is known of it
    if team in cluster.grants:
        yield subject.at("isolation", "level").refuse(
            "is off, and the team has a stack of its own, whose account would be root on the nodes"
            " with one pod",
            f"write {at(team.path, 'isolation')}: {{level: baseline}}, or run it in this stack",
        )
        return
    yield replace(subject, path=team.key_path_of("isolation", "level")).warn(
        "is off: nothing on the host but a quota of GPUs keeps the team from the nodes, the GPUs"
        " and the pods of others",
        "write baseline",
    )


@advisory("team-mode", "high", each_vcluster)
def team_mode(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """Autoscaling is switched on only in a mode in which it works.

    In mode virtual a pod reaches the host with its node chosen: an autoscaler there sees no pod
    that waits, and none of the pods by which KAI asks for nodes.
    """
    # A warning for each key. Only what is known counts: an UNKNOWN mode or value is passed over.
    promises: list[Subject] = []
    if team.mode == "virtual" and team.autoscaled:
        promises.append(team_subject(team).at("autoscaled"))
    for kai in team.kai:
        if value_at(kai.values, "global.clusterAutoscaling") is True:
            values = kai_subject(kai, team.inside).at("values", "global", "clusterAutoscaling")
            promises.append(values)
    for promise in promises:
        yield promise.warn(
            "is true, and in mode virtual no autoscaler adds a node for pods that wait: they are"
            " inside the vCluster until its KAI has a node for them",
            "keep as many nodes as the queues are guaranteed, as the least size of the pool, or"
            " write mode host or default, whose pods wait on the host",
        )


@advisory("team-gang", "low", each_vcluster)
def team_gang(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """In host mode the pods of one job are not started together.

    The host sees a team's pods but not the Jobs that own them, so each pod is a group of its
    own.
    """
    if team.mode == "host":
        yield (
            team_subject(team)
            .at("scheduler", "mode")
            .warn(
                "is in host mode, where KAI schedules the pods of a job one by one, not as a gang",
                "write mode virtual if its training jobs need all their pods at once",
            )
        )


@advisory("vcluster-node-pool", "medium", each_vcluster)
def vcluster_node_pool(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """A control plane is on no other team's nodes.

    Pods of the team whose nodes these are can fill them, and another team's API server with its
    Secrets runs beside them.
    """
    pool = team.control_pool
    if pool == team.node_pool:
        return
    # The first owner only. A pool without labels, or that is UNKNOWN, is nobody's own.
    for owner in cluster.claims:
        nodes = pairs(owner.node_pool)
        runs_there = nodes and nodes.items() <= pool.items()
        if not runs_there or owner.name == team.name:
            continue
        yield subject.at("nodePool").warn(
            f"would run on {_pool_text(pool)}, the nodes of team {name_in_words(owner.name)}",
            "write the labels of nodes of no team, or drop the key: then the team's own nodes run"
            " it",
        )
        return
