"""The charts that a stack installs: where they are written, and the values that they are given."""

from collections.abc import Iterator
from dataclasses import replace

from kai_fleet.fleet.installed import InstalledChart
from kai_fleet.settings import Settings, key_path


def installed_charts(settings: Settings, *, hidden: bool) -> tuple[InstalledChart, ...]:
    """Those of the host and of every vCluster; in a team's own stack those of the team alone.

    `hidden`: some value is a secret.
    """
    own_stack = settings.platform_facts is not None
    found = [] if own_stack else list(_of_platform(settings))
    found += (chart for name in settings.teams for chart in _of_team(settings, name, own_stack))
    return tuple(replace(it, hidden=hidden, own_stack=own_stack) for it in found)


def _of_platform(settings: Settings) -> Iterator[InstalledChart]:
    gpu, kai, vcluster = settings.gpu, settings.kai, settings.vcluster
    kind = settings.cluster.kind
    yield InstalledChart("gpu", "the GPU stack", key_path(("gpu",)), gpu.chart, gpu.values)
    if kai is not None:
        yield InstalledChart("kai", "KAI of host", key_path(("kai",)), kai.chart, kai.values)
    path = key_path(("vcluster",))
    yield InstalledChart("vcluster", "every vCluster", path, vcluster.chart, vcluster.values)
    if kind is not None and kind.image is not None:
        path, values = key_path(("cluster", "kind")), {"image": kind.image}
        subject = f"cluster {settings.cluster.name}"
        yield InstalledChart("vcluster", subject, path, values=values, stands=((path, values),))


def _of_team(settings: Settings, name: str, own_stack: bool) -> Iterator[InstalledChart]:
    """Those of one team, whose vCluster has the stack's defaults."""
    team, path, whole = settings.teams[name], settings.team_path(name), settings.vcluster_of(name)
    own, scheduler = f"{path}.vcluster", team.scheduler
    stands = [(f"{own}.values", team.vcluster.values)]
    if not own_stack:
        stands.append((f"{key_path(('vcluster',))}.values", settings.vcluster.values))
    yield InstalledChart(
        "vcluster",
        f"vCluster {name}",
        own,
        whole.chart if own_stack else team.vcluster.chart,
        whole.values,
        stands=tuple(stands),
    )
    yield InstalledChart(
        "kai",
        f"KAI of {name}",
        f"{path}.scheduler",
        scheduler.chart,
        scheduler.values,
        by_name=settings.isolation_of(name).level == "restricted",
    )
