"""The component of a kind, declared; and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pulumi
from pulumi.provider.experimental.property_value import PropertyValue

from kai_fleet.cluster.access import deleted_with
from kai_fleet.package import inputs as given_inputs
from kai_fleet.package.construct import clusters, guards, kai, platform, workloads
from kai_fleet.package.construct.request import Request, Result
from kai_fleet.provider.errors import PluginError
from kai_fleet.releases.lookup import UnknownVersionError
from kai_fleet.settings.files.secret_values import hide_values
from kai_fleet.state.deployed_state import DeployedState

_BY_KIND: Final[Mapping[str, Callable[[Request], Result]]] = {
    "Platform": platform.platform,
    "Team": clusters.team,
    "VirtualCluster": clusters.virtual_cluster,
    "KaiScheduler": kai.kai_scheduler,
    "QueueTree": kai.queue_tree,
    "QueueGuard": guards.queue_guard,
    "HostGuard": guards.host_guard,
    "GpuStack": kai.gpu_stack,
    "GpuPod": workloads.workload,
    "GpuDeployment": workloads.workload,
    "VllmServer": workloads.workload,
}


def constructed(
    kind: str,
    name: str,
    inputs: Mapping[str, PropertyValue],
    opts: pulumi.ResourceOptions,
    deployed: DeployedState,
) -> Result:
    """Declare it. Raises PluginError with a sentence for every mistake of its user."""
    if kind not in _BY_KIND:
        raise PluginError(
            f"the package kai-fleet has no component {kind}; write one of {', '.join(_BY_KIND)}"
        )
    if isinstance(opts.deleted_with, pulumi.Resource):
        # The option holds for the component alone, and what it declares is what would be deleted.
        opts = pulumi.ResourceOptions.merge(
            opts, pulumi.ResourceOptions(transformations=[deleted_with(opts.deleted_with)])
        )
    given = given_inputs.read(inputs)
    if given.hidden:
        hide_values()
    try:
        return _BY_KIND[kind](Request(kind, name, given, opts, deployed))
    except (UnknownVersionError, ValueError, pulumi.RunError) as why:
        raise PluginError(f"{kind} {name}: {why}") from None
