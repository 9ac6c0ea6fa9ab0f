"""Rules about queues: one tree, in KAI's units, that promises no more than there is."""

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from kai_fleet import releases
from kai_fleet.finding import Level
from kai_fleet.fleet.amounts import exact, written
from kai_fleet.fleet.cluster import Cluster
from kai_fleet.fleet.queues import DeclaredQueue, Resource
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import listed, nearest_first
from kai_fleet_policies.rules.rule import Findings, Place, Severity, known, queues, rule

EXISTING_QUEUES: Final = "existingQueues"
CHART_PARENT: Final = "default-parent-queue"  # which KAI's chart makes from v0.10


@rule("queue-tree", Level.MANDATORY, Severity.HIGH, each=queues)
def queue_tree(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Every queue hangs in one tree: unique names, existing parents, no cycles.

    KAI checks none of this: it drops a queue whose parent is absent, or that is in a cycle,
    with everything below it, and says nothing.

    Remedy: Give every queue a name of its own and an existing parent, or none for a top-level
    queue.
    """
    tree, above = cluster.tree, place.at("parent")
    name = known(queue.name, "the name of the queue is known")
    if queue in tree.twice:
        yield place.refuse(
            "is declared twice: queues are cluster-wide, and the later one overwrites the first",
            f"rename one of the two queues {name}",
        )
    elif ring := tree.rings.get(name):
        yield above.refuse(
            f"is below itself ({' → '.join((*ring, name))})",
            f"leave the parent of {listed(ring)} out, which then is the top of the others",
        )
    parent = known(queue.parent, "the name of its parent is known")
    if parent is None:
        return
    if parent == name:
        yield above.refuse(
            "is its own parent", "leave the parent out for a top-level queue, or name another"
        )
    elif parent not in tree.by_name:
        if tree.unknown_names:
            yield above.undecided("all queue names are known")
        elif _made_elsewhere(parent, cluster):
            yield above.undecided(
                f"it is known that its parent {parent}, which nothing here declares, is in"
                f" {cluster.name}; {EXISTING_QUEUES}: [{parent}] in the pack's configuration of"
                " queue-tree says so"
            )
        else:
            yield above.refuse(
                f"has the parent {parent}, which is not declared in {cluster.name}",
                _instead(parent, [other for other in tree.by_name if other != name], cluster),
            )


def _instead(parent: str, others: list[str], cluster: Cluster) -> str:
    choice = listed(nearest_first(parent, others))
    if cluster.declared or cluster.kai:  # then all its queues are at hand
        declare = f"declare {parent} with no parent of its own"
    else:
        declare = (
            f"list {parent} in {EXISTING_QUEUES} of the pack's configuration of queue-tree if"
            " another program makes it"
        )
    return f"write {choice}, or {declare}" if choice else declare


def _made_elsewhere(parent: str, cluster: Cluster) -> bool:
    """Whether what makes the parent may stand in another program.

    KAI's chart makes one parent, unless its values switch that off. Others are elsewhere if no
    queue here is the top of a tree; beside a top one, an absent parent is taken for a slip.
    """
    if cluster.declared:
        return False
    if parent == CHART_PARENT and cluster.kai:
        return any(not isinstance(kai.version, str) or kai.values is UNKNOWN for kai in cluster.kai)
    if parent == CHART_PARENT:
        return True
    return not cluster.kai and all(queue.parent is not None for queue in cluster.queues)


@rule("queue-units", Level.ADVISORY, Severity.MEDIUM, each=queues)
def queue_units(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """The amounts of a queue are in the units that KAI counts, and are numbers.

    A Queue counts cpu in millicores and memory in 10^6 bytes, as bare numbers: a limit of cpu:
    8 is less than a hundredth of a core, and nothing runs; bytes are a limit that never holds.
    Its CRD takes numbers, no text.

    Remedy: Write cores times 1000, gigabytes times 1000, and numbers without quotes.
    """
    if queue.quoted:
        yield place.warn(
            f"has {listed(queue.quoted, 'and')} as text, and the Queue CRD takes numbers: the API"
            " server refuses it",
            "write the number without quotes",
        )
    if queue.shares is UNKNOWN:
        return  # queue-quota says so
    for resource, share in queue.shares.items():
        both = (("quota", share.quota), ("limit", share.limit))
        amounts = {word: amount for word, amount in both if amount not in (None, UNKNOWN)}
        odd = {word: _odd(resource, amount, queue.path) for word, amount in amounts.items()}
        found = {word: advice for word, advice in odd.items() if advice is not None}
        if found:
            has = [f"{word} {written(resource, amounts[word], queue.path)}" for word in found]
            meaning, fix = [*found.values()][-1]
            yield place.at(resource).warn(
                f"has {resource} {listed(has, 'and')}; {meaning}", f"write {fix}"
            )


def _odd(resource: Resource, amount: float, path: str) -> tuple[str, str] | None:
    """What an amount means, and what to write for what was meant in its place; else None.

    Below a quarter of a core, or half a gigabyte, a whole queue is rather meant in cores or GB; a
    petabyte is rather meant in bytes.
    """
    meant, bare = exact(amount), path.startswith("urn:")  # a Queue's numbers have no unit
    times_1000 = exact(amount * 1000)
    if resource == "cpu" and 0 < amount < 256:
        write = times_1000 if bare else meant
        return f"that is {amount / 1000:g} of a core for all its pods", f"{write} for {meant} cores"
    if resource == "memory" and 0 < amount < 512:
        write = times_1000 if bare else f"{meant}G"
        return f"that is {meant} MB for all its pods", f"{write} for {meant} GB"
    if resource == "memory" and amount >= 10**9:
        megabytes = max(1, round(amount / 10**6))
        write = f"{megabytes}{'' if bare else 'M'}"
        meaning = f"that is {amount / 10**9:g} PB, a limit that never holds"
        return meaning, f"{write} for {meant} bytes"
    return None


@rule("queue-depth", Level.MANDATORY, Severity.HIGH, each=queues)
def queue_depth(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """No more and no fewer levels of queues than the KAI version can schedule from.

    Through v0.12 KAI schedules only from the second level: never from the top, never deeper.

    Remedy: For such versions build exactly two levels, or use v0.14 or newer.
    """
    tree, level = cluster.tree, cluster.tree.levels.get(queue.name)
    if level is None or tree.by_name[queue.name] is not queue:
        return
    leaf_at_top = level == 1 and tree.is_leaf(queue.name)
    versions = [kai.version for kai in cluster.kai]
    table = [releases.KAI[str(each)] for each in versions if str(each) in releases.KAI]
    strict = [release for release in table if not release.top_level_queues_schedule]
    deepest = [release for release in table if release.max_queue_depth == level - 1]
    if not strict and UNKNOWN in versions and (level > 2 or leaf_at_top):
        yield place.undecided(
            "the KAI version is known: through v0.12 only two levels of queues work"
        )
    if strict and leaf_at_top:
        if tree.unknown_parents:
            yield place.undecided(f"all parents are known: {queue.name} may have children")
        else:
            yield place.refuse(
                f"is a top-level queue without children, and KAI {strict[0].version} never"
                " schedules pods from those",
                f"add a child queue below {queue.name} and let pods name that one",
            )
    if deepest:
        yield place.refuse(
            f"is on level {level}, and KAI {deepest[0].version} schedules from {level - 1} levels"
            " only",
            "hang it below a top-level queue, or use KAI v0.14 or newer",
        )


_GO_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_PER_SECOND: Final[Mapping[str, int | Fraction]] = {
    **{"ns": 10**9, "us": 10**6, "µs": 10**6, "μs": 10**6, "ms": 1000},
    **{"s": 1, "m": Fraction(1, 60), "h": Fraction(1, 3600)},
}


def _is_go_duration(text: str) -> bool:
    """Whether Go's time.ParseDuration takes it: `90s`, `1h30m`; not `1d`."""
    bare = text.removeprefix("+").removeprefix("-")
    return bare == "0" or (bool(bare) and _GO_PART.sub("", bare) == "")


def _is_too_long(text: str) -> bool:
    """Whether a Go duration is longer than the 64 bits of nanoseconds that it is kept in."""
    parts = [] if len(text) > 60 else _GO_PART.findall(text)
    seconds = sum(Fraction(number) / _PER_SECOND[unit] for number, unit in parts)
    return len(text) > 60 or seconds * 10**9 >= 2**63


@rule("queue-duration", Level.MANDATORY, Severity.HIGH, each=queues)
def queue_duration(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Minimum run times are durations that Go parses.

    KAI takes Go durations, which know no days and no weeks: 1d does not parse.

    Remedy: Write hours, minutes and seconds: 24h for a day, 168h for a week, 1h30m.
    """
    for key, found in (
        ("preemptMinRuntime", queue.preempt_min_runtime),
        ("reclaimMinRuntime", queue.reclaim_min_runtime),
    ):
        value = known(found, f"the value of {key} is known")
        if value is None:
            continue
        if not isinstance(value, str) or not _is_go_duration(value):
            yield place.at(key).refuse(
                f"has {key}: {value}, which is not a duration for KAI (units are h, m and s)",
                "write for example 90s, 1h30m, or 24h for a day",
            )
        elif _is_too_long(value):
            yield place.at(key).refuse(
                f"has {key}: {value}, longer than a duration can be",
                f"write {key}: 2562047h (292 years) or less",
            )


@rule("queue-cluster-scoped", Level.MANDATORY, Severity.MEDIUM, each=queues)
def queue_cluster_scoped(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """Queues belong to no namespace.

    Queue is a cluster-scoped kind: a namespace on it does nothing but promise a separation that
    is not there, and two queues of one name in two namespaces are one queue.

    Remedy: Leave metadata.namespace out.
    """
    namespace = known(queue.namespace, "its metadata.namespace is known")
    if namespace:
        yield place.refuse(
            f"has the namespace {namespace}, but queues are cluster-wide",
            "leave metadata.namespace out",
        )


@rule("queue-zero-quota", Level.ADVISORY, Severity.LOW, each=queues)
def queue_zero_quota(cluster: Cluster, queue: DeclaredQueue, place: Place) -> Findings:
    """A queue with no quota keeps pods of Deployments Pending.

    KAI treats pods of Deployments as non-preemptible, and those may use only guaranteed
    resources of their queue and of every queue above it: with a quota of 0 they stay Pending.

    Remedy: Give the queue a quota, or run such pods with priorityClassName: train.
    """
    shares = known(queue.shares, "its resources are known")
    # Without a limit of its own nothing runs at all, which queue-quota reports.
    zero = [
        resource
        for resource, share in shares.items()
        if share.quota == 0 and share.limit not in (0, None)
    ]
    if zero:
        yield place.warn(
            f"guarantees no {listed(zero, 'and')} (quota 0), so pods of Deployments that ask for"
            " it stay Pending here and in every queue below",
            "give a quota (or unlimited, -1), or set priorityClassName: train on such pods",
        )
