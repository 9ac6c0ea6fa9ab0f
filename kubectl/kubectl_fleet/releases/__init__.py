"""The release tables: what each supported version of KAI and vCluster needs."""

from kubectl_fleet.releases.kai_table import KAI, KUBERNETES, KaiRelease
from kubectl_fleet.releases.lookup import (
    DISABLED,
    UnknownVersionError,
    advice,
    advised,
    has_sharing_modes,
    instead,
    kai,
    nearest,
    support,
    taken_for,
    takes_external_pod_groups,
    vcluster,
    vcluster_support,
    version_key,
)
from kubectl_fleet.releases.vcluster_table import (
    DEFAULT_VCLUSTER,
    VCLUSTER,
    VCLUSTER_REPOSITORY,
    VclusterRelease,
)

__all__ = [
    "DEFAULT_VCLUSTER",
    "DISABLED",
    "KAI",
    "KUBERNETES",
    "VCLUSTER",
    "VCLUSTER_REPOSITORY",
    "KaiRelease",
    "UnknownVersionError",
    "VclusterRelease",
    "advice",
    "advised",
    "has_sharing_modes",
    "instead",
    "kai",
    "nearest",
    "support",
    "taken_for",
    "takes_external_pod_groups",
    "vcluster",
    "vcluster_support",
    "version_key",
]
