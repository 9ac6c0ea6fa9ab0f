"""The charts that a stack installs: where they are written, and the values that they are given."""

from collections.abc import Iterator

from kai_fleet.fleet.installed import InstalledChart
from kai_fleet.settings import Settings, key_path
from kai_fleet.settings.sections.teams import Vcluster


def charts_of_platform(settings: Settings, *, hidden: bool) -> Iterator[InstalledChart]:
    """Those of the host, and of every vCluster. `hidden`: some value is a secret."""
    gpu, kai, vcluster = settings.gpu, settings.kai, settings.vcluster
    kind = settings.cluster.kind
    yield InstalledChart(
        "gpu", "the GPU stack", key_path(("gpu",)), gpu.chart, gpu.values, hidden=hidden
    )
    if kai is not None:
        yield InstalledChart(
            "kai", "KAI of host", key_path(("kai",)), kai.chart, kai.values, hidden=hidden
        )
    yield InstalledChart(
        "vcluster",
        "every vCluster",
        key_path(("vcluster",)),
        vcluster.chart,
        vcluster.values,
        hidden=hidden,
    )
    if kind is not None and kind.image is not None:
        place = key_path(("cluster", "kind"))
        yield InstalledChart(
            "vcluster",
            f"cluster {settings.cluster.name}",
            place,
            values={"image": kind.image},
            stands=((place, {"image": kind.image}),),
            hidden=hidden,
        )


def charts_of_team(
    settings: Settings, name: str, merged: Vcluster, *, own_stack: bool, hidden: bool
) -> Iterator[InstalledChart]:
    """Those of one team, whose vCluster is `merged` with the stack's defaults."""
    team, path = settings.teams[name], settings.team_path(name)
    own = f"{path}.vcluster"
    stands = [(f"{own}.values", team.vcluster.values)]
    if not own_stack:
        stands.append((f"{key_path(('vcluster',))}.values", settings.vcluster.values))
    yield InstalledChart(
        "vcluster",
        f"vCluster {name}",
        own,
        merged.chart if own_stack else team.vcluster.chart,
        merged.values,
        stands=tuple(stands),
        hidden=hidden,
        own_stack=own_stack,
    )
    yield InstalledChart(
        "kai",
        f"KAI of {name}",
        f"{path}.scheduler",
        team.scheduler.chart,
        team.scheduler.values,
        by_name=settings.isolation_of(name).level == "restricted",
        hidden=hidden,
        own_stack=own_stack,
    )
