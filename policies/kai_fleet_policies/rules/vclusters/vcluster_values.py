"""Only values that the vCluster chart of that version takes, and that work without a licence."""

from collections.abc import Iterator, Mapping

from kai_fleet import releases
from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.releases.chart_values import unknown_keys
from kai_fleet.values import items, value_at
from kai_fleet.wording import listed
from kai_fleet_policies.problem import Level, Problems, Severity
from kai_fleet_policies.rules.vclusters import Values, judged

LEVEL = Level.MANDATORY
SEVERITY = Severity.HIGH
WHY = (
    "The chart refuses keys that it does not know (V6); keys of paid tiers make the control plane"
    " crash without a licence (V5); the vendor guide's podgroups sync does so in any case (V3)."
)
REMEDY = "Drop the key, write the one that the message names, or declare the licence."

_PAID = (
    "controlPlane.backingStore.database.external",
    "deletion",
    "policies.centralAdmission",
    "sleep",
    "sleepMode",
    "snapshots",
    "sync.toHost.pods.hybridScheduling",
)
# Of the free tier (vCluster's page of features by tier, 2026): the Pro image starts with them
# where it is connected to the vendor's platform, and the clusters are no larger than that tier's.
_FREE = (
    "controlPlane.backingStore.etcd.embedded",
    "controlPlane.coredns.embedded",
    "external.platform",
    "networking.resolveDNS",
    "platform",
    "privateNodes",
    "sync.fromHost.customResources",
    "sync.toHost.customResources",
    "sync.toHost.namespaces",
    "sync.toHost.resourceClaims",
)
_FREE_TIER = "free up to 64 CPUs and 32 GPUs where vCluster Platform is connected"
_TOLERATIONS = "sync.toHost.pods.enforceTolerations"
_IMAGE = "controlPlane.statefulSet.image.repository"


def check(cluster: DeclaredCluster) -> Problems:
    """The values of each vCluster on this host."""
    for team in cluster.teams:
        yield from judged(team, _judge)


def _judge(team: DeclaredTeam, values: Values) -> Iterator[tuple[str, str]]:
    version = team.version if isinstance(team.version, str) else ""
    known = version in releases.VCLUSTER  # else vcluster-version-known says so
    for unknown in unknown_keys("vcluster", version, values) if known else ():
        readers = f" ({listed(unknown.versions)} have it)" if unknown.versions else ""
        instead = f"write {unknown.instead}" if unknown.instead else "drop it"
        yield (
            unknown.key,
            f"has the value {unknown.key}, which the chart of {version} refuses{readers};"
            f" {instead}",
        )
    if "podgroups" in str(value_at(values, "sync.fromHost.customResources")):
        yield (
            "sync.fromHost.customResources",
            "syncs podgroups from the host: the vCluster then does not start, and KAI needs no"
            " such sync; drop it",
        )
        return
    if any(isinstance(it, Mapping) for it in items(value_at(values, _TOLERATIONS))):
        yield (
            _TOLERATIONS,
            "has mappings, and the chart takes text such as dedicated=ml:NoSchedule; write them"
            " at the team's tolerations, which vCluster, its DNS and KAI get",
        )
    if not team.licensed:
        for key in (*_PAID, *_FREE):
            if _switched_on(value_at(values, key)):
                free = f", {_FREE_TIER}" if key in _FREE else ""
                yield (
                    key,
                    f"has {key}, which needs a vCluster licence{free}; drop it, or write licensed:"
                    " true beside values if you have one",
                )
        if "vcluster-pro" in str(value_at(values, _IMAGE)):
            yield _IMAGE, "takes the Pro image, which needs a licence; drop it"
    if team.mode == "virtual":
        if value_at(values, "controlPlane.distro.k8s.scheduler.enabled") is False:
            yield (
                "controlPlane.distro.k8s.scheduler.enabled",
                "switches the virtual scheduler off, and with it mode virtual: pods would stay"
                " Pending on both sides; write mode host or default instead",
            )
        if value_at(values, "sync.fromHost.nodes.enabled") is False:
            yield (
                "sync.fromHost.nodes.enabled",
                "switches node sync off, without which a virtual scheduler does not start; drop it",
            )
    if team.mode == "host" and value_at(values, "experimental.syncSettings.setOwner") is True:
        yield (
            "experimental.syncSettings.setOwner",
            "sets owners on synced pods, which KAI's pod-grouper may not follow; drop it",
        )


def _switched_on(value: object) -> bool:
    """Whether a block is there and not simply disabled."""
    if isinstance(value, Mapping):
        enabled = value.get("enabled")
        return bool(value) if enabled is None else enabled is not False
    return value not in (None, False)
