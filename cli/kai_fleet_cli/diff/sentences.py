"""What a difference means, a sentence per team."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kai_fleet.wording import listed
from kai_fleet_cli.diff.changes import Change, Difference, Field
from kai_fleet_cli.diff.queues import queue_sentences
from kai_fleet_cli.diff.transitions import (
    AFTER_ITS_PROVIDER,
    COMMAND,
    PROVIDER,
    kai_switch,
    vcluster_switch,
)
from kai_fleet_cli.display.queue_items import QUEUE
from kai_fleet_cli.display.wording import counted
from kai_fleet_cli.plan.picture import ClusterPicture, Picture, TeamPicture

HOST = "host"
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


def sentences(old: Picture, new: Picture, found: Difference) -> list[Sentence]:
    """The host first, then every team that anything happens to, by name."""
    told = [_about(HOST, _host(old, new, found), _of(found, ""))]
    for name in sorted({*old.teams, *new.teams}):
        before, after = old.teams.get(name), new.teams.get(name)
        if before is None and after is not None:
            told.append(Sentence(name, (_added(after),)))
        elif after is None and before is not None:
            told.append(Sentence(name, (_removed(before),)))
        elif before is not None and after is not None:
            told.append(_about(name, _team(before, after, found), _of(found, name)))
    return [sentence for sentence in told if sentence.parts]


def _about(subject: str, parts: Iterator[str], mine: Difference) -> Sentence:
    """The parts, or the resources by name where these are not worth a part of their own."""
    said = tuple(parts)
    labels = [change.label for change in (*mine.changed, *mine.replaced)]
    if not said and labels:
        said = (f"only {listed(labels, 'and')} {'changes' if len(labels) == 1 else 'change'}",)
    return Sentence(subject, said)


def untouched(old: Picture, new: Picture, found: Difference) -> list[str]:
    """The teams of which no resource differs."""
    touched = {change.team for part in found.parts.values() for change in part}
    return sorted((old.teams.keys() & new.teams.keys()) - touched)


def _host(old: Picture, new: Picture, found: Difference) -> Iterator[str]:
    mine = _of(found, "")
    if any(change.type == PROVIDER for change in mine.replaced):
        yield "the cluster has another identity: every resource of the stack is made anew there"
        return
    yield from _kai(old.host, new.host, " for all teams in host mode")
    yield from queue_sentences(_queues(mine))
    yield from _rest(mine, _Told(kai=old.host.kai != new.host.kai))


def _team(old: TeamPicture, new: TeamPicture, found: Difference) -> Iterator[str]:
    mine = _of(found, new.name)
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
    told = _Told(
        kai=old.inside.kai != new.inside.kai,
        pool=old.pool != new.pool,
        mode=old.mode != new.mode,
        gpus=old.gpus != new.gpus,
        queues=not _queues(mine).same,
    )
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


def _of(found: Difference, team: str) -> Difference:
    parts = {
        name: tuple(change for change in part if change.team == team)
        for name, part in found.parts.items()
    }
    return Difference(**parts)


def _queues(found: Difference) -> Difference:
    parts = {
        name: tuple(change for change in part if change.type == QUEUE)
        for name, part in found.parts.items()
    }
    return Difference(**parts)


@dataclass(frozen=True)
class _Told:
    """What has been said in words, so that its consequences need not be said again."""

    kai: bool = False
    pool: bool = False
    mode: bool = False
    gpus: bool = False
    queues: bool = False

    def change(self, change: Change) -> bool:
        """Whether a whole resource has been spoken for."""
        if change.type in (QUEUE, COMMAND) or change.type.startswith("kai-fleet:"):
            return True
        if self.kai and ("KaiScheduler$" in change.urn or "QueueTree$" in change.urn):
            return True
        if _IN_GUARD in change.urn and (self.kai or self.mode or self.queues):
            return True  # it knows the leaf queues by name
        return self.mode and _IN_VCLUSTER in change.urn

    def field(self, change: Change, item: Field) -> bool:
        """Whether one field of it has."""
        if _IN_VCLUSTER in change.urn and item.path == "version":
            return True
        if self.pool and item.path.startswith(_NODES):
            return True
        return self.gpus and item.path.startswith("spec.hard.")


def _rest(found: Difference, told: _Told) -> Iterator[str]:
    """What the sentences before have not said."""
    yield from _shards(found)
    for change in (*found.changed, *found.replaced):
        fields = [item for item in change.fields if not told.field(change, item)]
        if fields and not told.change(change):
            yield _changed(change, fields)
    for what, part in (("is added", found.created), ("is removed", found.deleted)):
        for change in part:
            if not change.type.startswith(_PROVIDERS) and not told.change(change):
                yield f"{change.label} {what}"


def _shards(found: Difference) -> Iterator[str]:
    """One step applies them all, which would only show as an environment of a command."""
    own = [c for c in (*found.changed, *found.replaced) if _IN_SHARDS in c.urn]
    if any(item.path.endswith("KAI_OBJECTS") for change in own for item in change.fields):
        yield "KAI's shards and fairness settings change"
    for what, part in (("added", found.created), ("removed", found.deleted)):
        if any(_IN_SHARDS in change.urn for change in part):
            yield f"KAI's shards and fairness settings are {what}"


def _changed(change: Change, fields: list[Field]) -> str:
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
