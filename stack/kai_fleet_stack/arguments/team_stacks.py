"""Arguments of TeamStackAccess: what the account of a team's own stack may do."""

from kai_fleet.isolation.team_stack_access import TeamAccess
from kai_fleet.releases import KAI, taken_for
from kai_fleet.releases.keys import DEFAULT_SHARD
from kai_fleet_stack.settings import Settings
from kai_fleet_stack.settings.sections.platform import HostKai
from kai_fleet_stack.settings.sections.queues import walk


def accounts(settings: Settings) -> dict[str, TeamAccess]:
    """Argument `teams` of TeamStackAccess: an account for each team with a stack of its own.

    Each has `foreign_queues`. Only one with a granted queue of the host's KAI has `parent_queue`,
    and may have `shard` and `levels`.
    """
    access_by_team = dict[str, TeamAccess]()
    for name, grant in settings.team_stacks.items():
        account: TeamAccess = {"foreign_queues": settings.foreign_queues(name)}
        if settings.kai is not None and grant.parent_queue is not None:
            _grant_queue(settings, account, name, grant.parent_queue, settings.kai)
        access_by_team[name] = account
    return access_by_team


def _grant_queue(
    settings: Settings,
    account: TeamAccess,
    team: str,
    granted: str,
    kai: HostKai,
) -> None:
    """Let a team stack's account write queues below the one that it is granted.

    Adds to `account`, which has `foreign_queues`, in place: the granted queue, its shard if it is
    not the default one, and how many levels may be below it if KAI's version bounds them. A newer
    version than the known ones counts as `taken_for` says; any other unknown one bounds none. A
    queue of the platform that has the team's own name, and is not granted, becomes the first
    foreign one. Of a granted queue that the settings do not have only the name is added.
    """
    queues = {queue.name: queue for queue in walk(settings.queues)}
    account["parent_queue"] = granted
    if team in queues and team != granted:
        account["foreign_queues"].insert(0, team)
    queue = queues.get(granted)
    if queue is None:
        return
    if queue.shard is not None and queue.shard != DEFAULT_SHARD:
        account["shard"] = queue.shard
    version = kai.version or ""
    release = KAI.get(taken_for(KAI, version) or version)
    if release is not None and release.max_queue_depth is not None:
        depth = len(queue.above) + 1
        account["levels"] = max(0, release.max_queue_depth - depth)
