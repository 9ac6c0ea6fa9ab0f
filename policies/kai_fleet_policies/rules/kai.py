"""Rules about KAI, its values, and where charts and images come from."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.finding import Level
from kai_fleet.fleet.cluster import HOST, Cluster, Kai, Team
from kai_fleet.releases.allowed_values import refusals
from kai_fleet.releases.sharing import (
    FRACTIONS_DRIVER,
    FRACTIONS_OPERATOR,
    HAMI_CORE,
    MODES,
    NOT_ENFORCED,
    NV_FRACTIONS,
    SINCE,
    has_mode,
)
from kai_fleet.values import UNKNOWN, at, get, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.rules.images import ImageScan, wrong_chart
from kai_fleet_policies.rules.rule import (
    Findings,
    Place,
    Severity,
    kais,
    known,
    of_kai,
    of_team,
    of_vcluster,
    rule,
)


@rule("kai-version-known", Level.MANDATORY, Severity.HIGH, each=kais)
def kai_version_known(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Only KAI versions of the release table.

    Charts differ by version in names, hooks and defects, and the highest tag, v0.20.1, is a
    retracted one.

    Remedy: Write one of the versions that the message names.
    """
    version, place = known(kai.version, "its version is known"), place.at("version")
    if not version:
        begin = releases.advised(releases.KAI) or list(releases.KAI)[-1]
        yield place.refuse(
            "has no version, and the highest published one (v0.20.1) is retracted",
            f"write version: {begin}",
        )
    elif kai.untested and (nearest := releases.taken_for(releases.KAI, version)):
        yield place.warn(
            f"is {version}, which nobody tried with this program; it is taken for {nearest}"
        )
    elif f"v{version}" in releases.KAI:
        yield place.refuse(
            f"has version {version}, and KAI's chart versions keep their v", f"write v{version}"
        )
    elif version not in releases.KAI:
        retracted = f"v{version.removeprefix('v')}" == releases.RETRACTED
        why = "retracted (its chart is that of v0.10.2)" if retracted else "not supported here"
        every = f"(all: {', '.join(releases.KAI)})"
        yield place.refuse(
            f"has version {version}, which is {why}",
            f"write {releases.instead(releases.KAI, version)} {every}",
        )


@rule("kai-version-supported", Level.ADVISORY, Severity.MEDIUM, each=kais)
def kai_version_supported(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """KAI lines that still get fixes.

    A line out of support gets no more fixes, security fixes included.

    Remedy: Move to the maintained version that the message names.
    """
    version = str(kai.version)
    if version in releases.KAI and not (support := releases.support(version)).maintained:
        advice = releases.advice(releases.KAI, version)
        yield place.at("version").warn(f"is {version}, and {support.words}", advice)


# What the program sets for a reason, and what an override would bring back.
_UNDONE: Final = {
    "defaultQueue.createDefaultQueue": "makes queues that collide with declared ones (K4)",
    "topologyMigration.enabled": "runs a hook that fails beside Kueue's Topologies (K13)",
    "postCleanup.enabled": "runs a hook that hangs on tainted nodes (K14)",
}


def _kais(cluster: Cluster) -> Iterable[tuple[tuple[Kai, bool], Place]]:
    """Each KAI, the one inside each team's vCluster too, and whether it is an isolated team's."""
    yield from (((kai, False), place) for kai, place in kais(cluster))
    for team in cluster.teams:
        for kai in team.kai:
            yield (kai, team.isolated), of_kai(kai, team.inside)


@rule("kai-values", Level.MANDATORY, Severity.MEDIUM, each=_kais)
def kai_values(cluster: Cluster, item: tuple[Kai, bool], place: Place) -> Findings:
    """An isolated team's KAI has values of the allow-list, and none that undo what is handled.

    Whoever writes the values of a team's KAI would decide what runs in its place; and some
    values bring back a hook that the program switched off.

    Remedy: Write the key that the message names, or drop it.
    """
    kai, isolated = item
    values, place = known(kai.values, "its values are known"), place.at("values")
    for key, why in _UNDONE.items():
        if value_at(values, key) is True:
            yield place.at(key).refuse(f"has {key}: true, which {why}", "drop it")
    for key, cause, fix in refusals("kai", values) if isolated else ():
        if key not in _UNDONE and cause:
            yield place.at(key).refuse(cause, fix)


@rule("kai-value-reaches", Level.ADVISORY, Severity.LOW, each=kais)
def kai_value_reaches(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Values that the chart reads and that do not reach KAI's parts.

    From v0.9 through v0.12 global.nodeSelector and global.imagePullSecrets stop at the
    operator: the parts that it makes run anywhere, and pull without credentials.

    Remedy: Move to v0.13 or newer, or put the pull secret on the namespace's service accounts.
    """
    release = releases.KAI.get(str(kai.version))
    if release is None or release.operands_get_node_selector or not release.has_operator:
        return  # without an operator the chart makes every part itself
    to = releases.advised(releases.KAI, release.version)
    fix = f"move to {to} for it to reach them" if to else "drop it"
    for key in ("nodeSelector", "imagePullSecrets"):
        if get(known(kai.values, "its values are known"), "global", key):
            yield place.at("values", "global", key).warn(
                f"sets global.{key}, which {release.version} gives to its operator and not to the"
                " parts that the operator makes",
                fix,
            )
    if kai.registries:
        yield Place("KAI", f"of {cluster.name}", "kai-fleet:registries").warn(
            f"reaches KAI's operator, and in {release.version} not the parts that it makes", fix
        )


_SINCE: Final = {"shards": "v0.10", "fairshare": "v0.10", "topologies": "v0.12"}


@rule("kai-feature-known", Level.MANDATORY, Severity.HIGH, each=kais)
def kai_feature_known(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Shards, fairness over time and topologies only where the KAI version has them.

    Before v0.10 a SchedulingShard is a second scheduler beside the chart's own, and no
    scheduler knows of usage over time; before v0.12 KAI reads Kueue's topologies, not its own.

    Remedy: Use a version that has it, or leave the key out.
    """
    for kind, since in _SINCE.items():
        used = getattr(kai, kind)
        if used is UNKNOWN or not used:
            continue
        pools = kind == "shards" and cluster.pools
        path = at(cluster.path, "pools") if pools else place.at(kind).path
        version = known(kai.version, f"the KAI version is known: {kind} come with {since}")
        having = [
            name
            for name, release in releases.KAI.items()
            if (release.has_topologies if kind == "topologies" else release.has_shards)
        ]
        if version in releases.KAI and version not in having:
            to = releases.advised(releases.KAI, having[0])
            advice = f"{to} ({having[0]} is the first here)" if to else having[0]
            yield Place(kind, f"of {cluster.name}", path).refuse(
                f"needs KAI {since} or newer, and the version is {version}",
                f"write version: {advice}, or drop {kind}",
            )


def _sharing(cluster: Cluster) -> Iterable[tuple[Kai | Team, Place]]:
    yield from ((kai, place.at("gpuSharing")) for kai, place in kais(cluster))
    yield from ((team, of_team(team, "isolation", "level")) for team in cluster.teams)


@rule("gpu-sharing-mode", Level.MANDATORY, Severity.HIGH, each=_sharing)
def gpu_sharing_mode(cluster: Cluster, item: Kai | Team, place: Place) -> Findings:
    """A mode of GPU sharing only where KAI's version, the cluster and the isolation have it.

    NonMemoryEnforced leaves GPU memory to agreement. HamiCore and NvFractions enforce it, by
    parts on the nodes: without those, pods that share a GPU stay Pending or share
    without a bound.

    Remedy: Write the version or the mode that the message names.
    """
    if isinstance(item, Team):
        schedulers = cluster.kai if item.mode == "host" else item.kai
        if item.isolated and any(kai.sharing == HAMI_CORE for kai in schedulers):
            # The isolator mounts its library from the node into each pod.
            yield place.refuse(
                f"is {item.level}, and mode {HAMI_CORE} mounts a library of the node into each pod"
                " that shares a GPU (hostPath), which that level refuses",
                f"write level: off for the team, or mode: {NOT_ENFORCED} for its KAI",
            )
        return
    mode, version = item.sharing, item.version
    if UNKNOWN in (mode, version) or not version:
        return
    if mode not in MODES:
        yield place.refuse(f"is {mode}, which is no mode", f"write {listed(MODES, 'or')}")
    elif not has_mode(version, mode):
        newest = next(each for each in reversed(list(releases.KAI)) if has_mode(each, mode))
        yield place.refuse(
            f"is {mode}, which KAI has from {SINCE[mode]} on, and the version is {version}",
            f"write version: {newest}, or mode: {NOT_ENFORCED}",
        )
    elif mode == NV_FRACTIONS and cluster.declared and cluster.name != HOST:
        yield place.refuse(
            f"is {mode}, whose operator works on the nodes themselves, with rights that no team's"
            " pod has",
            f"write mode: {HAMI_CORE} or {NOT_ENFORCED}, or have the team in mode host with a KAI"
            " of the host in this mode",
        )
    elif mode == NV_FRACTIONS:
        yield place.warn(
            f"is {mode}: pods that share a GPU stay Pending on nodes without NVIDIA's GPU operator"
            f" {FRACTIONS_OPERATOR}, its NRI plugin in the container runtime and driver"
            f" {FRACTIONS_DRIVER} or newer, which is not the operator's own"
            " (gpu.values: driver.version); nobody ran it with this program"
        )
    elif mode == HAMI_CORE:
        yield place.warn(
            f"is {mode}: GPU memory is enforced only with the chart kai-resource-isolator on the"
            " host, and only on nodes that have the label nvidia.com/gpu.memory before KAI starts;"
            " nobody ran it with this program"
        )


@dataclass(frozen=True)
class _Source:
    """A chart with its values; `at` finds the place of a key. `by_name`: at level restricted the
    host's guard knows KAI's images by the whole of their names.
    """

    chart: str | None
    values: Mapping[str, Any]
    at: Callable[..., Place]
    home: tuple[str, ...] = ()
    key: str = "values"
    by_name: bool = False


def _sources(cluster: Cluster) -> Iterable[tuple[_Source, Place]]:
    for chart in cluster.charts:
        place = Place(chart.subject, "", chart.path)
        yield _Source(chart.chart, chart.values, place.at, key=chart.values_key), place
    if cluster.name == HOST or not cluster.declared:
        yield from ((_Source(kai.chart, kai.values, at.at), at) for kai, at in kais(cluster))
    for team in cluster.teams:
        at_key = partial(of_vcluster, team)
        yield _Source(team.chart, team.values, at_key, ("ghcr.io", "loft-sh")), at_key()
        for kai in team.kai:
            place, by_name = of_kai(kai, team.inside), team.level == "restricted"
            yield _Source(kai.chart, kai.values, place.at, by_name=by_name), place


@rule("sources-known", Level.MANDATORY, Severity.CRITICAL, each=_sources)
def sources_known(cluster: Cluster, source: _Source, place: Place) -> Findings:
    """Charts and images come from where the release tables and kai-fleet:sources say.

    A chart is installed with the platform's rights, and an image of the platform's parts runs
    beside every team: one line of a pull request would put somebody else's program there.

    Remedy: Drop the key, or name the mirror once, in kai-fleet:sources of the platform's stack.
    Images of workloads are their users' own.
    """
    where = " of the platform's stack" if cluster.platform else ""
    chart = known(source.chart, "its chart is known")
    if chart is not None and (why := wrong_chart(chart, cluster.sources)):
        yield source.at("chart").refuse(
            f"has a chart which {why}",
            "drop it, the release table says where the chart is; or have the location of a mirror"
            f" (oci://… or https://…) written in kai-fleet:sources.charts{where}. Packages in a"
            " directory are installed with KAI_FLEET_CHARTS, a variable of who runs the update",
        )
    values, images = source.values, f"kai-fleet:sources.images{where}"
    known(values, "its values are known")
    for key, why in ImageScan(cluster.sources, *source.home).wrong(values):
        at_key = source.at(*filter(None, (source.key, key)))
        if not why:
            yield at_key.undecided(f"{key} is known")
            continue
        yield at_key.refuse(
            f"has {key}, which {why}",
            "drop it for the images of the release table, write a tag such as v1.2.3 where it is"
            f" one, or have its registry written in {images}",
        )
    # An allowed team sets no other image of KAI than by this key.
    registry = value_at(values, "global.registry")
    if source.by_name and isinstance(registry, str) and registry not in _whole(cluster):
        yield place.at("values", "global.registry").refuse(
            "has global.registry, which is only below what kai-fleet:sources.images names: at"
            " isolation level restricted KAI's images pass by their whole names",
            f"have the very registry with its path written in {images}",
        )


def _whole(cluster: Cluster) -> set[str]:
    return {registry.removesuffix("/") for registry in cluster.sources.kai_images}
