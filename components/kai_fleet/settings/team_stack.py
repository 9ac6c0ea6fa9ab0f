"""A team's own stack: its file, what its platform's stack exports, and the settings of both."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self

from pydantic import ConfigDict, Field, ValidationError

from kai_fleet.settings import Loaded, Platform, Settings, checked
from kai_fleet.settings.files.manifests import Manifests
from kai_fleet.settings.files.project import update_command
from kai_fleet.settings.mistakes import validated, wrong_key
from kai_fleet.settings.sections.access import Cluster, Credentials, Mirror
from kai_fleet.settings.sections.models import Strict
from kai_fleet.settings.sections.platform import HostKai, Name, StackName, TeamName
from kai_fleet.settings.sections.queues import walk
from kai_fleet.settings.sections.teams import REMOVED, Grant, Runs, TeamSettings
from kai_fleet.values import value_at, whole_numbers

OUTPUT: Final = "platform"  # of a platform's stack


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
    removed: list[Name] = Field(default_factory=list, description=REMOVED)
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
    above: list[str] = Field(default_factory=list)
    shard: str | None = None


class Facts(Platform):
    """One platform, as its team stacks see it. `registries` are those that it makes Secrets of;
    `stack` is its name, which it does not export; `secret`: its stack encrypts them.
    """

    model_config = _LENIENT
    stack: str = ""
    cluster: str
    context: str | None = None  # None where the platform has its kubeconfig as a secret
    registries: list[str] = Field(default_factory=list)
    teams: dict[str, Granted]
    secret: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """What a platform's stack exports for its team stacks."""
        kai, mirror, teams = settings.kai, settings.mirror, dict[str, Granted]()
        queues = {queue.name: queue for queue in walk(settings.queues)}
        for name, grant in settings.team_stacks.items():
            queue = queues.get(grant.parent_queue or "")
            above, shard = ([*queue.above], queue.shard) if queue else ([], None)
            teams[name] = Granted(**dict(grant), above=above, shard=shard)
        if kai is not None:
            kai = HostKai(version=kai.version, gpu_sharing=settings.sharing_of(kai))
        return cls(
            cluster=settings.cluster.name,
            context=settings.cluster.context,
            registries=[*settings.registries],
            teams=teams,
            **{key: getattr(settings, key) for key in Platform.model_fields}
            | {"kai": kai, "mirror": mirror and Mirror(registry=mirror.registry)},
        )

    @classmethod
    def read(cls, output: Any) -> Self:
        """The facts from the output `platform`. Raises NoPlatformError."""
        try:
            # Outputs have no integers of their own; the settings insist on them.
            return cls.model_validate(whole_numbers(output))
        except ValidationError:
            raise NoPlatformError(
                "exports something else than this version of kai-fleet reads; update the platform"
                " stack with this version first"
            ) from None

    def output(self) -> dict[str, Any]:
        """For the platform stack's outputs."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)

    def granted(self, team: str) -> Granted:
        """What a team has; nothing where it is not granted."""
        return self.teams.get(team, Granted())


def is_team_stack(raw: Mapping[str, Any]) -> bool:
    """Whether a stack file holds one team, on a platform that another stack holds."""
    return "platform" in raw


def platform_of(raw: Mapping[str, Any]) -> str | None:
    """The name of the platform's stack, where a stack file says one."""
    stack = value_at(raw, "platform.stack")
    return stack if isinstance(stack, str) else None


def load_team_stack(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    """A team stack's settings, and every mistake in its file or between it and the platform."""
    file, found = validated(TeamStack, raw)
    if file is None:
        return Loaded(None, tuple(found))
    try:
        facts = facts_of(file.platform.stack)
    except NoPlatformError as why:
        return Loaded(None, (*found, wrong_key("kai-fleet:platform.stack", str(why))))
    facts = facts.model_copy(update={"stack": file.platform.stack})
    found += (wrong_key(f"kai-fleet:team.{key}", message) for key, message in _between(file, facts))
    return checked(_settings(file, facts).of_file(raw, facts), found)


def _settings(file: TeamStack, facts: Facts) -> Settings:
    """The settings of a stack with that one team, in the place that it is granted."""
    own, name = file.cluster or Credentials(context=facts.context), file.team.name
    runs = {key: getattr(file.team, key) for key in file.team.model_fields_set - {"name"}}
    grant = {key: value for key, value in facts.granted(name) if key in TeamSettings.model_fields}
    settings = Settings.model_validate(
        {
            **{key: getattr(facts, key) for key in Platform.model_fields},
            "cluster": Cluster(name=facts.cluster, **dict(own)),
            "teams": {name: TeamSettings.model_validate({**runs, **grant})},
            "removed": file.removed,
        }
    )
    return settings.model_copy(update={"workloads": file.workloads})


def _between(file: TeamStack, facts: Facts) -> Iterator[tuple[str, str]]:
    """What does not fit between the team's file and its platform: (key of the team, sentence)."""
    team, where = file.team, f"stack {facts.stack}"
    queue = facts.granted(team.name).parent_queue
    if team.name not in facts.teams:
        cause = f"is not granted by {where}, which grants {', '.join(facts.teams) or 'no team'}"
        there = f"kai-fleet:teamStacks.{team.name}"
        yield "name", f"{cause}; have it written there, in {there}, and update that first"
    elif team.scheduler.mode == "host" and (facts.kai is None or queue is None):
        cause = f"is host, and {where} grants the team no queue of a KAI on the host"
        fix = "write virtual or default, or have parentQueue: added to its grant"
        yield "scheduler.mode", f"{cause}; {fix}"
    elif team.scheduler.mode == "host" and team.queue not in (None, queue):
        cause = f"is {team.queue}, and {where} grants {queue}"
        yield "queue", f"{cause}; write that, or queues: {{…}} below it"


def read_platform(stack: str) -> Facts:
    """The facts that the platform stack of that name exports. Raises NoPlatformError."""
    from pulumi.runtime import invoke

    from kai_fleet.deployed import READ_OUTPUTS, full_name

    update = f"update it first: {update_command(stack.rpartition('/')[2])}"
    try:
        # Not by a StackReference: the rules must have the answer before anything is declared.
        answer: Any = invoke(READ_OUTPUTS, {"name": full_name(stack)}).value or {}
    except Exception as why:
        reason = str(why).strip().rpartition("\n")[2][:200]
        raise NoPlatformError(f"is {stack}, which cannot be read ({reason}); {update}") from None
    if OUTPUT not in (outputs := answer.get("outputs") or {}):
        raise NoPlatformError(f"is {stack}, which exports no platform; {update}")
    secret = OUTPUT in (answer.get("secretOutputNames") or ())  # an invoke answers in clear
    return Facts.read(outputs[OUTPUT]).model_copy(update={"secret": secret})
