"""What only shows when several keys of a stack file are looked at together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from kai_fleet.finding import Finding
from kai_fleet.releases import DISABLED, KAI, advised, mig, version_key
from kai_fleet.releases.sharing import FRACTIONS_OPERATOR, NV_FRACTIONS
from kai_fleet.settings.mistakes import within, wrong_key
from kai_fleet.settings.sections.access import Access
from kai_fleet.settings.sections.models import Wrong, below
from kai_fleet.settings.sections.platform import (
    EXAMPLE_VERSION,
    NVIDIA,
    HostKai,
    metrics_mistakes,
)
from kai_fleet.settings.sections.queues import shard_mistakes
from kai_fleet.settings.sections.teams import Scheduler
from kai_fleet.wording import MASK

if TYPE_CHECKING:
    from kai_fleet.settings import Settings


def between_keys(settings: Settings, dropped: Sequence[str]) -> Iterator[Finding]:
    """Everything that only shows between keys; of `dropped` paths nothing is known."""
    wrong = chain(
        _of_stack(settings, dropped),
        *(_of_team(settings, name, dropped) for name in settings.teams),
        _databases(settings),
        _of_platform(settings, dropped) if settings.platform_facts is None else (),
    )
    return (wrong_key(path, message) for path, message in wrong)


def _of_stack(settings: Settings, dropped: Sequence[str]) -> Wrong:
    """Sections that name teams, and kinds of GPUs that teams have."""
    for name in settings.removed:  # it could go by a slip later
        if name in settings.teams:
            fix = f"take it out of here, or out of {settings.team_path(name)}"
            yield "kai-fleet:removed", f"names {name}, which is a team still; {fix}"
    for name in settings.workloads:
        if name not in settings.teams and not within(f"kai-fleet:teams.{name}", dropped):
            known = ", ".join(settings.teams) or "none yet"
            message = f"is for no team of this stack; the teams: {known}"
            yield f"kai-fleet:workloads.{name}", message
    resource = settings.gpu.resource
    for name in (*settings.teams, *settings.team_stacks):
        own, pools = settings.own_of(name), name in settings.teams and settings.teams[name].pools
        path = f"{settings.team_path(name)}.{'pools' if pools else 'gpus'}"
        for kind, count in own.gpus.items() if isinstance(own.gpus, dict) else ():
            if kind != resource and (resource != NVIDIA or not kind.startswith(mig.PREFIX)):
                cause = f"has {kind}, and the host's GPUs are {resource} (kai-fleet:gpu.resource)"
                yield path, f"{cause}; write {resource}: {count}"
            elif kind in own.isolation.devices:
                yield path, f"has {kind}, which isolation.devices has as well; drop it there"


def _of_team(settings: Settings, name: str, dropped: Sequence[str]) -> Wrong:
    team, path, facts = settings.teams[name], settings.team_path(name), settings.platform_facts
    host = team.scheduler.mode == "host"
    parent = facts.granted_queue(name)[0] if facts and host else None
    yield from below(path, team.mistakes(own_stack=facts is not None))
    if not within(f"{path}.scheduler.shards", dropped):  # a queue may name one that is not read
        shards = shard_mistakes(team.queues, team.scheduler.shards, parent)
        yield from below(f"{path}.queues", shards)
    for key, message in team.vcluster.mistakes():
        yield settings.written_at(name, "vcluster", *key.split(".")), message
    if facts is not None and team.vcluster.access and team.vcluster.access.type == "Gateway":
        cause = "is Gateway, and a team's own stack may make no TLSRoute"
        fix = "write Ingress or LoadBalancer, or have the platform's stack run the team"
        yield f"{path}.vcluster.access.type", f"{cause}; {fix}"


def _databases(settings: Settings) -> Wrong:
    """Each vCluster has a database to itself: two in one write over each other's objects."""
    if settings.vcluster.store.data_source is not None:
        cause = "is one database for all teams, and each writes over the others' objects"
        fix = "write one at kai-fleet:teams.NAME.vcluster.store.dataSource of each"
        yield "kai-fleet:vcluster.store.dataSource", f"{cause}; {fix}"
        return
    first: dict[str, str] = {}
    for name, team in settings.teams.items():
        secret = team.vcluster.store.data_source
        url = secret.get_secret_value() if secret is not None else MASK
        other = first.setdefault(url, name)
        if url != MASK and other != name:
            cause = f"is the database of team {other}, and both write over each other's objects"
            path = f"{settings.team_path(name)}.vcluster.store.dataSource"
            yield path, f"{cause}; write another database of that server"


def _of_platform(settings: Settings, dropped: Sequence[str]) -> Wrong:
    """Between the keys that a team's own stack does not have."""
    kai, gpu, guard, kind = settings.kai, settings.gpu, settings.guard, settings.cluster.kind
    for key in ("cluster", "gpu", "kai", "monitoring"):
        section = getattr(settings, key)
        yield from below(f"kai-fleet:{key}", section.mistakes()) if section else ()
    if kind is not None:
        accesses = {name: t.vcluster.access or Access() for name, t in settings.teams.items()}
        for team, key, message in kind.unreachable(accesses):
            path = f"kai-fleet:teams.{team}.vcluster.access.{key}"  # a port is of one team
            if key == "type":
                path = settings.written_at(team, "vcluster", "access", key)
            yield path, message
    # What the host's KAI is for: teams in host mode, whose GPUs only its queues bound.
    host_mode = [name for name, team in settings.teams.items() if team.scheduler.mode == "host"]
    isolated = [name for name in host_mode if settings.teams[name].isolation.on]
    if kai is None and (host_mode or settings.queues):
        user = f"team {host_mode[0]} is in mode host" if host_mode else "kai-fleet:queues are there"
        cause = f"is missing: {user}, and no KAI is declared for the host"
        yield "kai-fleet:kai", f"{cause}; write {{version: {advised(KAI) or EXAMPLE_VERSION}}}"
    if not within("kai-fleet:kai.shards", dropped):
        wrong = shard_mistakes(settings.queues, kai.shards if kai else {})
        yield from below("kai-fleet:queues", wrong)
    if isolated and guard.outside_queues != "deny":
        yield (
            "kai-fleet:guard.outsideQueues",
            f"is {guard.outside_queues}, but team {isolated[0]} is in mode host, where only its"
            " queue bounds the GPUs of fractions and whole ones together; write deny, or"
            " isolation: {level: off} for such teams",
        )
    # What every KAI shares, and where its metrics are read.
    kais: dict[str, HostKai | Scheduler] = {"kai-fleet:kai": kai} if kai else {}
    kais |= {f"{settings.team_path(n)}.scheduler": t.scheduler for n, t in settings.teams.items()}
    for path, own in kais.items():
        written = own.gpu_sharing.mode != DISABLED and "gpu_sharing" in own.model_fields_set
        if written and not settings.shares_gpus(own):
            cause = f"is on, and KAI shares only {NVIDIA}: it reserves a shared GPU by that name"
            yield f"{path}.gpuSharing", f"{cause}; drop it, pods with {gpu.resource} get whole GPUs"
        if settings.monitoring is not None:
            yield from below(f"{path}.values", metrics_mistakes(own.values))
    if kai is not None and settings.sharing_of(kai) == NV_FRACTIONS:
        needs = f"and kai-fleet:kai.gpuSharing is {NV_FRACTIONS}, which needs NVIDIA's GPU operator"
        newest = FRACTIONS_OPERATOR
        if gpu.provider == "device-plugin":
            message = f"is device-plugin, {needs}; write operator, or none where it is"
            yield "kai-fleet:gpu.provider", message
        elif gpu.version and version_key(gpu.version) < version_key(newest):
            message = f"is {gpu.version}, {needs} {newest} or newer; write {newest}, or drop it"
            yield "kai-fleet:gpu.version", message
