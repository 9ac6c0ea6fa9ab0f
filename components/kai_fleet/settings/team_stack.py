"""A team's own stack: its file, what its platform's stack exports, and the settings of both."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self

from pydantic import ConfigDict, Field, ValidationError

from kai_fleet.settings import Loaded, Settings
from kai_fleet.settings.files.named import Manifests
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.mistakes import validated, wrong_key
from kai_fleet.settings.sections.access import Cluster, Credentials
from kai_fleet.settings.sections.isolation import Guard, Isolation
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import (
    Gpu,
    GpuSharing,
    HostKai,
    Monitoring,
    Sources,
    StackName,
    TeamName,
)
from kai_fleet.settings.sections.queues import walk
from kai_fleet.settings.sections.teams import Grant, Removed, Runs, TeamSettings
from kai_fleet.settings.sections.vcluster import Vcluster
from kai_fleet.values import value_at, whole_numbers

OUTPUT: Final = "platform"  # of a platform's stack
_SHARED: Final = ("vcluster", "guard", "sources", "monitoring")  # sections that hold for both
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


# From a stack's name to what it exports as `platform`. Raises NoPlatformError.
FactsOf = Callable[[str], "Facts"]
# The platform may run a newer version of this program, with keys that are unknown here.
_LENIENT: Final = ConfigDict(extra="ignore")


class Granted(Grant):
    """What one team stack has; of its queue on the host the shard that serves it, and the names of
    the queues above it, from the top.
    """

    model_config = _LENIENT
    control_pool: dict[str, str] = Field(default_factory=dict)
    above: list[str] = Field(default_factory=list)
    shard: str | None = None


class Facts(Strict):
    """One platform, as its team stacks see it. `registries` are those that it makes Secrets of;
    `secret`: its stack encrypts them.
    """

    model_config = _LENIENT
    cluster: str
    context: str | None = None  # None where the platform has its kubeconfig as a secret
    gpu: Gpu = Field(default_factory=Gpu)
    kai: HostKai | None = None
    vcluster: Vcluster = Field(default_factory=Vcluster)
    guard: Guard = Field(default_factory=Guard)
    sources: Sources = Field(default_factory=Sources)
    monitoring: Monitoring | None = None
    registries: list[str] = Field(default_factory=list)
    teams: dict[str, Granted]
    secret: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What a platform's stack exports for its team stacks."""
        kai, gpu, teams = settings.kai, settings.gpu, dict[str, Granted]()
        queues = {queue.name: queue for queue in walk(settings.queues)}
        for name, grant in settings.team_stacks.items():
            queue, own = queues.get(grant.parent_queue or ""), grant.isolation
            teams[name] = Granted(
                **{key: getattr(grant, key) for key in Grant.model_fields if key != "isolation"},
                isolation=Isolation(level=own.level, devices=own.devices),
                control_pool=settings.vcluster.node_pool,
                above=list(queue.above) if queue else [],
                shard=queue.shard if queue else None,
            )
        if kai is not None:
            sharing = GpuSharing(mode=settings.sharing_of(kai))
            kai = HostKai(version=kai.version, gpu_sharing=sharing)
        return cls(
            cluster=settings.cluster.name,
            context=settings.cluster.context,
            gpu=Gpu(resource=gpu.resource, provider=gpu.provider),
            kai=kai,
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


def is_team_stack(raw: Mapping[str, Any]) -> bool:
    """Whether a stack file holds one team; `team` in a platform's file is a slip for teams."""
    own = {TeamStack.key_of(name) for name in TeamStack.model_fields}
    return "platform" in raw or ("team" in raw and raw.keys() <= own)


def platform_of(raw: Mapping[str, Any]) -> str | None:
    """The name of the platform's stack, where a stack file says one."""
    stack = value_at(raw, "platform.stack")
    return stack if isinstance(stack, str) else None


def load_team_stack(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    """A team stack's settings, and every mistake in its file or between it and the platform."""
    file, found, dropped = validated(TeamStack, raw)
    if file is None:
        return Loaded.of(None, found, dropped)
    try:
        facts = facts_of(file.platform.stack)
    except NoPlatformError as why:
        return Loaded.of(None, [*found, wrong_key("kai-fleet:platform.stack", str(why))], dropped)
    settings = _settings(file, facts).of_file(raw, (file.platform.stack, facts))
    between = (wrong_key(f"kai-fleet:{key}", message) for key, message in _between(file, facts))
    return Loaded.of(settings, found, dropped, between)


def _settings(file: TeamStack, facts: Facts) -> Settings:
    """The settings of a stack with that one team, in the place that it is granted."""
    own, name = file.cluster or Credentials(context=facts.context), file.team.name
    grant = facts.teams.get(name, Granted())
    runs = {key: getattr(file.team, key) for key in file.team.model_fields_set - {"name"}}
    place = {key: getattr(grant, key) for key in Grant.model_fields if key != "parent_queue"}
    return Settings.model_validate(
        {
            **{key: getattr(facts, key) for key in (*_SHARED, "gpu", "kai")},
            "cluster": Cluster(name=facts.cluster, **dict(own)),
            "vcluster": facts.vcluster.model_copy(update={"node_pool": grant.control_pool}),
            "teams": {name: TeamSettings.model_validate({**runs, **place})},
            "removed": file.removed,
            "workloads": file.workloads,
        }
    )


def _between(file: TeamStack, facts: Facts) -> Iterator[tuple[str, str]]:
    """What does not fit between the team's file and its platform: (key, sentence)."""
    team, own, where = file.team, file.cluster, f"stack {file.platform.stack}"
    grant = facts.teams.get(team.name)
    if grant is None:
        cause = f"is not granted by {where}, which grants {', '.join(facts.teams) or 'no team'}"
        there = f"kai-fleet:teamStacks.{team.name}"
        yield "team.name", f"{cause}; have it written there, in {there}, and update that first"
    elif team.scheduler.mode == "host":
        if facts.kai is None:
            cause = f"is host, and {where} runs no KAI on the host"
            yield "team.scheduler.mode", f"{cause}; write virtual or default"
        elif grant.parent_queue is None:
            cause = f"is host, and {where} grants the team no queue"
            yield "team.scheduler.mode", f"{cause}; have parentQueue: added to its grant"
        elif team.queue not in (None, grant.parent_queue):
            cause = f"is {team.queue}, and {where} grants {grant.parent_queue}"
            yield "team.queue", f"{cause}; write that, or queues: {{…}} below it"
    if team.vcluster.node_pool:
        fix = "have it written there, in kai-fleet:vcluster.nodePool"
        yield "team.vcluster.nodePool", f"is the platform's; {fix}"
    ways = (own.context, own.kubeconfig) if own else (facts.context,)
    if sum(way is not None for way in ways) != 1:
        yield (
            "cluster.context",
            "is needed, or kubeconfig as a secret, and not both: the team's own credentials, as the"
            " platform keeps its kubeconfig to itself; write context: with a name from"
            " `kubectl config get-contexts`",
        )


def read_platform(stack: str) -> Facts:
    """The facts that the platform stack of that name exports. Raises NoPlatformError."""
    import pulumi
    from pulumi.runtime import invoke

    from kai_fleet.deployed import READ_OUTPUTS, full_name

    update = f"update it first: {update_command(stack.rpartition('/')[2])}"
    if full_name(stack) == full_name(pulumi.get_stack()):
        raise NoPlatformError(f"is {stack}, which is this stack itself; write the platform's stack")
    try:
        # Not by a StackReference: the rules must have the answer before anything is declared.
        answer: Any = invoke(READ_OUTPUTS, {"name": full_name(stack)}).value or {}
    except Exception as why:
        reason = str(why).strip().rpartition("\n")[2][:200]
        unknown = _UNKNOWN_STACK.search(str(why))
        cause = "and there is no such stack" if unknown else f"which cannot be read ({reason})"
        raise NoPlatformError(f"is {stack}, {cause}; {update}") from None
    outputs = answer.get("outputs") or {}
    if OUTPUT in outputs:
        secret = OUTPUT in (answer.get("secretOutputNames") or ())  # an invoke answers in clear
        return Facts.read(outputs[OUTPUT]).model_copy(update={"secret": secret})
    lacks = "exports no platform" if outputs else "has never been updated"
    raise NoPlatformError(f"is {stack}, which {lacks}; {update}")
