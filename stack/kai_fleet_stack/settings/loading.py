"""Load settings with all mistakes of their keys, those between keys too.

`load` never raises for a user's mistake. It reports all mistakes with their key paths, and returns
the settings without the wrong keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kai_fleet.releases import KAI, advised
from kai_fleet.wording import MASK
from kai_fleet_policies.finding import Finding
from kai_fleet_policies.key_paths import overlaps
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.mistakes import model_and_mistakes, wrong_key
from kai_fleet_stack.settings.sections.access import Access
from kai_fleet_stack.settings.sections.kubernetes import in_domains
from kai_fleet_stack.settings.sections.models import Mistakes, below
from kai_fleet_stack.settings.sections.platform import EXAMPLE_VERSION, NVIDIA
from kai_fleet_stack.settings.sections.queues import shard_mistakes
from kai_usage import mig


@dataclass(frozen=True)
class Loaded:
    """The settings without the wrong keys (None if nothing usable is left), and all mistakes.

    Wrong keys are left out if they are wrong by themselves. Those that do not fit others stay.
    """

    settings: Settings | None
    mistakes: tuple[Finding, ...] = ()


def with_mistakes_between_keys(settings: Settings | None, in_file: Sequence[Finding]) -> Loaded:
    """The settings with all mistakes: those `in_file`, and those between keys.

    A mistake between keys is left out where `in_file` has its key or one above or below it, and, if
    it has a key of the stack's or of the team's scheduler, in all of the team's scheduler.

    Args:
        settings: None if nothing usable is left, else after `remember_file`, which says whose stack
            it is and has the keys for paths.
        in_file: The mistakes that are known already.
    """
    if settings is None:
        return Loaded(None, tuple(in_file))
    wrong_paths = [mistake.path for mistake in in_file]
    for name in settings.teams:
        scheduler = f"{settings.team_path(name)}.scheduler"
        roots = ("kai-fleet:scheduler", scheduler)
        if any(path.startswith(roots) for path in wrong_paths):
            wrong_paths.append(scheduler)
    mistakes = list(in_file)
    for path, message in dict.fromkeys(_between_keys(settings)):
        if not overlaps(path, wrong_paths):
            mistakes.append(wrong_key(path, message))
    return Loaded(settings, tuple(mistakes))


def load(raw: Mapping[str, Any]) -> Loaded:
    """Settings from the `kai-fleet:` keys of a platform's stack file, and all mistakes in them.

    Args:
        raw: the keys without the prefix, with secrets decrypted or as MASK. `is_team_stack` is
            false for it: `load_team_stack` reads the others.

    Raises:
        KeyError, StopIteration: mistakes.yaml lacks words for a mistake.
    """
    settings, mistakes = model_and_mistakes(Settings, raw)
    if settings is not None:
        settings.remember_file(raw)
    return with_mistakes_between_keys(settings, mistakes)


def _between_keys(settings: Settings) -> Mistakes:
    """All mistakes that show only between keys, at paths with `kai-fleet:`.

    One at a key of the stack may be there for several teams. The settings are those after
    `remember_file`.
    """
    yield from below("kai-fleet:cluster", settings.cluster.mistakes())
    for name in settings.teams:
        yield from _team_mistakes(settings, name)
    yield from _databases(settings)
    if settings.platform_facts is None:
        yield from _platform_mistakes(settings)
        for name in settings.teams:
            yield from _domains(settings, name)
    yield from _names_of_teams(settings)
    yield from _gpu_resources(settings)


def _names_of_teams(settings: Settings) -> Mistakes:
    """Removed teams that are still declared, and workloads for teams that are not.

    Only `teams` counts: a team that moves to a stack of its own is removed and in `team_stacks`.
    """
    for name in settings.removed:
        if name in settings.teams:  # a later edit that drops it by mistake would delete it
            fix = f"take it out of here, or out of {settings.team_path(name)}"
            yield "kai-fleet:removed", f"names {name}, which is a team still; {fix}"
    for name in settings.workloads:
        if name not in settings.teams:
            teams = ", ".join(settings.teams) or "none yet"
            yield f"kai-fleet:workloads.{name}", f"is for no team of this stack; the teams: {teams}"


def _gpu_resources(settings: Settings) -> Mistakes:
    """GPUs of teams and grants under another resource than the host's, also if there are 0.

    With NVIDIA's GPUs MIG slices are the host's, too. A number alone always counts its GPUs.
    """
    resource = settings.gpu.resource
    for name in settings.all_teams:
        gpus = settings.team_or_grant(name).gpus
        if isinstance(gpus, int):
            continue
        for other in gpus:
            is_slice = resource == NVIDIA and other.startswith(mig.PREFIX)
            if other == resource or is_slice:
                continue
            cause = f"has {other}, and the host's GPUs are {resource} (kai-fleet:gpu.resource)"
            yield f"{settings.team_path(name)}.gpus", f"{cause}; write {resource}"


def _domains(settings: Settings, name: str) -> Mistakes:
    """Keys in a team's labels and annotations whose domain the platform does not list.

    A key that the stack has with the same value is the stack's. A key without a domain is in none.
    Annotations of a vCluster's `access` are judged by a rule.
    """
    team = settings.teams[name]
    notes = (
        ("labels", settings.labels, team.labels),
        ("annotations", settings.annotations, team.annotations),
    )
    for key, of_stack, of_team in notes:
        for noted, value in of_team.items():
            if of_stack.get(noted) == value or in_domains(noted, settings.key_domains):
                continue
            domains = ", ".join(settings.key_domains) or "none"
            cause = f"has {noted}, whose domain is not in kai-fleet:keyDomains: {domains}"
            fix = "drop it, or have the platform write its domain there, such as example.com"
            yield f"{settings.team_path(name)}.{key}", f"{cause}; {fix}"


def _team_mistakes(settings: Settings, name: str) -> Mistakes:
    """Mistakes between keys of a team of `teams`.

    They are at the team's path; those of its scheduler and its vCluster where `key_path_of` says.
    """
    team = settings.teams[name]
    path = settings.team_path(name)
    parent = settings.granted(name).parent_queue if team.scheduler.mode == "host" else None
    for key, message in team.mistakes(settings.gpu.resource, parent):
        if key.startswith("scheduler."):
            yield settings.key_path_of(name, key), message
        else:
            yield f"{path}.{key}", message
    yield from below(f"{path}.queues", shard_mistakes(team.queues, team.scheduler.shards, parent))
    if team.backup:
        yield from below(f"{path}.backup", team.backup.mistakes())
    for key, message in team.vcluster.mistakes():
        yield settings.key_path_of(name, "vcluster", *key.split(".")), message


def _databases(settings: Settings) -> Mistakes:
    """Databases of more than one vCluster: each would overwrite the objects of the others.

    One at kai-fleet:vcluster is reported in any case. Of teams with one database, by its URL as
    written, all but the first are; in a plan, which has MASK for each database, none.
    """
    if settings.vcluster.store.database is not None:
        cause = "is one database for all teams, and each writes over the others' objects"
        fix = "write one at kai-fleet:teams.NAME.vcluster.store.dataSource of each"
        yield "kai-fleet:vcluster.store.dataSource", f"{cause}; {fix}"
    users: dict[str, str] = {}
    for name, team in settings.teams.items():
        url = team.vcluster.store.database
        if url is None or url == MASK:  # a plan has MASK for each
            continue
        user = users.setdefault(url, name)
        if user != name:
            cause = f"is the database of team {user}, and each writes over the other's objects"
            path = f"{settings.team_path(name)}.vcluster.store.dataSource"
            yield path, f"{cause}; write one of its own"


def _platform_mistakes(settings: Settings) -> Mistakes:
    """Mistakes between keys that only a platform's stack has.

    These are vClusters at closed ports of a kind cluster, no KAI for queues of the host or teams in
    mode host, shards of those queues, and a guard that lets isolated teams out of them.
    """
    kind = settings.cluster.kind
    if kind is not None:
        accesses = {name: team.vcluster.access or Access() for name, team in settings.teams.items()}
        for name, message in kind.unreachable(accesses):
            yield f"kai-fleet:teams.{name}.vcluster.access.port", message
    kai = settings.kai
    host_mode = [name for name, team in settings.teams.items() if team.scheduler.mode == "host"]
    if kai is None and (host_mode or settings.queues):
        cause = "is missing: kai-fleet:queues and teams in mode host need a KAI on the host"
        yield "kai-fleet:kai", f"{cause}; write {{version: {advised(KAI) or EXAMPLE_VERSION}}}"
    shards = kai.shards if kai else {}
    yield from below("kai-fleet:queues", shard_mistakes(settings.queues, shards))
    # Only the queues of the host's KAI bound the GPUs of a team in mode host.
    isolated = [name for name in host_mode if settings.teams[name].isolation.is_on]
    outside = settings.guard.outside_queues
    if isolated and outside != "deny":
        cause = (
            f"is {outside}, and only its queue bounds what {isolated[0]} has in mode host,"
            " fractions and all"
        )
        fix = "write deny, or isolation: {level: off} for teams in mode host"
        yield "kai-fleet:guard.outsideQueues", f"{cause}; {fix}"
