"""The release tables: what each supported version of KAI, vCluster and the GPU stack needs."""

from components.releases.gpu_table import (
    DEVICE_PLUGIN_REPOSITORY,
    DEVICE_PLUGIN_VERSION,
    GPU_OPERATOR_REPOSITORY,
    GPU_OPERATOR_VERSION,
)
from components.releases.kai_table import KAI, KaiRelease
from components.releases.lookup import (
    UnknownVersion,
    kai,
    nearest,
    nearest_kai,
    vcluster,
    version_key,
)
from components.releases.vcluster_table import (
    DEFAULT_VCLUSTER,
    VCLUSTER,
    VCLUSTER_REPOSITORY,
    VclusterRelease,
)

__all__ = [
    "DEFAULT_VCLUSTER",
    "DEVICE_PLUGIN_REPOSITORY",
    "DEVICE_PLUGIN_VERSION",
    "GPU_OPERATOR_REPOSITORY",
    "GPU_OPERATOR_VERSION",
    "KAI",
    "VCLUSTER",
    "VCLUSTER_REPOSITORY",
    "KaiRelease",
    "UnknownVersion",
    "VclusterRelease",
    "kai",
    "nearest",
    "nearest_kai",
    "vcluster",
    "version_key",
]
