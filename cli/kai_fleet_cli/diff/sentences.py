"""What a difference means, a sentence per team."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kai_fleet.fleet.deployed_state import (
    COMMAND,
    KAI_SCHEDULER,
    NAMESPACE,
    PROVIDERS,
    RELEASE,
    VIRTUAL_CLUSTER,
)
from kai_fleet.fleet.model import HOST
from kai_fleet.releases.transitions import vcluster_refusal
from kai_fleet.wording import agreeing, counted, listed
from kai_fleet_cli.diff import consequences
from kai_fleet_cli.diff.changes import Difference, FieldChange, ResourceChange
from kai_fleet_cli.diff.consequences import Hazard, Part, Sentence
from kai_fleet_cli.diff.queues import queue_sentences
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture
from kai_fleet_cli.recovery.resume import FLEET
from kai_fleet_policies.adapters.declared_trees import QUEUE

_IN_VCLUSTER: Final = f"{VIRTUAL_CLUSTER}$"
_IN_GPU_STACK: Final = "kai-fleet:index:GpuStack$"
_IN_GUARD: Final = "kai-fleet:index:QueueGuard$"
_IN_SHARDS: Final = "kai-fleet:index:SchedulingShards$"
_IN_KAI: Final = f"{KAI_SCHEDULER}$"
_FEW_FIELDS: Final = 3
_CALLED: Final = {"values.controlPlane.distro.k8s.image.tag": "Kubernetes"}
_OF_RELEASE: Final = ("version", "values.")
# What other fields restart: by type and component, and the beginnings of their paths.
_RESTARTS: Final = (
    (RELEASE, _IN_VCLUSTER, _OF_RELEASE, "its API restarts"),
    (RELEASE, _IN_KAI, _OF_RELEASE, "KAI's scheduler restarts"),
    (RELEASE, _IN_GPU_STACK, _OF_RELEASE, "what makes nodes advertise GPUs restarts"),
    ("kubernetes:core/v1:Pod", "", "spec", "each of its pods is made anew"),
    ("kubernetes:apps/v1:Deployment", "", "spec.template", "each of its pods is made anew"),
)
# Once it is said that this differs, these resources and fields say nothing new.
_SAID_BY: Final = {
    "kai": (_IN_KAI, "kai-fleet:index:QueueTree$", _IN_GUARD),
    "mode": (_IN_VCLUSTER, _IN_GUARD),
    "queues": (_IN_GUARD,),  # it knows the leaf queues by name
}
_FIELDS_SAID_BY: Final = {"pool": "values.sync.fromHost.nodes.", "gpus_in_words": "spec.hard."}


def sentences(stack: str, old: Picture, new: Picture, whole: Difference) -> list[Sentence]:
    """The host first, then every team that anything happens to, by name."""
    about = []
    for name in sorted({"", *old.teams, *new.teams, *whole.teams}):
        before, after = old.teams.get(name), new.teams.get(name)
        mine = whole.of(name)
        if not name:
            parts = _host(old, new, mine)
        elif before is None:
            parts = _coming(stack, name, after, mine)
        else:
            parts = _leaving(before, mine) if after is None else _team(before, after, mine)
        if told := tuple(parts) or _only_resources(mine):
            about.append(Sentence(name or HOST, told))
    return about


def untouched(old: Picture, new: Picture, whole: Difference) -> list[str]:
    """The teams of which no resource differs."""
    return sorted((old.teams.keys() & new.teams.keys()) - whole.teams)


def _host(old: Picture, new: Picture, mine: Difference) -> Iterator[Part]:
    if any(change.type == consequences.PROVIDER for change in mine.replaced):
        text = "the cluster has another identity: every resource of the stack is made anew there"
        yield Part(text, Hazard.LOST)
        return
    yield from _kai(old, new, " for all teams in mode host")
    yield from queue_sentences(_queues(mine))
    yield from _rest(mine, {"kai"} if old.kai != new.kai else set())


def _coming(stack: str, name: str, after: TeamPicture | None, mine: Difference) -> Iterator[Part]:
    """A team that the stack has not run before: a new one, or one with a stack of its own."""
    makes = _has_namespace(name, mine.created)
    own = f"{stack}-{name}"
    if after is not None:
        on = f" on nodes {after.pool}" if after.pool else ""
        kai = f" with KAI {after.kai}" if after.kai else ""
        yield Part(
            f"new team in mode {after.mode}{kai}, vCluster {after.vcluster}{on},"
            f" {after.bound('GPUs without a bound')}{_with_queues(after)}"
        )
        if not makes and after.isolated is not None:
            yield Part(
                "it still runs in a stack of its own; end that first:"
                f" {FLEET} destroy --stack {own}",
                Hazard.REFUSED,
            )
    elif makes:
        yield Part(f"is granted namespace team-{name} for a stack of its own")
    elif _has_namespace(name, mine.deleted):
        yield Part(
            f"is no longer granted namespace team-{name}, which stays while its own stack runs a"
            f" vCluster there; end that first: {FLEET} destroy --stack {own}, or put"
            f" kai-fleet:teamStacks.{name} back",
            Hazard.REFUSED,
        )
    else:
        yield from _rest(mine, set())


def _leaving(before: TeamPicture, mine: Difference) -> Iterator[Part]:
    in_team_stack = before.isolated is None  # whose namespace is the platform's
    if in_team_stack or _has_namespace(before.name, mine.deleted):
        kai = f", its KAI {before.kai}" if before.kai else ""
        yield Part(
            f"removed: its vCluster{kai}{_with_queues(before)}, and the namespace"
            f" team-{before.name} with every pod and volume in it",
            Hazard.LOST,
        )
    else:
        yield Part("gets a stack of its own; this one keeps its namespace and its bounds")


def _has_namespace(team: str, changes: Iterable[ResourceChange]) -> bool:
    """Whether the namespace of a team on the host is among the changes."""
    return any((it.type, it.name) == (NAMESPACE, f"{team}-namespace") for it in changes)


def _team(old: TeamPicture, new: TeamPicture, mine: Difference) -> Iterator[Part]:
    if any(change.reason == consequences.AFTER_ITS_PROVIDER for change in mine.replaced):
        yield Part("everything is made anew on the other cluster", Hazard.LOST)
        return
    told = {
        key
        for key in ("mode", "kai", "vcluster", "store", "gpus_in_words", "pool")
        if getattr(old, key) != getattr(new, key)
    }
    # Its chart writes a digest of all values onto the pod of the API.
    if any(_IN_VCLUSTER in it.urn and _restarting(it, it.fields) for it in mine.changed):
        hazard, restarts = Hazard.RESTARTS, ", and its API restarts"
    else:
        hazard, restarts = None, ""
    if old.isolated and not new.isolated:
        yield Part("its isolation ends: no guard judges what its pods do to others", Hazard.LOST)
    if "mode" in told:
        yield Part(f"mode {old.mode} → {new.mode}{restarts}", hazard)
    yield from _kai(old, new, "")
    if "vcluster" in told:
        refused = vcluster_refusal(old.vcluster, new.vcluster)
        way = "which the update refuses" if refused else f"upgraded in place{restarts}"
        yield Part(f"vCluster {old.vcluster or '?'} → {new.vcluster or '?'}, {way}", hazard)
    if "store" in told:
        way = "which the update refuses: vCluster moves no state"
        yield Part(f"store {old.store} → {new.store}, {way}", Hazard.REFUSED)
    if "gpus_in_words" in told:
        yield Part(f"GPUs {old.gpus_in_words} → {new.gpus_in_words}")
    if "pool" in told:
        yield Part(f"nodes {old.pool or 'any'} → {new.pool or 'any'}{restarts}", hazard)
    queues = _queues(mine)
    if old.kai is not None and new.kai is not None:
        yield from queue_sentences(queues)
    yield from _rest(mine, told if queues.same else told | {"queues"})


def _kai(old: ClusterPicture, new: ClusterPicture, for_whom: str) -> Iterator[Part]:
    if old.kai == new.kai:
        return
    if old.kai is None:
        yield Part(f"KAI {new.kai} is installed{_with_queues(new, 'with ')}")
    elif new.kai is None:
        yield Part(f"KAI {old.kai} is removed{for_whom}{_with_queues(old, 'with ')}", Hazard.LOST)
    else:
        kept = {queue.name for queue in old.queues} & {queue.name for queue in new.queues}
        queues = f"its {counted(len(kept), 'queue', 'is')} re-declared and " if kept else ""
        stays = f"{for_whom}, {queues}running pods stay"
        yield Part(consequences.kai_switch(old.kai, new.kai, stays), Hazard.RESTARTS)


def _with_queues(place: ClusterPicture, word: str = "") -> str:
    return f", {word}{counted(len(place.queues), 'queue')}" if place.queues else ""


def _queues(mine: Difference) -> Difference:
    return mine.only(lambda change: change.type == QUEUE)


def _only_resources(mine: Difference) -> tuple[Part, ...]:
    """The resources by name, where they are not worth a part of their own."""
    labels = [change.label for change in mine.edited]
    told = f"only {listed(labels, 'and')} {agreeing(len(labels), 'changes')}"
    return (Part(told),) if labels else ()


def _rest(mine: Difference, told: set[str]) -> Iterator[Part]:
    """What the sentences before have not said; `told` is what they have said that it differs."""
    yield from _shards(mine)
    for change in mine.edited:
        fields = [item for item in change.fields if not _field_told(change, item, told)]
        if fields and not _resource_told(change, told):
            restarts = _restarting(change, fields)
            text = f"{_changed(change, fields)}{restarts}"
            yield Part(text, Hazard.RESTARTS if restarts else None)
    for what, part in (("is added", mine.created), ("is removed", mine.deleted)):
        for change in part:
            if change.type.startswith(PROVIDERS) or _resource_told(change, told):
                continue
            of_gpus = change.type == RELEASE and _IN_GPU_STACK in change.urn
            if of_gpus and part is mine.deleted:
                gone = "and with it what makes nodes advertise GPUs"
                yield Part(f"{change.label} {what}, {gone}", Hazard.LOST)
            else:
                why = f" ({change.reason})" if change.reason else ""
                yield Part(f"{change.label} {what}{why}")


def _shards(mine: Difference) -> Iterator[Part]:
    """One step applies them all, which would only show as an environment of a command."""
    shards = mine.only(lambda change: _IN_SHARDS in change.urn)
    edited = any(it.path.endswith("KAI_OBJECTS") for one in shards.edited for it in one.fields)
    ways = {"change": edited, "are added": shards.created, "are removed": shards.deleted}
    for way in (way for way, any_of_them in ways.items() if any_of_them):
        yield Part(f"KAI's shards and fairness settings {way}")


def _restarting(change: ResourceChange, fields: Sequence[FieldChange]) -> str:
    """What these fields of a release or of a workload restart, to be said behind them."""
    for type_, component, paths, restarts in _RESTARTS:
        if change.type == type_ and component in change.urn:
            return f", and {restarts}" if any(it.path.startswith(paths) for it in fields) else ""
    return ""


def _resource_told(change: ResourceChange, told: set[str]) -> bool:
    """Whether a whole resource has been spoken for."""
    if change.type in (QUEUE, COMMAND) or change.type.startswith("kai-fleet:"):
        return True
    return any(part in change.urn for key in told for part in _SAID_BY.get(key, ()))


def _field_told(change: ResourceChange, item: FieldChange, told: set[str]) -> bool:
    """Whether one field of a resource has been spoken for."""
    if _IN_VCLUSTER in change.urn and item.path == "version":
        return True
    return any(item.path.startswith(_FIELDS_SAID_BY[key]) for key in told & _FIELDS_SAID_BY.keys())


def _changed(change: ResourceChange, fields: Sequence[FieldChange]) -> str:
    shown = (
        f"{_CALLED.get(item.path, item.path)} {' → '.join(item.shown(60))}"
        for item in fields[:_FEW_FIELDS]
    )
    more = len(fields) - _FEW_FIELDS
    rest = f" and {counted(more, 'more field')}" if more > 0 else ""
    how = f", replaced ({change.reason})" if change.reason else ""
    return f"{change.label}: {', '.join(shown)}{rest}{how}"
