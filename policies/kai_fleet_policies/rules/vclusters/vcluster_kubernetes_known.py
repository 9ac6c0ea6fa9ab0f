"""A Kubernetes inside a vCluster that vCluster's version and KAI list."""

from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.releases import DEFAULT_VCLUSTER, KUBERNETES, VCLUSTER, version_key
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import of_vcluster

LEVEL = Level.ADVISORY
SEVERITY = Severity.LOW
WHY = "A Kubernetes that is newer than vCluster's version was not tried with it, nor with KAI."
REMEDY = "Write the Kubernetes that the message names, or a newer vCluster."


def check(cluster: DeclaredCluster) -> Problems:
    """The minor version inside each vCluster against the newest that its version lists."""
    for team in cluster.teams:
        own, version = team.kubernetes_version, str(team.version or DEFAULT_VCLUSTER)
        if not isinstance(own, str) or version not in VCLUSTER:
            continue
        newest = VCLUSTER[version].kubernetes
        if version_key(own)[:2] > version_key(newest)[:2]:
            yield of_vcluster(team, "kubernetesVersion").advisory(
                f"is {own}, and vCluster {version} lists Kubernetes up to"
                f" {newest.rpartition('.')[0]} (KAI up to {KUBERNETES}); write {newest}"
            )
