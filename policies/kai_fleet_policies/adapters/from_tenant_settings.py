"""A team stack's settings as the rules look at them: its team among the platform's others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kai_fleet.settings import key_path
from kai_fleet.settings.tenant import Tenant
from kai_fleet.state.deployed_state import DeployedState
from kai_fleet_policies.adapters import from_settings
from kai_fleet_policies.adapters.installed_settings import installed
from kai_fleet_policies.grants import Grant
from kai_fleet_policies.model import Cluster, KaiRelease, Queue, Resource, Share, VirtualCluster
from kai_fleet_policies.problem import Problem

# What is the platform's carries a path outside the team's file: the platform's own preview
# reports it.
_PLATFORM: Final = "platform stack:"
_OWN: Final = tuple(key_path((key,)) for key in ("team", "cluster", "platform", "workloads"))


def clusters(
    tenant: Tenant, deployed: DeployedState | None = None, *, hidden: bool = False
) -> list[Cluster]:
    """The host as far as the platform tells of it, and the inside of the team's vCluster.

    `hidden`: some value is a secret.
    """
    facts = tenant.platform
    own = [
        replace(t, own_stack=True)
        for t in from_settings.virtual_clusters(tenant, deployed or DeployedState())
    ]
    kai = KaiRelease(facts.kai.version, gpu_sharing=facts.kai.gpu_sharing) if facts.kai else None
    host = Cluster(
        from_settings.HOST,
        path=key_path(("cluster",)),
        kai=(replace(kai, path=_PLATFORM),) if kai else (),
        queues=(*_host_queues(tenant), *_own_queues(tenant)),
        virtual_clusters=(*_neighbours(tenant), *own),
        grants=tuple(
            Grant(name, g.node_pool, float(g.gpus), g.parent_queue, _PLATFORM)
            for name, g in facts.team_stacks.items()
        ),
        platform=tenant.stack,
        sources=tenant.sources.known,
        installed=tuple(installed(tenant, hidden=hidden)),
    )
    alone = replace(host, virtual_clusters=tuple(own))
    return [
        host,
        *from_settings.inside(tenant, alone),
        *from_settings.without_own_kai(tenant, alone),
    ]


def about_team(tenant: Tenant, problems: list[Problem]) -> list[Problem]:
    """The problems of the team's own file; the sums of the granted queue are the team's too."""
    granted = _queue_path(tenant.granted_queue or "")
    found = []
    for problem in problems:
        if problem.path.startswith(f"{granted}."):
            problem = replace(problem, path=f"{tenant.team_path(tenant.team)}.queues")
        if any(f"{problem.path}.".startswith(f"{own}.") for own in _OWN):
            found.append(problem)
    return found


def _neighbours(tenant: Tenant) -> Iterator[VirtualCluster]:
    for name, team in tenant.platform.teams.items():
        yield VirtualCluster(
            name,
            namespace=f"team-{name}",
            node_pool=team.node_pool,
            gpus=float(team.gpus),
            mode=team.mode,
            queue=team.queue,
            path=_PLATFORM,
        )


def _host_queues(tenant: Tenant) -> Iterator[Queue]:
    names: tuple[Resource, ...] = ("cpu", "memory", "gpu")
    for name, queue in tenant.platform.queues.items():
        shares: dict[Resource, Share] = {
            resource: Share(share["quota"], share["limit"], share["overQuotaWeight"])
            for resource in names
            if (share := queue.resources.get(resource)) is not None
        }
        yield Queue(name, queue.parent, shares, path=_queue_path(name))


def _own_queues(tenant: Tenant) -> Iterator[Queue]:
    team = tenant.teams[tenant.team]
    if team.scheduler.mode == "host":
        path = f"{tenant.team_path(tenant.team)}.queues"
        yield from from_settings.queues(team.queues, path, parent=tenant.granted_queue)


def _queue_path(name: str) -> str:
    return f"{_PLATFORM}queues.{name}"
