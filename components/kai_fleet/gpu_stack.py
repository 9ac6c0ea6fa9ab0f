"""The GPU stack of a host cluster: what makes its nodes advertise GPUs."""

from typing import Any, NotRequired, TypedDict

from kai_fleet.inputs import RegistryArgs, TolerationArgs


class GpuStackArgs(TypedDict):
    """Which GPU stack a cluster gets, and how."""

    provider: str
    """`operator`: NVIDIA's GPU operator. `device-plugin`: NVIDIA's device plugin, on nodes with
    drivers. `none`: nodes advertise GPUs already, or have none.
    """
    version: NotRequired[str]
    """Version of the chart. Default: the provider's tested one."""
    chart: NotRequired[str]
    """Another chart: oci://…, https://… or a path. Default: the provider's own."""
    values: NotRequired[dict[str, Any]]
    """Values of the chart, merged over all others. Default: none."""
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints of the teams' nodes: the daemons have to run there. Default: the chart's own."""
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials for its images, by registry: `nvcr.io`. Default: none."""
    system_priorities: NotRequired[bool]
    """Admit system priority classes in its namespace by a ResourceQuota, as GKE needs. Default:
    false.
    """
    in_kind: NotRequired[bool]
    """The nodes are a kind cluster's, whose driver is the machine's. Default: false."""
    use_existing: NotRequired[list[str]]
    """What others made on the cluster, used and not declared: `namespace`, `runtimeClass`. Default:
    none.
    """
