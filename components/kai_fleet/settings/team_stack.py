"""A team's own stack: its file, what its platform's stack exports, and the settings of both."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from kai_fleet.finding import Finding
from kai_fleet.releases.sharing import SharingMode
from kai_fleet.settings import Loaded, Settings
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.mistakes import key_path, validated, wrong_key
from kai_fleet.settings.sections.access import Cluster, Credentials
from kai_fleet.settings.sections.gpu_share import counted
from kai_fleet.settings.sections.isolation import Guard, Isolation, Level
from kai_fleet.settings.sections.kubernetes import Affinity, Toleration
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.monitoring import Monitoring
from kai_fleet.settings.sections.platform import Sources, StackName, TeamName
from kai_fleet.settings.sections.queues import walk
from kai_fleet.settings.sections.teams import Grant, Removed, Runs, TeamSettings
from kai_fleet.settings.sections.vcluster import Vcluster
from kai_fleet.settings.sections.workloads import Manifests
from kai_fleet.values import value_at, whole_numbers

OUTPUT: Final = "platform"  # of a platform's stack
_TEAM: Final = key_path(("team",))
_UNKNOWN_STACK: Final = re.compile("unknown stack|no stack|not found|could not find", re.I)


class PlatformReference(Strict):
    """Which stack holds the host cluster that a team stack is on."""

    stack: StackName
    """write the platform's stack: prod, or organization/project/prod"""


class OwnTeam(Runs):
    """The team of a team stack. Its nodes, GPUs and isolation are what the platform grants."""

    name: TeamName
    """write the team's name, as the platform grants it"""


class TeamStack(Strict):
    """A stack with one team on a platform that another stack holds."""

    platform: PlatformReference
    """write {stack: prod}, the platform's stack"""
    team: OwnTeam
    """write the team's name, scheduler, queues"""
    cluster: Credentials | None = None
    """Credentials of its own; else the platform's context is used."""
    removed: Removed = Field(default_factory=list)
    workloads: dict[TeamName, Manifests] = Field(default_factory=dict)
    """YAML files below the team's name: its manifests."""


class NoPlatformError(Exception):
    """The platform's facts cannot be had; the message completes "kai-fleet:platform.stack …"."""


class Fact(BaseModel):
    """Lenient where settings are strict: the platform may run a newer version of this program."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True
    )


class HostScheduler(Fact):
    """The KAI of the host."""

    version: str
    sharing_mode: SharingMode


class Granted(Fact):
    """What one team stack has: its place on the host, its GPUs, and its queue there with the shard
    that serves it and the names of the queues above it, from the top.
    """

    node_pool: dict[str, str] = Field(default_factory=dict)
    control_pool: dict[str, str] = Field(default_factory=dict)
    gpus: int | dict[str, int] = 0
    devices: dict[str, int] = Field(default_factory=dict)
    parent_queue: str | None = None
    above: list[str] = Field(default_factory=list)
    shard: str | None = None
    level: Level = "baseline"
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    tolerations: list[Toleration] = Field(default_factory=list)
    affinity: Affinity | None = None

    @property
    def counted(self) -> int:
        """All of its GPUs as KAI counts them."""
        return counted(self.gpus, self.devices)


# Of a grant and of a team alike.
_PLACE: Final = ("node_pool", "gpus", "labels", "annotations", "tolerations", "affinity")


class Facts(Fact):
    """One platform, as its team stacks see it. `registries` are those that it makes Secrets of."""

    cluster: str
    context: str | None = None  # None where the platform has its kubeconfig as a secret
    gpu_resource: str = "nvidia.com/gpu"
    gpu_provider: str = "none"
    kai: HostScheduler | None = None
    vcluster: Vcluster = Field(default_factory=Vcluster)
    guard: Guard = Field(default_factory=Guard)
    sources: Sources = Field(default_factory=Sources)
    registries: list[str] = Field(default_factory=list)
    monitoring: Monitoring | None = None
    teams: dict[str, Granted]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What a platform's stack tells its team stacks."""
        kai, places = settings.kai, {queue.name: queue for queue in walk(settings.queues)}
        mode = settings.sharing_of(kai) if kai else None
        teams = {}
        for name, grant in settings.team_stacks.items():
            above, here = list[str](), places.get(grant.parent_queue or "")
            shard = here.shard if here else None
            while here is not None and here.parent is not None:
                above.insert(0, here.parent)
                here = places.get(here.parent)
            teams[name] = Granted(
                **{key: getattr(grant, key) for key in (*_PLACE, "parent_queue")},
                control_pool=settings.vcluster.node_pool,
                above=above,
                shard=shard,
                devices=grant.isolation.devices,
                level=grant.isolation.level,
            )
        return cls(
            cluster=settings.cluster.name,
            context=settings.cluster.context,
            gpu_resource=settings.gpu.resource,
            gpu_provider=settings.gpu.provider,
            kai=HostScheduler(version=kai.version, sharing_mode=mode) if kai and mode else None,
            registries=[*settings.registries],
            teams=teams,
            **{key: getattr(settings, key) for key in _SHARED},
        )

    @classmethod
    def read(cls, output: Any) -> Self:
        """The facts from the output `platform`. Raises NoPlatformError."""
        try:
            # Outputs have no integers of their own; the settings insist on them.
            return cls.model_validate(whole_numbers(output))
        except ValidationError as why:
            detail = why.errors(include_url=False)[0]
            place = ".".join(map(str, detail["loc"]))
            raise NoPlatformError(
                f"exports something else than this version of kai-fleet reads ({place}:"
                f" {detail['msg'].lower()}); update the platform stack with this version first"
            ) from None

    def output(self) -> dict[str, Any]:
        """For the platform stack's outputs."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)

    def granted_queue(self, team: str) -> tuple[str | None, str | None]:
        """The queue of the host's tree that is a team's, and the shard that serves it, if any."""
        grant = self.teams.get(team, Granted())
        return grant.parent_queue, grant.shard


_SHARED: Final = ("vcluster", "guard", "sources", "monitoring")  # sections that hold for both


# From a stack's name to what it exports as `platform`. Raises NoPlatformError.
FactsOf = Callable[[str], Facts]
_OWN: Final = {TeamStack.key_of(name) for name in TeamStack.model_fields}
_GRANTED: Final = {Grant.key_of(name) for name in Grant.model_fields} | {"pools"}


def is_team_stack(raw: Mapping[str, Any]) -> bool:
    """Whether a stack file holds one team; `team` in a platform's file is a slip for teams."""
    return "platform" in raw or ("team" in raw and raw.keys() <= _OWN)


def platform_of(raw: Mapping[str, Any]) -> str | None:
    """The name of the platform's stack, where a stack file says one."""
    stack = value_at(raw, "platform.stack")
    return stack if isinstance(stack, str) else None


def load_team_stack(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    """A team stack's settings, and every mistake in its file or between it and the platform."""
    whole = dict(raw)
    granted = list(_granted_keys(whole))
    file, found, dropped = validated(TeamStack, whole)
    found = [*granted, *found]
    if file is None:
        return Loaded(None, tuple(found), tuple(dropped))
    try:
        facts = facts_of(file.platform.stack)
    except NoPlatformError as why:
        found.append(wrong_key(key_path(("platform", "stack")), str(why)))
        return Loaded(None, tuple(found), tuple(dropped))
    settings = as_settings(file, facts).of_file(whole, (file.platform.stack, facts))
    return Loaded.of(settings, found, dropped, _between(file, facts))


def as_settings(file: TeamStack, facts: Facts) -> Settings:
    """The settings of a stack with that one team, in the place that it is granted."""
    own, kai, name = file.cluster or Credentials(context=facts.context), facts.kai, file.team.name
    grant = facts.teams.get(name, Granted())
    runs = {key: value for key, value in file.team.written.items() if key != "name"}
    place = {key: getattr(grant, key) for key in _PLACE}
    isolation = Isolation(level=grant.level, devices=grant.devices)
    team = TeamSettings.model_validate(runs).model_copy(update={**place, "isolation": isolation})
    return Settings.model_validate(
        {
            **{key: getattr(facts, key) for key in _SHARED},
            "cluster": Cluster(name=facts.cluster, context=own.context, kubeconfig=own.kubeconfig),
            "gpu": {"resource": facts.gpu_resource, "provider": facts.gpu_provider},
            "kai": kai and {"version": kai.version, "gpuSharing": {"mode": kai.sharing_mode}},
            "vcluster": facts.vcluster.model_copy(update={"node_pool": grant.control_pool}),
            "teams": {name: team},
            "removed": file.removed,
            "workloads": file.workloads,
        }
    )


def _granted_keys(raw: dict[str, Any]) -> Iterator[Finding]:
    """Keys that only a platform's file has, which are taken out of `raw`."""
    where = platform_of(raw)
    file = f"Pulumi.{where.rpartition('/')[2]}.yaml" if where else "the platform's stack file"
    for key in map(Settings.key_of, Settings.model_fields):
        if key not in _OWN and key in raw:
            del raw[key]
            fix = f"write it in {file}: a team stack has the keys {', '.join(sorted(_OWN))}"
            yield wrong_key(key_path((key,)), f"belongs to the platform; {fix}")
    team = raw.get("team")
    if isinstance(team, Mapping) and (keys := [key for key in team if key in _GRANTED]):
        raw["team"] = {key: value for key, value in team.items() if key not in _GRANTED}
        there = key_path(("teamStacks", str(team.get("name", "NAME"))))
        cause = f"is granted by the platform's stack, as are all of {', '.join(sorted(_GRANTED))}"
        fix = f"drop {', '.join(keys)}, and have it written in {there} of {file}"
        yield wrong_key(f"{_TEAM}.{keys[0]}", f"{cause}; {fix}")


def _between(file: TeamStack, facts: Facts) -> Iterator[Finding]:
    """What does not fit between the team's file and its platform."""
    team, own = file.team, file.cluster
    where, scheduler = f"stack {file.platform.stack}", f"{_TEAM}.scheduler.mode"
    grant = facts.teams.get(team.name)
    if grant is None:
        cause = f"is not granted by {where}, which grants {', '.join(facts.teams) or 'no team'}"
        there = key_path(("teamStacks", team.name))
        fix = f"have {team.name} written there, in {there}, and update that stack first"
        yield wrong_key(f"{_TEAM}.name", f"{cause}; {fix}")
    elif team.scheduler.mode == "host" and facts.kai is None:
        cause = f"is host, and {where} runs no KAI on the host"
        yield wrong_key(scheduler, f"{cause}; write virtual or default")
    elif team.scheduler.mode == "host" and grant.parent_queue is None:
        cause = f"is host, and {where} grants the team no queue"
        yield wrong_key(scheduler, f"{cause}; have parentQueue: added to its grant")
    elif team.queue is not None and team.queue != grant.parent_queue:
        cause = f"is {team.queue}, and {where} grants {grant.parent_queue}"
        yield wrong_key(f"{_TEAM}.queue", f"{cause}; write that, or queues: {{…}} below it")
    if team.vcluster.node_pool:
        fix = "have it written there, in kai-fleet:vcluster.nodePool"
        yield wrong_key(f"{_TEAM}.vcluster.nodePool", f"is the platform's; {fix}")
    if own is None and facts.context is None:
        yield wrong_key(
            key_path(("cluster",)),
            "is missing: the platform keeps its kubeconfig to itself; write context:, or set"
            " kubeconfig as a secret, with the team's own credentials",
        )
    if own is not None and (own.context is None) == (own.kubeconfig is None):
        yield wrong_key(
            key_path(("cluster", "context")),
            "is needed, or kubeconfig, and not both; write context: with a name from"
            " `kubectl config get-contexts`, or drop cluster to use the platform's",
        )


def read_platform(stack: str) -> Facts:
    """What the platform stack of that name said at its last update. Raises NoPlatformError."""
    import pulumi
    from pulumi.runtime import invoke

    from kai_fleet.deployed import READ_OUTPUTS, full_name
    from kai_fleet.options import hide_values

    update = f"update it first: {update_command(stack.rpartition('/')[2])}"
    if full_name(stack) == full_name(pulumi.get_stack()):
        raise NoPlatformError(f"is {stack}, which is this stack itself; write the platform's stack")
    try:
        # Not by a StackReference: the rules must have the answer before anything is declared.
        answer: Any = invoke(READ_OUTPUTS, {"name": full_name(stack)}).value or {}
    except Exception as why:
        if _UNKNOWN_STACK.search(str(why)):
            raise NoPlatformError(f"is {stack}, and there is no such stack; {update}") from None
        reason = str(why).strip().rpartition("\n")[2][:200]
        raise NoPlatformError(f"is {stack}, whose outputs cannot be read ({reason})") from None
    outputs = answer.get("outputs") or {}
    if OUTPUT not in outputs:
        lacks = "exports no platform" if outputs else "has never been updated"
        raise NoPlatformError(
            f"is {stack}, which {lacks}: it is no platform stack of kai-fleet, or an older one;"
            f" {update}"
        )
    if OUTPUT in (answer.get("secretOutputNames") or ()):
        hide_values()  # an invoke answers in clear
    try:
        return Facts.read(outputs[OUTPUT])
    except NoPlatformError as why:
        raise NoPlatformError(f"is {stack}, which {why}") from None
