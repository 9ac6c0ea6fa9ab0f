"""What the rules say of a stack file of which parts could not be read: only what is true without
those parts.

A team of which a part is left out has no place among the others: a sum, a pair or a name would be
judged falsely. Of itself it is told what no other of its keys decides.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

from kai_fleet.settings import Loaded, Settings, key_path
from kai_fleet.settings.mistakes import within
from kai_fleet.settings.sections.queues import Queue, Share
from kai_fleet_policies.problem import Problem, Problems

# Rules about one key of a team that read other keys of it.
_BY_OTHER_KEYS: Final = (
    *("team-", "vcluster-", "queue-quota", "queue-zero-quota", "queue-depth"),
    *("kai-version-known", "workload-gpu"),
)
# Rules that read a section of the stack to judge other places.
_BY_SECTION: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu": ("workload-gpu",),
    "isolation": ("vcluster-isolation", "team-isolation"),
    "kai": ("queue-depth", "workload-gpu", "gpu-one-sharer"),
    "sources": ("sources-known",),
    "vcluster": ("vcluster-",),
}
# Rules by which a queue has to be there.
_BY_NAME: Final = ("workload-leaf-queue", "team-parent-queue", "queue-depth")
# Rules about the GPUs of a host's queue, which are those of its teams together.
_BY_TEAMS: Final = ("queue-quota", "team-queue-limit")
_QUEUES: Final = key_path(("queues",))
_KAI: Final = key_path(("kai",))
# The last part of a path without which no queue is gone.
_OF_A_QUEUE: Final = {
    field.alias or name
    for model in (Queue, Share)
    for name, field in model.model_fields.items()
    if name != "children"
}

Judge = Callable[[Settings], list[Problem]]


def judged(raw: Mapping[str, Any], loaded: Loaded, judge: Judge) -> Problems:
    """The problems that hold without what was left out; `raw` is the whole file."""
    whole = loaded.judged
    if whole is None:
        return
    if not loaded.mistakes:
        yield from judge(whole)
        return
    teams = {n: p for n in whole.teams if within(p := whole.team_path(n), loaded.dropped)}
    grants = {n: key_path(("teamStacks", n)) for n in whole.team_stacks}
    grants = {n: path for n, path in grants.items() if within(path, loaded.dropped)}
    partly = (*teams.values(), *grants.values())
    if whole.platform_facts is None or not partly:  # a team stack has no other team
        read = {
            "teams": {name: it for name, it in whole.teams.items() if name not in teams},
            "team_stacks": {n: it for n, it in whole.team_stacks.items() if n not in grants},
        }
        rest = whole.model_copy(update=read)
        queues = set(_queues_of_others(raw, rest, loaded.dropped))
        for problem in judge(rest):
            if not _is_doubtful(problem, loaded.dropped, queues):
                yield problem
    for problem in judge(whole) if partly else ():
        of_itself = any(problem.path.startswith(f"{path}.") for path in partly)
        by_others = problem.rule.startswith(_BY_OTHER_KEYS)
        if of_itself and not by_others and not _is_doubtful(problem, loaded.dropped):
            yield problem


def _is_doubtful(problem: Problem, dropped: Sequence[str], queues: Set[str] = frozenset()) -> bool:
    """Whether a problem may be there only because of what was left out.

    `queues` are those of the host whose teams are not all there; "" is any of them.
    """
    rule = problem.rule
    if within(problem.path, dropped):
        return True
    if problem.path.startswith(f"{_KAI}.") and within(_KAI, dropped):
        return True
    for section, rules in _BY_SECTION.items():
        if rule.startswith(rules) and within(key_path((section,)), dropped):
            return True
    of_host = rule in _BY_TEAMS and problem.path.startswith(f"{_QUEUES}.")
    if of_host and queues & {"", *problem.path.split(".")}:
        return True
    return rule in _BY_NAME and any(
        f"{path}.".startswith(f"{_QUEUES}.") and path.rpartition(".")[2] not in _OF_A_QUEUE
        for path in dropped
    )


def _queues_of_others(
    raw: Mapping[str, Any], rest: Settings, dropped: Sequence[str]
) -> Iterator[str]:
    """The host's queues that are of teams which are left out; "" for one that is not known."""
    for section, key, read in (
        ("teams", "queue", rest.teams),
        ("teamStacks", "parentQueue", rest.team_stacks),
    ):
        teams = raw.get(section)
        for name, team in teams.items() if isinstance(teams, Mapping) else ():
            queue = team.get(key) if isinstance(team, Mapping) else None
            if name not in read and isinstance(queue, str):
                yield queue
            elif name not in read and within(key_path((section, name, key)), dropped):
                yield ""
    if any(it.scheduler.mode == "host" and it.queue is None for it in rest.teams.values()):
        yield ""
