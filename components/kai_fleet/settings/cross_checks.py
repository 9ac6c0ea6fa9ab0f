"""What only shows when several keys of a stack file are looked at together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kai_fleet.releases import DISABLED, KAI, advised, mig, version_key
from kai_fleet.releases.sharing import FRACTIONS_OPERATOR, NV_FRACTIONS
from kai_fleet.settings.mistakes import Mistake, key_path, located, within
from kai_fleet.settings.sections.access import access_mistakes, port_mistakes
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


def between_keys(settings: Settings, dropped: Sequence[str]) -> Iterator[Mistake]:
    """What only shows when several keys are looked at together; `dropped` paths are left out."""
    cluster = settings.cluster
    ways = (cluster.context, cluster.kubeconfig, cluster.kind)
    if sum(way is not None for way in ways) != 1:
        yield Mistake(
            key_path(("cluster", "context")),
            "is needed, or kubeconfig, or kind, and only one of them: the program never takes"
            " whatever cluster happens to be current; write context: with a name from"
            " `kubectl config get-contexts`, or kind: {} for a new one on this machine",
        )
    yield from _without_kai(settings)
    yield from removed_mistakes(settings)
    yield from _sharing(settings)
    for name in (*settings.teams, *settings.team_stacks):
        yield from gpu_kind_mistakes(settings, name)
    if settings.gpu.resource != NVIDIA and settings.gpu.provider != "none":
        yield Mistake(
            key_path(("gpu", "provider")),
            f"is NVIDIA's; nodes with {settings.gpu.resource} need their vendor's own, installed"
            " beside this program: write none",
        )
    if settings.gpu.system_priorities and settings.gpu.provider == "none":
        yield Mistake(
            key_path(("gpu", "systemPriorities")),
            "has no effect: with provider none nothing is installed that needs it; leave it out, or"
            " write operator or device-plugin for the provider",
        )
    yield from of_scheduling(settings.kai, _KAI, settings.queues, _QUEUES, dropped)
    for name, team in settings.teams.items():
        path = settings.team_path(name)
        yield from of_scheduling(
            team.scheduler, f"{path}.scheduler", team.queues, f"{path}.queues", dropped
        )
        yield from located(path, mode_mistakes(team))
    yield from vcluster_mistakes(settings)
    # Once each: what is written for all teams is wrong for all.
    yield from dict.fromkeys(it for name in settings.teams for it in entry_mistakes(settings, name))
    yield from _outside_queues(settings)
    yield from _of_monitoring(settings)
    yield from _of_kind(settings)


def _without_kai(settings: Settings) -> Iterator[Mistake]:
    """Teams and queues that need a KAI on the host, where none is declared."""
    if settings.kai is not None:
        return
    in_host_mode = [n for n, team in settings.teams.items() if team.scheduler.mode == "host"]
    if in_host_mode:
        need = f"team {in_host_mode[0]} is in mode host"
    elif settings.queues:
        need = f"{_QUEUES} are the host's queues"
    else:
        return
    yield Mistake(
        _KAI,
        f"is missing: {need}, and no KAI is declared for the host; write"
        f" {{version: {advised(KAI) or EXAMPLE_VERSION}}}",
    )


def removed_mistakes(settings: Settings) -> Iterator[Mistake]:
    """Teams that may go and are there: they could go by a slip later."""
    for name in settings.removed:
        if name in settings.teams:
            instead = f"take it out of here, or out of {settings.team_path(name)}"
            yield Mistake(key_path(("removed",)), f"names {name}, which is a team still; {instead}")


def vcluster_mistakes(settings: Settings) -> Iterator[Mistake]:
    """What does not fit together in the teams' vClusters, the stack's defaults filled in, where it
    stands: a default of the stack's once.
    """
    yield from dict.fromkeys(it for name in settings.teams for it in _of_vcluster(settings, name))
    yield from _databases(settings)


def _of_vcluster(settings: Settings, name: str) -> Iterator[Mistake]:
    """Of one team, at the stack's own key where that says it."""
    access, store = settings.access_of(name), settings.vcluster_of(name).store
    mistakes = [("access", *it) for it in access_mistakes(access)]
    if settings.platform_facts is not None and access.type == "Gateway":
        sentence = (
            "is Gateway, and a team's own stack may make no TLSRoute; write Ingress or"
            " LoadBalancer, or have the platform's stack run the team"
        )
        mistakes.append(("access", "type", sentence))
    mistakes += [("store", *it) for it in store_mistakes(store)]
    for section, key, sentence in mistakes:
        yield Mistake(settings.written_at(name, "vcluster", section, key), sentence)


def _databases(settings: Settings) -> Iterator[Mistake]:
    """Each vCluster has a database to itself: two in one write over each other's objects."""
    if settings.vcluster.store.data_source is not None:
        yield Mistake(
            key_path(("vcluster", "store", "dataSource")),
            "is one database for all teams, and each writes over the others' objects; write one at"
            f" {_TEAMS}.NAME.vcluster.store.dataSource of each",
        )
    first: dict[str, str] = {}
    for name, team in settings.teams.items():
        secret = team.vcluster.store.data_source
        url = secret.get_secret_value() if secret is not None else MASK
        other = first.setdefault(url, name)
        if url != MASK and other != name:
            yield Mistake(
                f"{settings.team_path(name)}.vcluster.store.dataSource",
                f"is the database of team {other}, and both write over each other's objects; write"
                " another database of that server",
            )


def gpu_kind_mistakes(settings: Settings, name: str) -> Iterator[Mistake]:
    """Kinds of GPUs that are none of the host's, or that a team is granted twice."""
    gpus, resource = settings.own_of(name).gpus, settings.gpu.resource
    pools = name in settings.teams and settings.teams[name].pools
    path = f"{settings.team_path(name)}.{'pools' if pools else 'gpus'}"
    for kind, count in gpus.items() if isinstance(gpus, dict) else ():
        if kind != resource and (resource != NVIDIA or not kind.startswith(mig.PREFIX)):
            yield Mistake(
                path,
                f"has {kind}, and the host's GPUs are {resource} (kai-fleet:gpu.resource); write"
                f" {resource}: {count}",
            )
        elif kind in settings.isolation_of(name).devices:
            yield Mistake(path, f"has {kind}, which isolation.devices has as well; drop it there")


def entry_mistakes(settings: Settings, team: str) -> Iterator[Mistake]:
    """What does not fit together of who enters a team's vCluster, with the stack's defaults."""
    vcluster = settings.vcluster_of(team)
    for key, sentence in oidc_mistakes(vcluster.oidc, vcluster.groups, vcluster.values):
        yield Mistake(settings.written_at(team, "vcluster", *key.split(".")), sentence)


def _outside_queues(settings: Settings) -> Iterator[Mistake]:
    """In host mode a team's GPUs are bounded by its queue, so nothing may go beside that (T13)."""
    held = [
        name
        for name, team in settings.teams.items()
        if team.scheduler.mode == "host" and settings.isolation_of(name).on
    ]
    if held and settings.guard.outside_queues != "deny":
        yield Mistake(
            key_path(("guard", "outsideQueues")),
            f"is {settings.guard.outside_queues}, but team {held[0]} is in mode host, where only"
            " its queue bounds the GPUs of fractions and whole ones together; write deny, or"
            " isolation: {level: off} for such teams",
        )


def _of_monitoring(settings: Settings) -> Iterator[Mistake]:
    if settings.monitoring is None:
        return
    yield from located(key_path(("monitoring",)), monitoring_mistakes(settings.monitoring))
    for path, kai in _kais(settings):
        yield from located(f"{path}.values", moved_metrics(kai.values))


def _kais(settings: Settings) -> Iterator[tuple[str, HostKai | Scheduler]]:
    """The host's KAI and the schedulers of the teams, by their paths."""
    if settings.kai is not None:
        yield _KAI, settings.kai
    for name, team in settings.teams.items():
        yield f"{settings.team_path(name)}.scheduler", team.scheduler


def _sharing(settings: Settings) -> Iterator[Mistake]:
    for path, kai in _kais(settings):
        written = kai.gpu_sharing.mode != DISABLED and "gpu_sharing" in kai.model_fields_set
        if written and not settings.shares_gpus(kai):
            yield Mistake(
                f"{path}.gpuSharing",
                f"is on, and KAI shares only {NVIDIA}: it reserves a shared GPU by that name;"
                f" drop it, pods with {settings.gpu.resource} get whole GPUs",
            )
    if settings.kai is not None and settings.sharing_of(settings.kai) == NV_FRACTIONS:
        gpu, wanted = settings.gpu, FRACTIONS_OPERATOR
        needs = f"and {_KAI}.gpuSharing is {NV_FRACTIONS}, which needs NVIDIA's GPU"
        if gpu.provider == "device-plugin":
            yield Mistake(
                key_path(("gpu", "provider")),
                f"is device-plugin, {needs} operator; write operator, or none where it is",
            )
        elif gpu.version and version_key(gpu.version) < version_key(wanted):
            yield Mistake(
                key_path(("gpu", "version")),
                f"is {gpu.version}, {needs} operator {wanted} or newer; write {wanted}, or drop it",
            )


def of_scheduling(
    scheduling: Scheduling | None,
    path: str,
    queues: QueueTree,
    queues_path: str,
    dropped: Sequence[str],
    parent: str | None = None,
) -> Iterator[Mistake]:
    """What is wrong with one KAI's scheduling and its queues, which may hang below a `parent`."""
    yield from located(path, scheduling_mistakes(scheduling) if scheduling else ())
    if not within(f"{path}.shards", dropped):  # a queue may name one that could not be read
        shards = scheduling.shards if scheduling else {}
        yield from located(queues_path, shard_mistakes(queues, shards, parent))


def _of_kind(settings: Settings) -> Iterator[Mistake]:
    """What a kind cluster cannot serve."""
    if settings.cluster.kind is not None:
        accesses = {name: settings.access_of(name) for name in settings.teams}
        for team, key, sentence in port_mistakes(settings.cluster.kind, accesses):
            place = key_path(("teams", team, "vcluster", "access", key))  # a port is of one team
            if key == "type":
                place = settings.written_at(team, "vcluster", "access", key)
            yield Mistake(place, sentence)


def workload_mistakes(settings: Settings, dropped: Sequence[str]) -> Iterator[Mistake]:
    """Manifests of a team that is not there."""
    for name in settings.workloads:
        if name not in settings.teams and not within(f"{_TEAMS}.{name}", dropped):
            known = ", ".join(settings.teams) or "none yet"
            sentence = f"is for no team of this stack; the teams: {known}"
            yield Mistake(key_path(("workloads", name)), sentence)
