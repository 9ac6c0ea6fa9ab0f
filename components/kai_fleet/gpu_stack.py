"""GpuStack: the chart by which the nodes of a host cluster advertise GPUs."""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, TypedDict

import pulumi
import pulumi_kubernetes as kubernetes

from kai_fleet.argument_check import Allowed, check
from kai_fleet.guards.policies import ENFORCED, SYSTEM_SCOPE
from kai_fleet.inputs import RegistryArgs, TolerationArgs, toleration_spec
from kai_fleet.installed_chart import hold_to
from kai_fleet.names import NAMESPACE
from kai_fleet.options import after, chart_args, child_of, component_options, registry_secret
from kai_fleet.owners import HostObject, refuse_others
from kai_fleet.releases import GPU_PROVIDERS, GpuProvider
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet.settings.sections.access import OF_STACK

GPU_STACK: Final = "kai-fleet:index:GpuStack"
_ALLOWED: Final = Allowed(
    choices={"provider": GPU_PROVIDERS, "use_existing": ("namespace", "runtimeClass")}
)
_INSTEAD: Final = (
    "A GPU stack is once on a host: leave GpuStack out, or write provider: none; if only the"
    ' namespace was made before, write use_existing: ["namespace"]'
)
# Its pods mount files and devices of the node, which a cluster-wide Pod Security default refuses.
PRIVILEGED: Final = {ENFORCED: "privileged"}
# GKE admits system priority classes only beside such a quota; it bounds nothing (gpu-operator#660).
_SYSTEM_PRIORITIES: Final[Any] = {"hard": {"pods": "1G"}, "scope_selector": SYSTEM_SCOPE}


class GpuStackArgs(TypedDict):
    """Which GPU stack a cluster gets, and how."""

    provider: str
    """`operator`: NVIDIA's GPU operator. `device-plugin`: NVIDIA's device plugin, on nodes with
    drivers. `none`: nodes advertise GPUs already, or have none.
    """
    version: NotRequired[str]
    """Version of the chart. Default: the one tested for the provider."""
    chart: NotRequired[str]
    """Another chart: oci://…, https://… or a path. Default: the provider's own."""
    chart_account: NotRequired[RegistryArgs]
    """Credentials to pull `chart`. Default: none."""
    values: NotRequired[dict[str, Any]]
    """Values of the chart, merged over all others. Default: none."""
    tolerations: NotRequired[list[TolerationArgs]]
    """Taints of the teams' nodes, where the DaemonSets have to run. Default: the chart's own."""
    registries: NotRequired[dict[str, RegistryArgs]]
    """Credentials to pull its images, by registry: `nvcr.io`. Default: none."""
    system_priorities: NotRequired[bool]
    """Declare a ResourceQuota that admits system priority classes in its namespace, for GKE.
    Default: false.
    """
    in_kind: NotRequired[bool]
    """The nodes are those of a kind cluster, with the machine's driver. Default: false."""
    use_existing: NotRequired[list[str]]
    """Objects of others, used and not declared: `namespace`, `runtimeClass`. Default: none."""


class GpuStack(pulumi.ComponentResource):
    """The chart of a GPU provider, with its namespace, RuntimeClass, pull Secret and quota.

    Raises:
        pulumi.RunError: arguments that it does not take, or what it declares is others' already.
    """

    namespace: pulumi.Output[str]
    """Namespace of its pods; empty with provider `none`."""
    version: pulumi.Output[str]
    """Version of its chart; empty with provider `none`."""

    def __init__(
        self, name: str, args: GpuStackArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(GPU_STACK, name, None, component_options(opts))
        check(f"GpuStack {name}", GpuStackArgs, args, _ALLOWED)
        provider = GPU_PROVIDERS[args["provider"]]
        if provider.chart and "namespace" not in args.get("use_existing", ()):
            # A RuntimeClass stays when the stack goes, whoever made it.
            path = f"/api/v1/namespaces/{provider.chart}"
            spaces = [HostObject(NAMESPACE, f"{name}-namespace", path)]
            refuse_others(self, f"GpuStack {name}", spaces, _INSTEAD)
        version, chart = args.get("version", provider.version), provider.chart
        child, before = child_of(self, opts), list[pulumi.Resource]()
        existing = args.get("use_existing", ())
        if provider.runtime_class and "runtimeClass" not in existing:
            runtime_class = kubernetes.node.v1.RuntimeClass(
                f"{name}-runtime-class",
                metadata={"name": provider.runtime_class},
                handler=provider.runtime_class,
                # Pods that share GPUs and vClusters need it (V8); others may use it by then.
                opts=child_of(self, opts, retain_on_delete=True),
            )
            before.append(runtime_class)
        if chart and "namespace" not in existing:
            metadata: Any = {"name": chart, "labels": PRIVILEGED}
            before.append(
                kubernetes.core.v1.Namespace(f"{name}-namespace", metadata=metadata, opts=child)
            )
        if chart and (registries := args.get("registries")):
            before.append(registry_secret(name, OF_STACK, chart, registries, after(child, *before)))
        if chart and args.get("system_priorities"):  # GKE admits such pods nowhere else
            quota = kubernetes.core.v1.ResourceQuota(
                f"{name}-system-priorities",
                metadata={"name": "system-priorities", "namespace": chart},
                spec=_SYSTEM_PRIORITIES,
                opts=after(child, *before),
            )
            before.append(quota)
        if chart:
            helm = kubernetes.helm.v3.Release(
                f"{name}-release",
                **chart_args(chart, version, args, provider.repository),
                name=chart,
                namespace=chart,
                values=gpu_values(provider, args),
                timeout=900,  # drivers are built on the nodes
                opts=after(child, *before),
            )
            hold_to(f"GpuStack {name}", helm, chart, version)
        self.namespace = pulumi.Output.from_input(chart)
        self.version = pulumi.Output.from_input(version)
        self.register_outputs({"namespace": chart, "version": version})


def gpu_values(provider: GpuProvider, args: Mapping[str, Any]) -> dict[str, Any]:
    """Chart values of a provider for GpuStackArgs; their `values` are merged last."""
    tolerations = [toleration_spec(each) for each in args.get("tolerations", ())]
    lists = provider.tolerations.items() if tolerations else ()
    pull = bool(args.get("registries"))
    return merged(
        provider.in_kind if args.get("in_kind") else {},
        # A tainted node without the DaemonSets advertises no GPUs.
        *(nested(key, [*own, *tolerations]) for key, own in lists),
        *(nested(key, [OF_STACK]) for key in provider.pull_names if pull),
        *(nested(key, [{"name": OF_STACK}]) for key in provider.pull_objects if pull),
        args.get("values", {}),
    )
