"""Rules about versions: those of the release table, how long they get fixes, and steps between."""

from collections.abc import Mapping
from typing import Any, Final

from kai_fleet import releases
from kai_fleet.guards.policies import OLDEST_KUBERNETES, POLICY
from kai_fleet.releases import DEFAULT_VCLUSTER, KAI, VCLUSTER, vcluster_refusal, version_key
from kai_fleet.values import UNKNOWN, at, value_at
from kai_fleet.vcluster_stores import KUBERNETES
from kai_fleet_policies.model.cluster import Cluster, Kai, Team
from kai_fleet_policies.rules.places import VCLUSTERS, Place, kais, of_vcluster
from kai_fleet_policies.rules.rule import Findings, advisory, known, mandatory


@mandatory("kai-version-known", "high", kais)
def kai_version_known(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Only KAI versions of the release table.

    Charts differ by version in names, hooks and defects, and the highest tag, v0.20.1, is a
    retracted one.
    """
    version, place = known(kai.version, "its version is known"), place.at("version")
    if not version:
        yield place.refuse(
            "has no version, and the highest published one (v0.20.1) is retracted",
            f"write version: {releases.advised(KAI) or list(KAI)[-1]}",
        )
    elif f"v{version}" in KAI:
        yield place.refuse(
            f"has version {version}, and KAI's chart versions keep their v", f"write v{version}"
        )
    else:
        retracted = f"v{version.removeprefix('v')}" == releases.RETRACTED
        why = "retracted (its chart is that of v0.10.2)" if retracted else "not supported here"
        yield from _in_table(KAI, version, kai.untested, place, why)


def _in_table(
    table: Mapping[str, Any], version: str, untested: bool, place: Place, why: str
) -> Findings:
    if untested and (nearest := releases.taken_for(table, version)):
        yield place.warn(
            f"is {version}, which nobody tried with this program; it is taken for {nearest}"
        )
    elif version not in table:
        yield place.refuse(
            f"has version {version}, which is {why}",
            f"write {releases.instead(table, version)} (all: {', '.join(table)})",
        )


@advisory("kai-version-supported", "medium", kais)
def kai_version_supported(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """KAI lines that still get fixes.

    A line out of support gets no more fixes, security fixes included.
    """
    version = str(kai.version)
    if version in KAI and not (support := releases.support(KAI, version)).maintained:
        advice = releases.advice(KAI, version)
        yield place.at("version").warn(f"is {version}, and {support.words}", advice)


@mandatory("vcluster-version-known", "high", VCLUSTERS)
def vcluster_version_known(cluster: Cluster, team: Team, place: Place) -> Findings:
    """Only vCluster versions of the release table; of one that gets no more fixes a warning.

    The keys of vCluster's chart differ by version, its virtual scheduler's among them. A line past
    its end of life gets no more fixes, security fixes included.
    """
    version = known(team.version, "its version is known") or DEFAULT_VCLUSTER
    place = of_vcluster(team, "version")
    yield from _in_table(VCLUSTER, version, team.untested, place, "not supported here")
    if version in VCLUSTER and not (support := releases.support(VCLUSTER, version)).maintained:
        advice = releases.advice(VCLUSTER, version)
        yield place.warn(f"is {version}, and {support.words}", advice)


@mandatory("vcluster-upgrade", "critical", VCLUSTERS)
def vcluster_upgrade(cluster: Cluster, team: Team, place: Place) -> Findings:
    """vCluster goes up one minor version at a time, and never down.

    Larger steps are untested, and a downgrade does not undo what the newer version wrote to its
    volume: the team's whole Kubernetes may not start again.
    """
    before = team.runs.version if team.runs is not None else None
    if before is not None and isinstance(team.version, str):
        cause, _, fix = (vcluster_refusal(before, team.version) or "").partition("; ")
        if cause:
            yield of_vcluster(team, "version").refuse(cause, fix)


@mandatory("vcluster-kubernetes", "high", VCLUSTERS)
def vcluster_kubernetes(cluster: Cluster, team: Team, place: Place) -> Findings:
    """A Kubernetes inside a vCluster that knows the guard's policies, and that vCluster lists.

    The guard inside a vCluster is made of ValidatingAdmissionPolicies. An API server without
    them refuses the update after the vCluster is made, and any pod may name any queue. One that is
    newer than vCluster's version was not tried with it, nor with KAI: that is a warning.
    """
    version = team.version if team.version in VCLUSTER else DEFAULT_VCLUSTER
    own, kubernetes = VCLUSTER[str(version)].kubernetes, value_at(team.chart_values, KUBERNETES)
    numbers = version_key(kubernetes)[:2] if isinstance(kubernetes, str) else ()
    place = of_vcluster(team, "kubernetesVersion")
    if team.guard and () < numbers < version_key(OLDEST_KUBERNETES):
        yield place.refuse(
            f"is {kubernetes}, and the guard inside needs Kubernetes {OLDEST_KUBERNETES} or newer,"
            f" for {POLICY}: write {own}, which this vCluster has of itself, or"
            " kai-fleet:guard: {mode: off} to do without the guard"
        )
    elif numbers > version_key(own)[:2]:
        yield place.warn(
            f"is {kubernetes}, and vCluster {version} lists Kubernetes up to"
            f" {own.rpartition('.')[0]} (KAI up to {releases.KUBERNETES})",
            f"write {own}",
        )


_SINCE: Final = {"shards": "v0.10", "fairshare": "v0.10", "topologies": "v0.12"}


@mandatory("kai-feature-known", "high", kais)
def kai_feature_known(cluster: Cluster, kai: Kai, place: Place) -> Findings:
    """Shards, fairness over time and topologies only where the KAI version has them.

    Before v0.10 a SchedulingShard is a second scheduler beside the chart's own, and no
    scheduler knows of usage over time; before v0.12 KAI reads Kueue's topologies, not its own.
    """
    for kind, since in _SINCE.items():
        used = getattr(kai, kind)
        if used is UNKNOWN or not used:
            continue
        pools = kind == "shards" and cluster.pools
        path = at(cluster.path, "pools") if pools else place.at(kind).path
        version = known(kai.version, f"the KAI version is known: {kind} come with {since}")
        field = "has_topologies" if kind == "topologies" else "has_shards"
        having = [name for name, release in KAI.items() if getattr(release, field)]
        if version in KAI and version not in having:
            to = releases.advised(KAI, having[0])
            advice = f"{to} ({having[0]} is the first here)" if to else having[0]
            yield Place(kind, f"of {cluster.name}", path).refuse(
                f"needs KAI {since} or newer, and the version is {version}",
                f"write version: {advice}, or drop {kind}",
            )
