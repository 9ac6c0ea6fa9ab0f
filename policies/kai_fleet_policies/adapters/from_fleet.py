"""A fleet as the rules judge it: its host and the vClusters, with the pods of its workloads."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kai_fleet.fleet.model import DeclaredCluster, Fleet
from kai_fleet.fleet.team_stack import queue_path
from kai_fleet.settings import key_path
from kai_fleet.workloads.placement import manifest
from kubectl_fleet.declared.pod_templates import workloads
from kubectl_fleet.declared.pods import PodTemplate
from kubectl_fleet.rules.problem import Problem

_OF_TEAM_STACK: Final = tuple(
    key_path((key,)) for key in ("team", "cluster", "platform", "workloads")
)


def clusters(fleet: Fleet) -> list[DeclaredCluster]:
    """The host first, then the vClusters with a scheduler of their own, then those with workloads
    that the host's scheduler places.
    """
    own, placed_by_host = [], []
    for name, team in fleet.teams.items():
        inside = replace(team.inside, workloads=tuple(_pods(fleet, name)))
        if team.kai:
            own.append(inside)
        elif inside.workloads:
            host = fleet.host if team.mode == "host" else None
            placed_by_host.append(replace(inside, scheduled_by=host, team_queue=team.queue))
    return [fleet.host, *own, *placed_by_host]


def _pods(fleet: Fleet, team: str) -> Iterator[PodTemplate]:
    for name, workload in fleet.workloads.items():
        if workload.team != team:
            continue
        try:
            kind, content = manifest(workload)
        except ValueError:
            continue  # the report on the settings says what is wrong with it
        # Under its own kind: `Deployment api` is what a reader finds in the cluster.
        yield from workloads(kind, content, name, workload.path)


def about_stack(fleet: Fleet, problems: list[Problem]) -> list[Problem]:
    """The problems of the stack's own file: in a team stack those of the platform are the
    platform's to report, and the sums of the granted queue are the team's too.
    """
    if not fleet.platform:
        return problems
    (team,) = fleet.teams.values()
    granted = queue_path(team.parent_queue or "")
    own = []
    for problem in problems:
        if problem.path.startswith(f"{granted}."):
            problem = replace(problem, path=f"{team.path}.queues")
        if any(f"{problem.path}.".startswith(f"{key}.") for key in _OF_TEAM_STACK):
            own.append(problem)
    return own
