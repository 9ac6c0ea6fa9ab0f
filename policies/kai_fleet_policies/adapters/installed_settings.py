"""The charts that a stack's settings install, and the values that they write for them."""

from __future__ import annotations

from collections.abc import Iterator

from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.tenant import Tenant
from kai_fleet_policies.installed import Installed


def installed(settings: Settings, *, hidden: bool = False) -> Iterator[Installed]:
    """Those of the host, of every vCluster, and of each team. `hidden`: some value is a secret."""
    if not isinstance(settings, Tenant):
        yield from _of_platform(settings, hidden)
    for name in settings.teams:
        yield from _of_team(settings, name, hidden)


def _of_platform(settings: Settings, hidden: bool) -> Iterator[Installed]:
    gpu, kai, vcluster = settings.gpu, settings.kai, settings.vcluster
    kind = settings.cluster.kind
    yield Installed(
        "gpu", "the GPU stack", key_path(("gpu",)), gpu.chart, gpu.values, hidden=hidden
    )
    if kai is not None:
        yield Installed(
            "kai", "KAI of host", key_path(("kai",)), kai.chart, kai.values, hidden=hidden
        )
    yield Installed(
        "vcluster",
        "every vCluster",
        key_path(("vcluster",)),
        vcluster.chart,
        vcluster.values,
        hidden=hidden,
    )
    if kind is not None and kind.image is not None:
        place = key_path(("cluster", "kind"))
        yield Installed(
            "vcluster",
            f"cluster {settings.cluster.name}",
            place,
            values={"image": kind.image},
            stands=((place, {"image": kind.image}),),
            hidden=hidden,
        )


def _of_team(settings: Settings, name: str, hidden: bool) -> Iterator[Installed]:
    team, path = settings.teams[name], settings.team_path(name)
    merged, own_stack = settings.vcluster_of(name), isinstance(settings, Tenant)
    own = f"{path}.vcluster"
    stands = [(f"{own}.values", team.vcluster.values)]
    if not own_stack:
        stands.append((f"{key_path(('vcluster',))}.values", settings.vcluster.values))
    yield Installed(
        "vcluster",
        f"vCluster {name}",
        own,
        merged.chart if own_stack else team.vcluster.chart,
        merged.values,
        stands=tuple(stands),
        hidden=hidden,
        own_stack=own_stack,
    )
    yield Installed(
        "kai",
        f"KAI of {name}",
        f"{path}.scheduler",
        team.scheduler.chart,
        team.scheduler.values,
        by_name=settings.isolation_of(name).level == "restricted",
        hidden=hidden,
        own_stack=own_stack,
    )
