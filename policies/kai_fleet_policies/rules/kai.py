"""Rules about KAI: versions of the release table, what a version has, and values of its chart."""

from collections.abc import Mapping

from kai_fleet import releases
from kai_fleet.releases import KAI, KaiRelease, Release, minor_line, was_tried
from kai_fleet.releases.allowed_values import Refusal, refusals, unread
from kai_fleet.values import at, get, value_at
from kai_fleet_policies.key_paths import overlaps
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.installed import Kai
from kai_fleet_policies.rules.rule import (
    Findings,
    Subject,
    advisory,
    each_kai,
    mandatory,
    require_known,
)

ReleaseTable = Mapping[str, Release]


@mandatory("kai-version-known", "high", each_kai)
def kai_version_known(cluster: ClusterModel, kai: Kai, subject: Subject) -> Findings:
    """Only KAI versions of the release table.

    Charts differ by version in names, hooks and defects, and the highest tag, v0.20.1, is a
    retracted one. With `untested: true` a version only warns if it is newer than the table's newest
    one of its minor line, or than all of them if the line is not there. The host's KAI is judged in
    the platform's stack, not in a team's own.
    """
    version = require_known(kai.version, "its version is known")
    at_version = subject.at("version")
    if not version:  # None or "": also refused with `untested`
        advised = releases.advised(KAI) or list(KAI)[-1]
        yield at_version.refuse(
            "has no version, and the highest published one (v0.20.1) is retracted",
            f"write version: {advised}",
        )
        return
    reason = "not supported here"
    if version == releases.RETRACTED:
        reason = "retracted (its chart is that of v0.10.2)"
    yield from version_findings(KAI, version, kai.untested, at_version, reason)


def version_findings(
    table: ReleaseTable,
    version: str,
    untested: bool,
    subject: Subject,
    reason: str,
) -> Findings:
    """What is wrong with a version: at most one finding, none if the release table has it.

    With `untested` a version for which `taken_for` finds one of the table only warns. Each other
    one is refused; `reason` completes "has version X, which is".
    """
    nearest = releases.taken_for(table, version) if untested else None
    if nearest:
        yield subject.warn(untested_cause(version, nearest))
    elif version not in table:
        instead = releases.instead(table, version)
        yield subject.refuse(
            f"has version {version}, which is {reason}",
            f"write {instead} (all: {', '.join(table)})",
        )


def untested_cause(version: str, nearest: str) -> str:
    """The cause of the warning about a version that is taken for `nearest`."""
    return f"is {version}, which nobody tried with this program; it is taken for {nearest}"


@advisory("kai-version-supported", "medium", each_kai)
def kai_version_supported(cluster: ClusterModel, kai: Kai, subject: Subject) -> Findings:
    """KAI versions that still get fixes, and that have no known faults.

    A line out of support gets no more fixes, security fixes included; a version may have
    vulnerabilities that the next one repairs.
    """
    # No version, or one that is UNKNOWN, is a text that the table does not have.
    yield from advised_against(KAI, str(kai.version), subject.at("version"))


def advised_against(table: ReleaseTable, version: str, subject: Subject) -> Findings:
    """Warn of a version of the table without fixes today, or with a caveat.

    The words are those of `fleet releases`. A version that the table does not have is not judged.
    """
    if version not in table:
        return
    standing = releases.standing(table, version)
    if not standing.maintained:
        yield subject.warn(
            f"is {version}, and {standing.words}",
            releases.advice(table, version),
        )


@advisory("kai-kubernetes", "low", each_kai)
def kai_kubernetes(cluster: ClusterModel, kai: Kai, subject: Subject) -> Findings:
    """KAI runs on a Kubernetes that its line was validated with, or that it was seen to run on.

    A newer Kubernetes may drop an API that it calls, or have fields that it does not know.
    """
    kubernetes = cluster.kubernetes
    release = KAI.get(str(kai.version))
    if not kubernetes or release is None:
        return  # not known, or kai-version-known says so
    newest = release.kubernetes
    if minor_line(kubernetes) <= minor_line(newest) or was_tried(kubernetes, release.version):
        return
    yield subject.at("version").warn(
        f"is {release.version}, validated up to Kubernetes {newest}, and its cluster has"
        f" {kubernetes}",
        releases.advice(KAI, release.version),
    )


# The first line of KAI with each of these, for messages; the table of releases decides.
_SINCE = {"shards": "v0.10", "fairshare": "v0.10", "topologies": "v0.12"}


@mandatory("kai-feature-known", "high", each_kai)
def kai_feature_known(cluster: ClusterModel, kai: Kai, subject: Subject) -> Findings:
    """Shards, fairness over time and topologies only where the KAI version has them.

    Before v0.10 a SchedulingShard is a second scheduler beside the chart's own, and no
    scheduler knows of usage over time; before v0.12 KAI reads Kueue's topologies, not its own.
    """
    declared = {
        "shards": kai.shards,
        "fairshare": kai.fairshare,
        "topologies": kai.topologies,
    }
    # A finding for each feature. An UNKNOWN version leaves all undecided, as one finding; one that
    # the table does not have is not judged, whatever `untested` says.
    for feature, since in _SINCE.items():
        if not declared[feature]:
            continue
        version = require_known(
            kai.version, f"the KAI version is known: {feature} come with {since}"
        )
        if version not in KAI or _has_feature(KAI[version], feature):
            continue
        path = subject.at(feature).path
        if feature == "shards" and cluster.pools:  # a team's pools are what makes shards
            path = at(cluster.path, "pools")
        advised = releases.advised(KAI) or since
        yield Subject(feature, f"of {cluster.name}", path).refuse(
            f"needs KAI {since} or newer, and the version is {version}",
            f"write version: {advised}, or drop {feature}",
        )


def _has_feature(release: KaiRelease, feature: str) -> bool:
    """Whether a KAI has a feature, which is one of _SINCE."""
    if feature == "topologies":
        return release.has_topologies
    return release.has_shards  # fairness over time came with them


# What the program sets for a reason, and what an override, only `true`, would bring back: the text
# completes "has KEY: true, which".
_UNDONE = {
    "defaultQueue.createDefaultQueue": "makes queues that collide with declared ones",  # K4
    "topologyMigration.enabled": "runs a hook that fails beside Kueue's Topologies",  # K13
    "postCleanup.enabled": "runs a hook that hangs on tainted nodes",  # K14
}


@mandatory("kai-values", "medium", each_kai)
def kai_values(cluster: ClusterModel, kai: Kai, subject: Subject) -> Findings:
    """An isolated team's KAI has only values of the allow-list, and no KAI undoes the program's.

    Whoever writes the values of a team's KAI would decide what runs in its place; and some
    values bring back a hook that the program switched off.
    """
    values = require_known(kai.values, "its values are known")
    version = str(kai.version or "")
    # Overrides, then what the chart ignores, where UNKNOWN counts as set. Last what a team may
    # not set, but for keys that overlap those before: there an UNKNOWN value is passed over.
    wrong: list[Refusal] = [
        (key, f"has {key}: true, which {effect}", "drop it")
        for key, effect in _UNDONE.items()
        if value_at(values, key) is True
    ]
    if version in KAI or kai.untested:
        wrong += unread(values, version)
    if cluster.isolated:
        reported = [key for key, _, _ in wrong]
        for key, cause, fix in refusals("kai", values, version):
            if cause and not overlaps(key, reported):
                wrong.append((key, cause, fix))
    for key, cause, fix in wrong:
        yield subject.at("values").at(key).refuse(cause, fix)


@advisory("kai-value-reaches", "low", each_kai)
def kai_value_reaches(cluster: ClusterModel, kai: Kai, subject: Subject) -> Findings:
    """Values that the chart reads and that do not reach KAI's parts.

    From v0.9 through v0.12 global.nodeSelector and global.imagePullSecrets stop at the
    operator: the parts that it makes run anywhere, and pull without credentials.
    """
    release = KAI.get(str(kai.version))  # None also without a version, and for UNKNOWN
    if release is None or release.operands_get_node_selector or not release.has_operator:
        return  # without an operator the chart makes every part itself
    values = require_known(kai.values, "its values are known")
    # A value that is UNKNOWN counts as set, an empty one as absent.
    set_values = [
        subject.at("values", "global", key)
        for key in ("nodeSelector", "imagePullSecrets")
        if get(values, "global", key)
    ]
    if kai.registries:
        set_values.append(Subject("KAI", f"of {cluster.name}", "kai-fleet:registries"))
    newer = releases.advised(KAI, release.version) or "a newer KAI"
    for lost in set_values:
        yield lost.warn(
            f"reaches KAI's operator, and in {release.version} not the parts that it makes",
            f"move to {newer}, or drop it",
        )
