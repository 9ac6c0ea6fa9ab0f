"""Rules about the versions of vCluster and of the Kubernetes inside."""

import re

from kai_fleet.releases import DEFAULT_VCLUSTER, VCLUSTER
from kai_fleet.releases.chart_stores import KUBERNETES
from kai_fleet.values import value_at
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.rules.kai import advised_against, version_findings
from kai_fleet_policies.rules.rule import (
    Findings,
    Subject,
    each_vcluster,
    mandatory,
    require_known,
)
from kai_fleet_policies.rules.upgrade_steps import (
    etcd_refusal,
    host_refusal,
    kubernetes_refusal,
    vcluster_refusal,
)


@mandatory("vcluster-version-known", "high", each_vcluster)
def vcluster_version_known(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """Only vCluster versions of the release table; one that is not advised is a warning.

    The keys of vCluster's chart differ by version, its virtual scheduler's among them. A line past
    its end of life gets no more fixes, security fixes included.
    """
    # A version that the table lacks is refused or warned of; another is warned of, or fine.
    version = require_known(team.version, "its version is known") or DEFAULT_VCLUSTER
    at_version = subject.at("version")
    yield from version_findings(VCLUSTER, version, team.untested, at_version, "not supported here")
    yield from advised_against(VCLUSTER, version, at_version)


@mandatory("vcluster-upgrade", "critical", each_vcluster)
def vcluster_upgrade(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """vCluster goes up one minor version at a time, and never down.

    Larger steps are untested, and a downgrade does not undo what the newer version wrote to its
    volume: the team's whole Kubernetes may not start again.
    """
    if team.running_version is None or not isinstance(team.version, str):
        return  # it is not known what runs, or what shall; one left open is not taken for a default
    refusal = vcluster_refusal(team.running_version, team.version)
    if refusal is None and team.store.type == "etcd":
        refusal = etcd_refusal(team.running_version, team.version)
    if refusal:
        yield subject.at("version").refuse(*refusal)


_VERSION = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+([-+].*)?")


@mandatory("vcluster-kubernetes", "critical", each_vcluster)
def vcluster_kubernetes(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """A vCluster's Kubernetes is one that its version has, and goes up one minor version at a time.

    An older API server does not read what a newer one wrote, and one that vCluster does not know
    may not start: the team's whole Kubernetes restarts for ever.
    """
    if team.running_version and vcluster_refusal(team.running_version, str(team.version)):
        return  # vcluster-upgrade says so
    version = require_known(team.kubernetes, "its Kubernetes is known")
    release = VCLUSTER.get(str(team.version or DEFAULT_VCLUSTER))
    of_release = release.kubernetes if release is not None else None
    if not _VERSION.fullmatch(version):
        return  # the tag of another image, or a vCluster that vcluster-version-known refuses
    running = team.running_kubernetes or ""
    before = running if _VERSION.fullmatch(running) else None
    newest = None if team.untested else of_release  # None: any may be newer
    refusal = kubernetes_refusal(version, before, newest)
    if refusal:
        yield subject.at(kubernetes_key(team)).refuse(*refusal)


def kubernetes_key(team: TeamModel) -> str:
    """The key of a vCluster's Kubernetes, below `vcluster`: a chart value if one is written."""
    for key_of_chart in KUBERNETES:
        if value_at(team.values, key_of_chart):
            return f"values.{key_of_chart}"
    return "kubernetesVersion"


@mandatory("vcluster-host-kubernetes", "high", each_vcluster)
def vcluster_host_kubernetes(cluster: ClusterModel, team: TeamModel, subject: Subject) -> Findings:
    """The Kubernetes in a vCluster works on that of its host.

    Before v0.35.3 pods of a Kubernetes before v1.34 never become Ready on a newer host: what waits
    for them, KAI among it, never comes up.
    """
    host = cluster.kubernetes
    if not host:
        return  # an offline plan knows it only of a kind cluster's image
    kubernetes = require_known(team.kubernetes, "its Kubernetes is known")
    refusal = host_refusal(str(team.version or DEFAULT_VCLUSTER), kubernetes, host)
    if refusal is None:
        return
    # One that runs is no reason to stop: it has to be able to go up line by line.
    if team.running_version:
        yield subject.at("version").warn(*refusal)
    else:
        yield subject.at("version").refuse(*refusal)
