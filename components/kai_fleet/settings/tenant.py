"""A team stack's settings: its one team, on the platform that its file names."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kai_fleet.settings import Loaded, Mistake, Settings, key_path, validated
from kai_fleet.settings.cross_checks import (
    entry_mistakes,
    gpu_kind_mistakes,
    of_scheduling,
    removed_mistakes,
    vcluster_mistakes,
    workload_mistakes,
)
from kai_fleet.settings.files.queue_files import with_trees
from kai_fleet.settings.mistakes import located, within
from kai_fleet.settings.sections.access import Cluster, Credentials
from kai_fleet.settings.sections.gpu_share import GpuSharing
from kai_fleet.settings.sections.platform import Gpu, HostKai
from kai_fleet.settings.sections.team_stack import NoPlatformError, PlatformFacts, TeamStack
from kai_fleet.settings.sections.teams import HostPlace, mode_mistakes

# From a stack's name to what it exports as `platform`. Raises NoPlatformError.
FactsOf = Callable[[str], PlatformFacts]

_TEAM: Final = key_path(("team",))
_CLUSTER: Final = key_path(("cluster",))
_PLATFORM_KEYS: Final = {
    Settings.key_of(name) for name in Settings.model_fields if name not in TeamStack.model_fields
}


class Tenant(Settings):
    """A team stack as the program sees it: a stack whose host cluster is somebody else's.

    `teams` holds its one team; what it shares with everybody comes from the platform.
    """

    stack: str
    platform: PlatformFacts

    @property
    def platform_facts(self) -> PlatformFacts:
        """What it knows of its platform."""
        return self.platform

    @property
    def platform_stack(self) -> str:
        """The stack that has its host cluster."""
        return self.stack

    def team_path(self, team: str) -> str:
        """The one team's key."""
        return _TEAM


def is_team_stack(raw: Mapping[str, Any]) -> bool:
    """Whether a stack file holds one team, and not a platform."""
    return "team" in raw or "platform" in raw


def platform_of(raw: Mapping[str, Any]) -> str | None:
    """The name of the platform's stack, where a stack file says one."""
    reference = raw.get("platform")
    stack = reference.get("stack") if isinstance(reference, Mapping) else None
    return stack if isinstance(stack, str) else None


def load_tenant(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    """A team stack's settings, and every mistake in its file or between it and the platform."""
    # Of a platform's file that says `team` for `teams`, or a grant's for the grants.
    if "platform" not in raw and "teams" not in raw and raw.keys() & _PLATFORM_KEYS:
        said = "is for a team's own stack; write kai-fleet:teams, with each team below its name"
        return Loaded(None, (Mistake(_TEAM, said),), (_TEAM,))
    found = list(_foreign(raw))
    rest = {key: value for key, value in raw.items() if key not in _PLATFORM_KEYS}
    name = rest.get("cluster")
    if isinstance(name, Mapping) and "name" in name:
        rest["cluster"] = {key: value for key, value in name.items() if key != "name"}
        said = "is the platform's; drop it, and keep context or kubeconfig"
        found.append(Mistake(f"{_CLUSTER}.name", said))
    whole, unread = with_trees(rest)
    file, wrong, dropped = validated(TeamStack, whole, elsewhere=Settings)
    dropped += [mistake.path for mistake in unread]
    found += [*unread, *wrong]
    if file is None:
        return Loaded(None, tuple(found), tuple(dropped))
    try:
        tenant = _tenant(file, facts_of(file.platform.stack))
    except NoPlatformError as why:
        found.append(Mistake(key_path(("platform", "stack")), str(why)))
        return Loaded(None, tuple(found), tuple(dropped))
    between = _between(file, tenant, dropped)
    found += [mistake for mistake in between if not within(mistake.path, dropped)]
    return Loaded(tenant, tuple(found), tuple(dropped), tenant)


def _between(file: TeamStack, tenant: Tenant, dropped: list[str]) -> Iterator[Mistake]:
    """What only shows when several keys are looked at together, with the platform's."""
    team, facts = file.team, tenant.platform
    in_host_mode = team.scheduler.mode == "host"
    yield from located(_TEAM, mode_mistakes(team, own_stack=True))
    yield from of_scheduling(
        team.scheduler,
        f"{_TEAM}.scheduler",
        team.queues,
        f"{_TEAM}.queues",
        dropped,
        facts.granted_queue(team.name)[0] if in_host_mode else None,
    )
    if in_host_mode and facts.kai is None:
        yield Mistake(
            f"{_TEAM}.scheduler.mode",
            f"is host, and platform {tenant.stack} has no KAI on its host; write mode: virtual"
            " with a version",
        )
    yield from removed_mistakes(tenant)
    yield from vcluster_mistakes(tenant)
    yield from entry_mistakes(tenant, team.name)
    yield from gpu_kind_mistakes(tenant, team.name)
    yield from workload_mistakes(tenant, dropped)
    yield from _credentials(file.cluster, facts)
    if "node_pool" in team.vcluster.model_fields_set:
        yield Mistake(
            f"{_TEAM}.vcluster.nodePool",
            "is the platform's; have it written there, in kai-fleet:vcluster.nodePool",
        )
    for name in HostPlace.model_fields:
        if name in team.model_fields_set:
            key = HostPlace.key_of(name)
            there = key_path(("teamStacks", team.name, key))
            yield Mistake(f"{_TEAM}.{key}", f"is the platform's; have it written there, in {there}")


def _tenant(file: TeamStack, facts: PlatformFacts) -> Tenant:
    own = file.cluster or Credentials(context=facts.cluster.context)
    kai = facts.kai
    place = facts.team_stacks.get(file.team.name, HostPlace())
    return Tenant(
        stack=file.platform.stack,
        platform=facts,
        cluster=Cluster(name=facts.cluster.name, context=own.context, kubeconfig=own.kubeconfig),
        gpu=Gpu.model_validate({"resource": facts.gpu_resource, "provider": facts.gpu_provider}),
        kai=HostKai(version=kai.version, gpu_sharing=GpuSharing(mode=kai.mode)) if kai else None,
        vcluster=facts.vcluster,
        guard=facts.guard,
        monitoring=facts.monitoring,
        isolation=facts.isolation.over(place.isolation),
        labels=place.labels,
        annotations=place.annotations,
        tolerations=place.tolerations,
        affinity=place.affinity,
        sources=facts.sources,
        teams={file.team.name: file.team},
        removed=file.removed,
        workloads=file.workloads,
    )


def _foreign(raw: Mapping[str, Any]) -> Iterator[Mistake]:
    """Keys that only a platform stack has."""
    where = platform_of(raw)
    file = f"Pulumi.{where.rpartition('/')[2]}.yaml" if where else "the platform's stack file"
    for key in raw:
        if key in _PLATFORM_KEYS:
            yield Mistake(
                key_path((key,)),
                f"belongs to the platform: write it in {file}; a team stack has the keys"
                f" {', '.join(sorted(TeamStack.model_fields))}",
            )


def _credentials(own: Credentials | None, facts: PlatformFacts) -> Iterator[Mistake]:
    if own is None and facts.cluster.context is None:
        yield Mistake(
            _CLUSTER,
            "is missing: the platform keeps its kubeconfig to itself; write context:, or set"
            " kubeconfig as a secret, with the team's own credentials",
        )
    if own is not None and (own.context is None) == (own.kubeconfig is None):
        yield Mistake(
            f"{_CLUSTER}.context",
            "is needed, or kubeconfig, and not both; write context: with a name from"
            " `kubectl config get-contexts`, or drop cluster to use the platform's",
        )
