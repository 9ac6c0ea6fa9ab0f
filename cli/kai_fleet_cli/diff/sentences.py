"""What a difference means, a sentence per team."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kai_fleet.fleet.model import HOST
from kai_fleet_cli.diff.changes import Difference, FieldChange, ResourceChange
from kai_fleet_cli.diff.queues import queue_sentences
from kai_fleet_cli.diff.transitions import (
    AFTER_ITS_PROVIDER,
    COMMAND,
    PROVIDER,
    kai_switch,
    vcluster_switch,
)
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture
from kai_fleet_policies.adapters.declared_trees import QUEUE
from kubectl_fleet.wording import counted, listed

_PROVIDERS = "pulumi:providers:"
_IN_VCLUSTER = "kai-fleet:index:VirtualCluster$"
_IN_GUARD = "kai-fleet:index:QueueGuard$"
_IN_SHARDS = "kai-fleet:index:SchedulingShards$"
_NODES = "values.sync.fromHost.nodes."
_FEW_FIELDS = 3


@dataclass(frozen=True)
class Sentence:
    """What happens to one team, or to the host, in parts."""

    subject: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The parts as one."""
        return "; ".join(self.parts)

    def __str__(self) -> str:
        """For example `research: GPUs 8 → 10`."""
        return f"{self.subject}: {self.text}"


def sentences(old: Picture, new: Picture, whole: Difference) -> list[Sentence]:
    """The host first, then every team that anything happens to, by name."""
    mine = _of(whole, "")
    about = [Sentence(HOST, tuple(_host(old, new, mine)) or _only_resources(mine))]
    for name in sorted({*old.teams, *new.teams}):
        before, after = old.teams.get(name), new.teams.get(name)
        mine = _of(whole, name)
        parts: tuple[str, ...]
        if before is None:
            parts = (_added(new.teams[name]),)
        elif after is None:
            parts = (_removed(before),)
        else:
            parts = tuple(_team(before, after, mine)) or _only_resources(mine)
        about.append(Sentence(name, parts))
    return [sentence for sentence in about if sentence.parts]


def _only_resources(mine: Difference) -> tuple[str, ...]:
    """The resources by name, where they are not worth a part of their own."""
    labels = [change.label for change in (*mine.changed, *mine.replaced)]
    if not labels:
        return ()
    return (f"only {listed(labels, 'and')} {'changes' if len(labels) == 1 else 'change'}",)


def untouched(old: Picture, new: Picture, whole: Difference) -> list[str]:
    """The teams of which no resource differs."""
    touched = {change.team for part in whole.parts.values() for change in part}
    return sorted((old.teams.keys() & new.teams.keys()) - touched)


def _host(old: Picture, new: Picture, mine: Difference) -> Iterator[str]:
    if any(change.type == PROVIDER for change in mine.replaced):
        yield "the cluster has another identity: every resource of the stack is made anew there"
        return
    yield from _kai(old.host, new.host, " for all teams in host mode")
    yield from queue_sentences(_queues(mine))
    yield from _rest(mine, {"kai"} if old.host.kai != new.host.kai else set())


def _team(old: TeamPicture, new: TeamPicture, mine: Difference) -> Iterator[str]:
    if any(change.reason == AFTER_ITS_PROVIDER for change in mine.replaced):
        yield "everything is made anew on the other cluster"
        return
    if old.mode != new.mode:
        yield f"mode {old.mode} → {new.mode}"
    yield from _kai(old.inside, new.inside, "")
    if old.vcluster != new.vcluster:
        step = vcluster_switch(old.vcluster, new.vcluster)
        yield f"vCluster {old.vcluster or '?'} → {new.vcluster or '?'}, {step}"
    if old.gpus != new.gpus:
        yield f"GPUs {_gpus(old.gpus)} → {_gpus(new.gpus)}"
    if old.pool != new.pool:
        yield f"nodes {old.pool or 'any'} → {new.pool or 'any'}"
    if old.inside.kai is not None and new.inside.kai is not None:
        yield from queue_sentences(_queues(mine))
    told = {name for name in ("pool", "mode", "gpus") if getattr(old, name) != getattr(new, name)}
    told |= {"kai"} if old.inside.kai != new.inside.kai else set()
    told |= set() if _queues(mine).same else {"queues"}
    yield from _rest(mine, told)


def _kai(old: ClusterPicture, new: ClusterPicture, for_whom: str) -> Iterator[str]:
    if old.kai == new.kai:
        return
    if old.kai is None:
        yield f"KAI {new.kai} is installed{_with_queues(new)}"
    elif new.kai is None:
        yield f"KAI {old.kai} is removed{for_whom}{_with_queues(old)}"
    else:
        switch = kai_switch(old.kai, new.kai)
        why = f" ({switch.reason})" if switch.replaced else ""
        kept = {queue.name for queue in old.queues} & {queue.name for queue in new.queues}
        they = "is" if len(kept) == 1 else "are"
        queues = f"its {counted(len(kept), 'queue')} {they} re-declared and " if kept else ""
        yield f"KAI {old.kai} → {new.kai}, {switch}{for_whom}, {queues}running pods stay{why}"


def _with_queues(place: ClusterPicture) -> str:
    return f", with {counted(len(place.queues), 'queue')}" if place.queues else ""


def _added(team: TeamPicture) -> str:
    on = f" on nodes {team.pool}" if team.pool else ""
    queues = f", {counted(len(team.inside.queues), 'queue')}" if team.inside.queues else ""
    kai = f" with KAI {team.inside.kai}" if team.inside.kai else ""
    return (
        f"new team in mode {team.mode}{kai}, vCluster {team.vcluster}{on},"
        f" {_gpus(team.gpus)} GPUs{queues}"
    )


def _removed(team: TeamPicture) -> str:
    kai = f", its KAI {team.inside.kai}" if team.inside.kai else ""
    queues = f", {counted(len(team.inside.queues), 'queue')}" if team.inside.queues else ""
    return (
        f"removed: its vCluster{kai}{queues}, and the namespace team-{team.name} with every pod"
        " and volume in it, once it is named (kai-fleet:removed)"
    )


def _gpus(amount: float | None) -> str:
    return "unbounded" if amount is None else f"{amount:g}"


def _of(whole: Difference, team: str) -> Difference:
    return whole.only(lambda change: change.team == team)


def _queues(mine: Difference) -> Difference:
    return mine.only(lambda change: change.type == QUEUE)


def _rest(mine: Difference, told: set[str]) -> Iterator[str]:
    """What the sentences before have not said; `told` are those whose consequences are known."""
    yield from _shards(mine)
    for change in (*mine.changed, *mine.replaced):
        fields = [item for item in change.fields if not _field_told(change, item, told)]
        if fields and not _resource_told(change, told):
            yield _changed(change, fields)
    for what, part in (("is added", mine.created), ("is removed", mine.deleted)):
        for change in part:
            if not change.type.startswith(_PROVIDERS) and not _resource_told(change, told):
                yield f"{change.label} {what}"


def _resource_told(change: ResourceChange, told: set[str]) -> bool:
    """Whether a whole resource has been spoken for."""
    if change.type in (QUEUE, COMMAND) or change.type.startswith("kai-fleet:"):
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


def _shards(mine: Difference) -> Iterator[str]:
    """One step applies them all, which would only show as an environment of a command."""
    own = [c for c in (*mine.changed, *mine.replaced) if _IN_SHARDS in c.urn]
    if any(item.path.endswith("KAI_OBJECTS") for change in own for item in change.fields):
        yield "KAI's shards and fairness settings change"
    for what, part in (("added", mine.created), ("removed", mine.deleted)):
        if any(_IN_SHARDS in change.urn for change in part):
            yield f"KAI's shards and fairness settings are {what}"


def _changed(change: ResourceChange, fields: list[FieldChange]) -> str:
    shown = ", ".join(
        f"{item.path} {_value(item.old)} → {_value(item.new)}" for item in fields[:_FEW_FIELDS]
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
