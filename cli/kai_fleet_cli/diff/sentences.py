"""What a difference means, a sentence per team."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kai_fleet.fleet.model import HOST
from kai_fleet.state.deployed_state import NAMESPACE
from kai_fleet.state.transitions import vcluster_refusal
from kai_fleet_cli.diff import transitions
from kai_fleet_cli.diff.changes import Difference, FieldChange, ResourceChange
from kai_fleet_cli.diff.hazards import Hazard, Part, Sentence
from kai_fleet_cli.diff.queues import queue_sentences
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture
from kai_fleet_cli.recovery.resume import FLEET
from kai_fleet_policies.adapters.declared_trees import QUEUE
from kubectl_fleet.wording import agreeing, counted, listed

_PROVIDERS = "pulumi:providers:"
_IN_VCLUSTER = "kai-fleet:index:VirtualCluster$"
_GPU_STACK = "kai-fleet:index:GpuStack$"
_IN_GUARD = "kai-fleet:index:QueueGuard$"
_IN_SHARDS = "kai-fleet:index:SchedulingShards$"
_NODES = "values.sync.fromHost.nodes."
_FEW_FIELDS = 3
_CALLED: Final = {"values.controlPlane.distro.k8s.image.tag": "Kubernetes"}
# A release that gets another version or other values, by the component that has it.
_RESTARTS: Final = {
    _IN_VCLUSTER: ", and its API restarts",
    "kai-fleet:index:KaiScheduler$": ", and KAI's scheduler restarts",
    _GPU_STACK: ", and what makes nodes advertise GPUs restarts",
}
_OF_PODS: Final = {
    "kubernetes:core/v1:Pod": "spec",
    "kubernetes:apps/v1:Deployment": "spec.template",
}


def sentences(stack: str, old: Picture, new: Picture, whole: Difference) -> list[Sentence]:
    """The host first, then every team that anything happens to, by name."""
    mine = _of(whole, "")
    about = [Sentence(HOST, tuple(_host(old, new, mine)) or _only_resources(mine))]
    touched = {change.team for part in whole.parts.values() for change in part}
    for name in sorted({*old.teams, *new.teams, *touched} - {""}):
        before, after = old.teams.get(name), new.teams.get(name)
        mine = _of(whole, name)
        if before is None:
            parts = tuple(_coming(stack, name, after, mine))
        elif after is None:
            parts = (_leaving(before, mine),)
        else:
            parts = tuple(_team(before, after, mine)) or _only_resources(mine)
        about.append(Sentence(name, parts))
    return [sentence for sentence in about if sentence.parts]


def _only_resources(mine: Difference) -> tuple[Part, ...]:
    """The resources by name, where they are not worth a part of their own."""
    labels = [change.label for change in (*mine.changed, *mine.replaced)]
    if not labels:
        return ()
    return (Part(f"only {listed(labels, 'and')} {agreeing(len(labels), 'changes')}"),)


def untouched(old: Picture, new: Picture, whole: Difference) -> list[str]:
    """The teams of which no resource differs."""
    touched = {change.team for part in whole.parts.values() for change in part}
    return sorted((old.teams.keys() & new.teams.keys()) - touched)


def _host(old: Picture, new: Picture, mine: Difference) -> Iterator[Part]:
    if any(change.type == transitions.PROVIDER for change in mine.replaced):
        text = "the cluster has another identity: every resource of the stack is made anew there"
        yield Part(text, Hazard.LOST)
        return
    yield from _kai(old.host, new.host, " for all teams in mode host")
    yield from queue_sentences(_queues(mine))
    yield from _rest(mine, {"kai"} if old.host.kai != new.host.kai else set())


def _coming(stack: str, name: str, after: TeamPicture | None, mine: Difference) -> Iterator[Part]:
    """A team that the stack has not run before: a new one, or one with a stack of its own."""
    makes, ends = (_has_namespace(name, part) for part in (mine.created, mine.deleted))
    own = f"{stack}-{name}"
    if after is not None:
        yield Part(_added(after))
        if not makes and after.isolated is not None:
            yield Part(
                f"it still runs in a stack of its own; move it first: {FLEET} team move {name}"
                f" --stack {own} --to {stack}",
                Hazard.REFUSED,
            )
    elif makes:
        yield Part(f"is granted namespace team-{name} for a stack of its own")
    elif ends:
        yield Part(
            f"is no longer granted namespace team-{name}, which stays while its own stack runs a"
            f" vCluster there; end that first: {FLEET} destroy --stack {own}, or put"
            f" kai-fleet:teamStacks.{name} back",
            Hazard.REFUSED,
        )
    else:
        yield from tuple(_rest(mine, set())) or _only_resources(mine)


def _leaving(before: TeamPicture, mine: Difference) -> Part:
    in_team_stack = before.isolated is None  # whose namespace is the platform's
    if in_team_stack or _has_namespace(before.name, mine.deleted):
        return Part(_removed(before), Hazard.LOST)
    return Part("gets a stack of its own; this one keeps its namespace and its bounds")


def _has_namespace(team: str, changes: Iterable[ResourceChange]) -> bool:
    """Whether the namespace of a team on the host is among the changes."""
    return any((it.type, it.name) == (NAMESPACE, f"{team}-namespace") for it in changes)


def _team(old: TeamPicture, new: TeamPicture, mine: Difference) -> Iterator[Part]:
    if any(change.reason == transitions.AFTER_ITS_PROVIDER for change in mine.replaced):
        yield Part("everything is made anew on the other cluster", Hazard.LOST)
        return
    # Its chart writes a digest of all values onto the pod of the API.
    if any(
        _IN_VCLUSTER in change.urn and _restarting(change, change.fields) for change in mine.changed
    ):
        hazard, restarts = Hazard.RESTARTS, ", and its API restarts"
    else:
        hazard, restarts = None, ""
    if old.isolated and not new.isolated:
        yield Part("its isolation ends: no guard judges what its pods do to others", Hazard.LOST)
    if old.mode != new.mode:
        yield Part(f"mode {old.mode} → {new.mode}{restarts}", hazard)
    yield from _kai(old.inside, new.inside, "")
    if old.vcluster != new.vcluster:
        refused = vcluster_refusal(old.vcluster, new.vcluster)
        way = "which the update refuses" if refused else f"upgraded in place{restarts}"
        yield Part(f"vCluster {old.vcluster or '?'} → {new.vcluster or '?'}, {way}", hazard)
    if old.store != new.store:
        way = "which the update refuses: vCluster moves no state"
        yield Part(f"store {old.store} → {new.store}, {way}", Hazard.REFUSED)
    if (had := old.gpus_in_words) != (has := new.gpus_in_words):
        yield Part(f"GPUs {had} → {has}")
    if old.pool != new.pool:
        yield Part(f"nodes {old.pool or 'any'} → {new.pool or 'any'}{restarts}", hazard)
    if old.inside.kai is not None and new.inside.kai is not None:
        yield from queue_sentences(_queues(mine))
    told = {name for name in ("pool", "mode") if getattr(old, name) != getattr(new, name)}
    told |= {"gpus"} if had != has else set()
    told |= {"kai"} if old.inside.kai != new.inside.kai else set()
    told |= set() if _queues(mine).same else {"queues"}
    yield from _rest(mine, told)


def _kai(old: ClusterPicture, new: ClusterPicture, for_whom: str) -> Iterator[Part]:
    if old.kai == new.kai:
        return
    if old.kai is None:
        yield Part(f"KAI {new.kai} is installed{_queues_of(new, 'with ')}")
    elif new.kai is None:
        yield Part(f"KAI {old.kai} is removed{for_whom}{_queues_of(old, 'with ')}", Hazard.LOST)
    else:
        kept = {queue.name for queue in old.queues} & {queue.name for queue in new.queues}
        queues = f"its {counted(len(kept), 'queue', 'is')} re-declared and " if kept else ""
        stays = f"{for_whom}, {queues}running pods stay"
        yield Part(transitions.kai_switch(old.kai, new.kai, stays), Hazard.RESTARTS)


def _queues_of(place: ClusterPicture, word: str = "") -> str:
    return f", {word}{counted(len(place.queues), 'queue')}" if place.queues else ""


def _added(team: TeamPicture) -> str:
    on = f" on nodes {team.pool}" if team.pool else ""
    kai = f" with KAI {team.inside.kai}" if team.inside.kai else ""
    return (
        f"new team in mode {team.mode}{kai}, vCluster {team.vcluster}{on},"
        f" {team.bound('GPUs without a bound')}{_queues_of(team.inside)}"
    )


def _removed(team: TeamPicture) -> str:
    kai = f", its KAI {team.inside.kai}" if team.inside.kai else ""
    return (
        f"removed: its vCluster{kai}{_queues_of(team.inside)}, and the namespace"
        f" team-{team.name} with every pod and volume in it"
    )


def _of(whole: Difference, team: str) -> Difference:
    return whole.only(lambda change: change.team == team)


def _queues(mine: Difference) -> Difference:
    return mine.only(lambda change: change.type == QUEUE)


def _rest(mine: Difference, told: set[str]) -> Iterator[Part]:
    """What the sentences before have not said; `told` are those whose consequences are known."""
    yield from _shards(mine)
    for change in (*mine.changed, *mine.replaced):
        fields = [item for item in change.fields if not _field_told(change, item, told)]
        if fields and not _resource_told(change, told):
            text, restarts = _changed(change, fields), _restarting(change, fields)
            yield Part(f"{text}{restarts}", Hazard.RESTARTS if restarts else None)
    for what, part in (("is added", mine.created), ("is removed", mine.deleted)):
        for change in part:
            if not change.type.startswith(_PROVIDERS) and not _resource_told(change, told):
                why = f" ({change.reason})" if change.reason else ""
                if (
                    part is mine.deleted
                    and change.type == transitions.RELEASE
                    and _GPU_STACK in change.urn
                ):
                    gone = ", and with it what makes nodes advertise GPUs"
                    yield Part(f"{change.label} {what}{gone}", Hazard.LOST)
                else:
                    yield Part(f"{change.label} {what}{why}")


def _restarting(change: ResourceChange, fields: Sequence[FieldChange]) -> str:
    """What these fields of a release or of a workload restart, to be said behind them."""
    paths = [item.path for item in fields]
    if change.type == transitions.RELEASE:
        if not any(path == "version" or path.startswith("values.") for path in paths):
            return ""
        return next((text for part, text in _RESTARTS.items() if part in change.urn), "")
    own = _OF_PODS.get(change.type)
    if own is not None and any(path.startswith(own) for path in paths):
        return ", and each of its pods is made anew"
    return ""


def _resource_told(change: ResourceChange, told: set[str]) -> bool:
    """Whether a whole resource has been spoken for."""
    if change.type in (QUEUE, transitions.COMMAND) or change.type.startswith("kai-fleet:"):
        return True
    if "kai" in told and ("KaiScheduler$" in change.urn or "QueueTree$" in change.urn):
        return True
    if _IN_GUARD in change.urn and told & {"kai", "mode", "queues"}:
        return True  # it knows the leaf queues by name
    return "mode" in told and _IN_VCLUSTER in change.urn


def _field_told(change: ResourceChange, item: FieldChange, told: set[str]) -> bool:
    """Whether one field of a resource has been spoken for."""
    if _IN_VCLUSTER in change.urn and item.path == "version":
        return True
    if "pool" in told and item.path.startswith(_NODES):
        return True
    return "gpus" in told and item.path.startswith("spec.hard.")


def _shards(mine: Difference) -> Iterator[Part]:
    """One step applies them all, which would only show as an environment of a command."""
    own = [c for c in (*mine.changed, *mine.replaced) if _IN_SHARDS in c.urn]
    if any(item.path.endswith("KAI_OBJECTS") for change in own for item in change.fields):
        yield Part("KAI's shards and fairness settings change")
    for what, part in (("added", mine.created), ("removed", mine.deleted)):
        if any(_IN_SHARDS in change.urn for change in part):
            yield Part(f"KAI's shards and fairness settings are {what}")


def _changed(change: ResourceChange, fields: list[FieldChange]) -> str:
    shown = ", ".join(
        f"{_CALLED.get(item.path, item.path)} {_value(item.old)} → {_value(item.new)}"
        for item in fields[:_FEW_FIELDS]
    )
    more = len(fields) - _FEW_FIELDS
    rest = f" and {counted(more, 'more field')}" if more > 0 else ""
    how = f", replaced ({change.reason})" if change.reason else ""
    return f"{change.label}: {shown}{rest}{how}"


def _value(value: object) -> str:
    if value is None:
        return "unset"
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
