"""A team's own stack: its file, the facts that its platform's stack exports, and its settings."""

from collections.abc import Callable, Mapping
from typing import Any, Self

from pulumi.runtime import invoke
from pydantic import Field, ValidationError

from kai_fleet.ownership.deployed import READ_OUTPUTS, full_name
from kai_fleet.values import value_at, whole_numbers
from kai_fleet_stack.project import update_command
from kai_fleet_stack.settings import Platform, Settings
from kai_fleet_stack.settings.files.manifests import Manifests
from kai_fleet_stack.settings.loading import Loaded, with_mistakes_between_keys
from kai_fleet_stack.settings.mistakes import model_and_mistakes, wrong_key
from kai_fleet_stack.settings.sections.access import Cluster, Credentials, Mirror
from kai_fleet_stack.settings.sections.models import NO_ENTRIES, NO_KEYS, Mistakes, Strict
from kai_fleet_stack.settings.sections.platform import HostKai, Name, StackName, TeamName
from kai_fleet_stack.settings.sections.queues import walk
from kai_fleet_stack.settings.sections.teams import (
    LENIENT,
    REMOVED,
    Granted,
    Runs,
    TeamSettings,
)

OUTPUT = "platform"  # name of an output of a platform's stack


class PlatformReference(Strict):
    """The stack that declares the host cluster, and grants the team its resources there."""

    stack: StackName
    """Its name: prod, or organization/project/prod."""


class OwnTeam(Runs):
    """The team. The platform's stack sets its nodes, GPUs and isolation."""

    name: TeamName
    """Its name, as the platform grants it."""


class TeamStack(Strict):
    """A stack file with one team, whose host cluster another stack declares."""

    platform: PlatformReference
    """The platform's stack."""
    team: OwnTeam
    """The team: its name, scheduler, queues and vCluster."""
    cluster: Credentials | None = None
    """Credentials for the host cluster. Default: the context of the platform's stack."""
    removed: list[Name] = Field(default_factory=list, description=REMOVED)
    workloads: dict[TeamName, Manifests] = NO_KEYS
    """YAML files below the team's name, with Kubernetes objects that are created inside its
    vCluster. Default: none.
    """


class NoPlatformError(Exception):
    """The facts of a platform cannot be read. The message is a predicate for the key
    `kai-fleet:platform.stack`: `is prod, which exports no platform; …`.
    """


# Reads the facts that the stack of this name exports; raises NoPlatformError.
FactsOf = Callable[[str], "Facts"]


class Facts(Platform):
    """What a platform's stack exports for its team stacks.

    `stack` is the stack's name and `secret` whether it exports the facts as a secret. It exports
    neither: `load_team_stack` sets the one, `read_platform` the other. `cluster` is the name of the
    host cluster, `context` None for one with a kubeconfig or of kind. `registries` are the names of
    those with credentials in an image pull Secret. `teams` has the grants, by team. Unknown keys
    are ignored here and in a grant, and refused in sections below.
    """

    model_config = LENIENT
    stack: str = ""
    cluster: str
    context: str | None = None
    registries: list[str] = NO_ENTRIES
    teams: dict[str, Granted]
    secret: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The facts of a platform's stack, without secrets: of a mirror only the registry.

        The settings have to be without mistakes: a database at kai-fleet:vcluster, which is one,
        would stay in the facts. Of the host's KAI they have the version, and the mode in which it
        does share GPUs, by `sharing_of`.
        """
        platform = {key: getattr(settings, key) for key in Platform.model_fields}
        kai = settings.kai
        if kai is not None:
            platform["kai"] = HostKai(version=kai.version, gpu_sharing=settings.sharing_of(kai))
        if settings.mirror is not None:
            platform["mirror"] = Mirror(registry=settings.mirror.registry)
        return cls(
            cluster=settings.cluster.name,
            context=settings.cluster.context,
            registries=list(settings.registries),
            teams=_granted(settings),
            **platform,
        )

    @classmethod
    def read(cls, output: object) -> Self:
        """The facts in the output `platform`, still without `stack` and `secret`.

        Raises:
            NoPlatformError: the output has another form, of another version of this program, such
                as a section with a key that this one does not know.
        """
        try:
            # The engine gives integers as floats, which the settings refuse.
            return cls.model_validate(whole_numbers(output))
        except ValidationError:
            raise NoPlatformError(
                "exports something else than this version of kai-fleet reads; update the platform"
                " stack with this version first"
            ) from None

    def output(self) -> dict[str, Any]:
        """The facts as the output `platform`: by key, only those that are set and not None.

        So it is at any depth: the defaults of a section are those of the version that reads it.
        """
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)

    def grant_of(self, team: str) -> Granted:
        """The grant of a team; an empty one if the platform has none for it."""
        return self.teams.get(team, Granted())


def _granted(settings: Settings) -> dict[str, Granted]:
    """The grants of team stacks, by team, with the place of their queues in the host's tree.

    Without a queue, or with one that the tree lacks, `above` is empty and `shard` None.
    """
    queues = {queue.name: queue for queue in walk(settings.queues)}
    grants = dict[str, Granted]()
    for name, grant in settings.team_stacks.items():
        queue = queues.get(grant.parent_queue or "")
        above = list(queue.above) if queue else []
        shard = queue.shard if queue else None
        grants[name] = Granted(**dict(grant), above=above, shard=shard)
    return grants


def is_team_stack(raw: Mapping[str, object]) -> bool:
    """Whether the `kai-fleet:` keys of a stack file are those of a team's own stack.

    That is decided by `platform` alone, with any value: a file with `team` only is a platform's.
    `raw` has the keys without the prefix.
    """
    return "platform" in raw


def platform_of(raw: Mapping[str, object]) -> str | None:
    """The name of the platform's stack in a stack file, not validated; None if it is no text.

    `raw` has the keys without `kai-fleet:`.
    """
    stack = value_at(raw, "platform.stack")
    return stack if isinstance(stack, str) else None


def load_team_stack(raw: Mapping[str, Any], facts_of: FactsOf) -> Loaded:
    """Settings from the `kai-fleet:` keys of a team stack's file, and all mistakes.

    Mistakes are those in the file, between it and the platform, and between keys. Without the
    platform's facts, or with nothing usable in the file, there are no settings.

    Args:
        raw: the keys without the prefix, with secrets decrypted or as MASK.
        facts_of: asked once, for the platform's stack as the file names it, and only if the file
            has a usable `platform` and `team`. The facts get that name as `stack`.

    Raises:
        pydantic.ValidationError: the facts have a value that no stack file may have, such as
            another form of the cluster's name.
        KeyError, StopIteration: mistakes.yaml lacks words for a mistake.
    """
    file, mistakes = model_and_mistakes(TeamStack, raw)
    if file is None:
        return Loaded(None, tuple(mistakes))
    stack = file.platform.stack
    try:
        facts = facts_of(stack)
    except NoPlatformError as why:
        mistakes.append(wrong_key("kai-fleet:platform.stack", str(why)))
        return Loaded(None, tuple(mistakes))
    facts = facts.model_copy(update={"stack": stack})
    for key, message in _between(file, facts):
        mistakes.append(wrong_key(f"kai-fleet:team.{key}", message))
    settings = _settings(file, facts).remember_file(raw, facts)
    return with_mistakes_between_keys(settings, mistakes)


def _settings(file: TeamStack, facts: Facts) -> Settings:
    """The settings of a stack with this one team, which has what the platform grants.

    Every key of a grant, which a file cannot have, counts as set, an unset one to its default. A
    team without a grant gets an empty one, which `_between` reports. Without `cluster` in the file
    the host is reached by the platform's context. If that is None, nothing reaches the host, which
    `Cluster.mistakes` reports.

    Raises pydantic.ValidationError for facts with a value that no stack file may have.
    """
    credentials = file.cluster or Credentials(context=facts.context)
    name = file.team.name
    set_by_file = file.team.set_fields
    del set_by_file["name"]
    grant = {key: value for key, value in facts.grant_of(name) if key in TeamSettings.model_fields}
    platform = {key: getattr(facts, key) for key in Platform.model_fields}
    settings = Settings.model_validate(
        {
            **platform,
            "cluster": Cluster(name=facts.cluster, **dict(credentials)),
            "teams": {name: TeamSettings.model_validate({**set_by_file, **grant})},
            "removed": file.removed,
        }
    )
    # The workloads are validated, and a second validation would expect paths of files.
    return settings.model_copy(update={"workloads": file.workloads})


def _between(file: TeamStack, facts: Facts) -> Mistakes:
    """The first mistake between the team's file and its platform, at a key below the team.

    Nothing if there is none. The facts have their `stack` already.
    """
    team = file.team
    where = f"stack {facts.stack}"
    queue = facts.grant_of(team.name).parent_queue
    if team.name not in facts.teams:
        cause = f"is not granted by {where}, which grants {', '.join(facts.teams) or 'no team'}"
        key = f"kai-fleet:teamStacks.{team.name}"
        yield "name", f"{cause}; have it written there, in {key}, and update that first"
    elif team.scheduler.mode == "host" and (facts.kai is None or queue is None):
        cause = f"is host, and {where} grants the team no queue of a KAI on the host"
        fix = "write virtual or default, or have parentQueue: added to its grant"
        yield "scheduler.mode", f"{cause}; {fix}"
    elif team.scheduler.mode == "host" and team.queue not in (None, queue):
        cause = f"is {team.queue}, and {where} grants {queue}"
        yield "queue", f"{cause}; write that, or queues: {{…}} below it"


def read_platform(stack: str) -> Facts:
    """Ask the engine of the running program for the facts that a platform's stack exports.

    They have their `secret`, and no `stack` yet. A `stack` without a slash is one of this project.

    Raises:
        NoPlatformError: the stack cannot be read, exports no platform, or one of another version.
    """
    update = f"update it first: {update_command(stack.rpartition('/')[2])}"
    try:
        # A StackReference would answer only after resources were declared, and the rules have to
        # judge the facts before that.
        answer: Any = invoke(READ_OUTPUTS, {"name": full_name(stack)}).value or {}
    except Exception as why:
        reason = str(why).strip().rpartition("\n")[2][:200]
        raise NoPlatformError(f"is {stack}, which cannot be read ({reason}); {update}") from None
    outputs = answer.get("outputs") or {}
    if OUTPUT not in outputs:
        raise NoPlatformError(f"is {stack}, which exports no platform; {update}")
    # The answer has secrets in clear text.
    secret = OUTPUT in (answer.get("secretOutputNames") or ())
    return Facts.read(outputs[OUTPUT]).model_copy(update={"secret": secret})
