"""What only shows when several keys of a stack file are looked at together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from kai_fleet.finding import Finding
from kai_fleet.releases import DISABLED, KAI, advised, mig, version_key
from kai_fleet.releases.sharing import FRACTIONS_OPERATOR, NV_FRACTIONS
from kai_fleet.settings.mistakes import key_path, located, within, wrong_key
from kai_fleet.settings.sections.access import access_mistakes, cluster_mistakes, port_mistakes
from kai_fleet.settings.sections.monitoring import monitoring_mistakes, moved_metrics
from kai_fleet.settings.sections.platform import (
    EXAMPLE_VERSION,
    NVIDIA,
    HostKai,
    Scheduling,
    scheduling_mistakes,
)
from kai_fleet.settings.sections.queues import QueueTree, shard_mistakes
from kai_fleet.settings.sections.teams import Scheduler, mode_mistakes
from kai_fleet.settings.sections.vcluster import oidc_mistakes, store_mistakes
from kai_fleet.wording import MASK

if TYPE_CHECKING:
    from kai_fleet.settings import Settings

_KAI: Final = key_path(("kai",))
_QUEUES: Final = key_path(("queues",))
_TEAMS: Final = key_path(("teams",))


def between_keys(settings: Settings, dropped: Sequence[str]) -> Iterator[Finding]:
    """Everything that only shows between keys; of `dropped` paths nothing is known."""
    facts = settings.platform_facts
    for name in settings.removed:  # it could go by a slip later
        if name in settings.teams:
            fix = f"take it out of here, or out of {settings.team_path(name)}"
            yield wrong_key(key_path(("removed",)), f"names {name}, which is a team still; {fix}")
    for name in (*settings.teams, *settings.team_stacks):
        yield from _gpu_kinds(settings, name)
    for name, team in settings.teams.items():
        path = settings.team_path(name)
        parent = facts.granted_queue(name)[0] if facts and team.scheduler.mode == "host" else None
        yield from _scheduling(team.scheduler, path, team.queues, dropped, parent)
        yield from located(path, mode_mistakes(team, own_stack=facts is not None))
    # Once each: what is written for all teams is wrong for all.
    yield from dict.fromkeys(
        chain.from_iterable(_vcluster(settings, name) for name in settings.teams)
    )
    yield from _databases(settings)
    for name in settings.workloads:
        if name not in settings.teams and not within(f"{_TEAMS}.{name}", dropped):
            known = ", ".join(settings.teams) or "none yet"
            message = f"is for no team of this stack; the teams: {known}"
            yield wrong_key(key_path(("workloads", name)), message)
    if facts is None:
        yield from _of_platform(settings, dropped)


def _of_platform(settings: Settings, dropped: Sequence[str]) -> Iterator[Finding]:
    """Between the keys that a team's own stack does not have."""
    yield from located(key_path(("cluster",)), cluster_mistakes(settings.cluster))
    yield from _host_kai(settings)
    yield from _gpu(settings)
    yield from _sharing(settings)
    yield from _scheduling(settings.kai, "", settings.queues, dropped)
    yield from _outside_queues(settings)
    if settings.monitoring is not None:
        yield from located(key_path(("monitoring",)), monitoring_mistakes(settings.monitoring))
        for path, kai in _kais(settings):
            yield from located(f"{path}.values", moved_metrics(kai.values))
    if settings.cluster.kind is not None:
        accesses = {name: settings.access_of(name) for name in settings.teams}
        for team, key, message in port_mistakes(settings.cluster.kind, accesses):
            place = key_path(("teams", team, "vcluster", "access", key))  # a port is of one team
            if key == "type":
                place = settings.written_at(team, "vcluster", "access", key)
            yield wrong_key(place, message)


def _host_kai(settings: Settings) -> Iterator[Finding]:
    """Teams and queues that need a KAI on the host, where none is declared."""
    in_host_mode = [n for n, team in settings.teams.items() if team.scheduler.mode == "host"]
    if settings.kai is None and (in_host_mode or settings.queues):
        need = f"team {in_host_mode[0]} is in mode host" if in_host_mode else f"{_QUEUES} are there"
        yield wrong_key(
            _KAI,
            f"is missing: {need}, and no KAI is declared for the host; write"
            f" {{version: {advised(KAI) or EXAMPLE_VERSION}}}",
        )


def _gpu(settings: Settings) -> Iterator[Finding]:
    gpu = settings.gpu
    if gpu.resource != NVIDIA and gpu.provider != "none":
        yield wrong_key(
            key_path(("gpu", "provider")),
            f"is NVIDIA's, and nodes with {gpu.resource} need their vendor's own, installed beside"
            " this program; write none",
        )
    if gpu.system_priorities and gpu.provider == "none":
        yield wrong_key(
            key_path(("gpu", "systemPriorities")),
            "has no effect: with provider none nothing is installed that needs it; leave it out, or"
            " write operator or device-plugin for the provider",
        )


def _vcluster(settings: Settings, name: str) -> Iterator[Finding]:
    """Of one team's vCluster, at the stack's own key where that says it."""
    vcluster, access = settings.teams[name].vcluster, settings.access_of(name)
    wrong = [(f"access.{key}", message) for key, message in access_mistakes(access)]
    if settings.platform_facts is not None and access.type == "Gateway":
        message = (
            "is Gateway, and a team's own stack may make no TLSRoute; write Ingress or"
            " LoadBalancer, or have the platform's stack run the team"
        )
        wrong.append(("access.type", message))
    wrong += [(f"store.{key}", message) for key, message in store_mistakes(vcluster.store)]
    wrong += oidc_mistakes(vcluster.oidc, vcluster.groups, vcluster.values)
    for key, message in wrong:
        yield wrong_key(settings.written_at(name, "vcluster", *key.split(".")), message)


def _databases(settings: Settings) -> Iterator[Finding]:
    """Each vCluster has a database to itself: two in one write over each other's objects."""
    if settings.vcluster.store.data_source is not None:
        yield wrong_key(
            key_path(("vcluster", "store", "dataSource")),
            "is one database for all teams, and each writes over the others' objects; write one at"
            f" {_TEAMS}.NAME.vcluster.store.dataSource of each",
        )
        return
    first: dict[str, str] = {}
    for name, team in settings.teams.items():
        secret = team.vcluster.store.data_source
        url = secret.get_secret_value() if secret is not None else MASK
        other = first.setdefault(url, name)
        if url != MASK and other != name:
            yield wrong_key(
                f"{settings.team_path(name)}.vcluster.store.dataSource",
                f"is the database of team {other}, and both write over each other's objects; write"
                " another database of that server",
            )


def _gpu_kinds(settings: Settings, name: str) -> Iterator[Finding]:
    """Kinds of GPUs that are none of the host's, or that a team is granted twice."""
    own, resource = settings.own_of(name), settings.gpu.resource
    pools = name in settings.teams and settings.teams[name].pools
    path = f"{settings.team_path(name)}.{'pools' if pools else 'gpus'}"
    for kind, count in own.gpus.items() if isinstance(own.gpus, dict) else ():
        if kind != resource and (resource != NVIDIA or not kind.startswith(mig.PREFIX)):
            yield wrong_key(
                path,
                f"has {kind}, and the host's GPUs are {resource} (kai-fleet:gpu.resource); write"
                f" {resource}: {count}",
            )
        elif kind in own.isolation.devices:
            yield wrong_key(path, f"has {kind}, which isolation.devices has as well; drop it there")


def _outside_queues(settings: Settings) -> Iterator[Finding]:
    """In host mode a team's GPUs are bounded by its queue, so nothing may go beside that."""
    held = [
        name
        for name, team in settings.teams.items()
        if team.scheduler.mode == "host" and team.isolation.on
    ]
    if held and settings.guard.outside_queues != "deny":
        yield wrong_key(
            key_path(("guard", "outsideQueues")),
            f"is {settings.guard.outside_queues}, but team {held[0]} is in mode host, where only"
            " its queue bounds the GPUs of fractions and whole ones together; write deny, or"
            " isolation: {level: off} for such teams",
        )


def _kais(settings: Settings) -> Iterator[tuple[str, HostKai | Scheduler]]:
    """The host's KAI and the schedulers of the teams, by their paths."""
    if settings.kai is not None:
        yield _KAI, settings.kai
    for name, team in settings.teams.items():
        yield f"{settings.team_path(name)}.scheduler", team.scheduler


def _sharing(settings: Settings) -> Iterator[Finding]:
    gpu = settings.gpu
    for path, kai in _kais(settings):
        written = kai.gpu_sharing.mode != DISABLED and "gpu_sharing" in kai.model_fields_set
        if written and not settings.shares_gpus(kai):
            yield wrong_key(
                f"{path}.gpuSharing",
                f"is on, and KAI shares only {NVIDIA}: it reserves a shared GPU by that name;"
                f" drop it, pods with {gpu.resource} get whole GPUs",
            )
    if settings.kai is not None and settings.sharing_of(settings.kai) == NV_FRACTIONS:
        needs = f"and {_KAI}.gpuSharing is {NV_FRACTIONS}, which needs NVIDIA's GPU operator"
        newest = FRACTIONS_OPERATOR
        if gpu.provider == "device-plugin":
            yield wrong_key(
                key_path(("gpu", "provider")),
                f"is device-plugin, {needs}; write operator, or none where it is",
            )
        elif gpu.version and version_key(gpu.version) < version_key(newest):
            yield wrong_key(
                key_path(("gpu", "version")),
                f"is {gpu.version}, {needs} {newest} or newer; write {newest}, or drop it",
            )


def _scheduling(
    kai: Scheduling | None,
    team_path: str,
    queues: QueueTree,
    dropped: Sequence[str],
    parent: str | None = None,
) -> Iterator[Finding]:
    """One KAI's shards and queues, which may hang below a `parent`; the host's without a path."""
    path = f"{team_path}.scheduler" if team_path else _KAI
    yield from located(path, scheduling_mistakes(kai) if kai else ())
    if not within(f"{path}.shards", dropped):  # a queue may name one that could not be read
        wrong = shard_mistakes(queues, kai.shards if kai else {}, parent)
        yield from located(f"{team_path}.queues" if team_path else _QUEUES, wrong)
