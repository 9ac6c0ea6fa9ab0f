"""GpuStack: the chart that makes the nodes of a host advertise their GPUs."""

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict

import pulumi_kubernetes as kubernetes
from pulumi import ComponentResource, Output, Resource, ResourceOptions

from kai_fleet.declaring.argument_check import Allowed, check
from kai_fleet.declaring.inputs import RegistryArgs, TolerationArgs, toleration_spec
from kai_fleet.declaring.options import child_options, component_options, depending_on
from kai_fleet.declaring.pull_secrets import registry_secrets
from kai_fleet.helm_charts.chart_args import chart_args
from kai_fleet.helm_charts.installed_chart import hold_to
from kai_fleet.isolation.policies import ENFORCED, SYSTEM_SCOPE
from kai_fleet.names import NAMESPACE, STACK_PULL_SECRET
from kai_fleet.ownership.owners import HostObject, refuse_others
from kai_fleet.releases import GPU_PROVIDERS, GpuProvider
from kai_fleet.releases.chart_values import merged, nested

Values = dict[str, Any]

_ALLOWED = Allowed(
    choices={"provider": GPU_PROVIDERS, "use_existing": ("namespace", "runtimeClass")}
)
_INSTEAD = (
    "A GPU stack is once on a host: leave GpuStack out, or write provider: none; if only the"
    ' namespace was made before, write use_existing: ["namespace"]'
)
# Label of its namespace. Its pods mount files and devices of the node, which a cluster-wide Pod
# Security default refuses.
PRIVILEGED = {ENFORCED: "privileged"}
# GKE admits system priority classes only in a namespace with such a quota (gpu-operator#660). It
# bounds nothing.
_SYSTEM_PRIORITIES: Any = {"hard": {"pods": "1G"}, "scope_selector": SYSTEM_SCOPE}


class GpuStackArgs(TypedDict, total=False):
    """The GPU stack of a host cluster."""

    provider: Required[str]
    """`operator`: NVIDIA's GPU operator. `device-plugin`: NVIDIA's device plugin, on nodes with
    drivers. `none`: nodes advertise GPUs already, or have none.
    """
    version: str
    """Version of the provider's chart. Default: that of the release table."""
    chart: str
    """Another chart: oci://…, https://… or a path. Default: the provider's own."""
    chart_account: RegistryArgs
    """Credentials to pull `chart`. Default: none."""
    values: Mapping[str, Any]
    """Chart values, merged over all others. Default: none."""
    tolerations: Sequence[TolerationArgs]
    """Taints of the teams' nodes, which the DaemonSets have to tolerate. Default: the chart's."""
    registries: Mapping[str, RegistryArgs]
    """Credentials to pull its images, by registry: `nvcr.io`. Default: none."""
    system_priorities: bool
    """Admit system PriorityClasses in the GPU stack's namespace, with a ResourceQuota. GKE needs
    it. Default: false.
    """
    in_kind: bool
    """The nodes are containers of a kind cluster with the machine's driver. Default: false."""
    use_existing: Sequence[str]
    """What others own, used and not declared: `namespace`, `runtimeClass`. Default: none."""


class GpuStack(ComponentResource):
    """The chart of a GPU provider, with its namespace, RuntimeClass, pull Secret and quota.

    Raises:
        pulumi.RunError: an argument is not one that it takes, the chart is another one, or its
            namespace belongs to another program; or, in an update, the host cannot be read.
    """

    namespace: Output[str]
    """Namespace of its pods; empty with provider `none`."""
    version: Output[str]
    """Version of its chart; empty with provider `none`."""

    def __init__(self, name: str, args: GpuStackArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kai-fleet:index:GpuStack", name, None, component_options(opts))
        self._title = f"GpuStack {name}"
        check(self._title, GpuStackArgs, args, _ALLOWED)
        self._prefix = name
        self._args = args
        self._gpu_provider = GPU_PROVIDERS[args["provider"]]
        version = ""
        child = child_options(self, opts)
        self._refuse_other_namespace()
        declared = self._runtime_class(child_options(self, opts, retain_on_delete=True))
        if self._gpu_provider.chart:
            version = args.get("version", self._gpu_provider.version)
            declared += self._namespace(child)
            declared += registry_secrets(
                name,
                STACK_PULL_SECRET,
                self._gpu_provider.chart,
                args.get("registries"),
                depending_on(child, *declared),
            )
            declared += self._priority_quota(depending_on(child, *declared))
            self._release(version, depending_on(child, *declared))
        self.namespace = Output.from_input(self._gpu_provider.chart)
        self.version = Output.from_input(version)
        self.register_outputs({"namespace": self._gpu_provider.chart, "version": version})

    def _uses_existing(self, what: str) -> bool:
        return what in self._args.get("use_existing", [])

    def _refuse_other_namespace(self) -> None:
        """Refuse a namespace that another program made. Raises as `refuse_others` does.

        Without a chart, or if `use_existing` names the namespace, the host is not asked. A
        RuntimeClass that exists is not refused: it stays on deletion, whoever made it.
        """
        chart = self._gpu_provider.chart
        if not chart or self._uses_existing("namespace"):
            return
        path = f"/api/v1/namespaces/{chart}"
        namespace = HostObject(NAMESPACE, f"{self._prefix}-namespace", path)
        refuse_others(self, self._title, [namespace], _INSTEAD)

    def _runtime_class(self, opts: ResourceOptions) -> list[Resource]:
        """Declare the RuntimeClass that the chart lacks, unless `use_existing` names it.

        Pods that share GPUs and vClusters need it (V8). By `opts` it stays on deletion, because
        others may use it by then.
        """
        runtime_class = self._gpu_provider.runtime_class
        if not runtime_class or self._uses_existing("runtimeClass"):
            return []
        declared = kubernetes.node.v1.RuntimeClass(
            f"{self._prefix}-runtime-class",
            metadata={"name": runtime_class},
            handler=runtime_class,
            opts=opts,
        )
        return [declared]

    def _namespace(self, opts: ResourceOptions) -> list[Resource]:
        """Declare the chart's namespace with PRIVILEGED, unless `use_existing` names it."""
        if self._uses_existing("namespace"):
            return []
        namespace = kubernetes.core.v1.Namespace(
            f"{self._prefix}-namespace",
            metadata={"name": self._gpu_provider.chart, "labels": PRIVILEGED},
            opts=opts,
        )
        return [namespace]

    def _priority_quota(self, opts: ResourceOptions) -> list[Resource]:
        """Declare the quota that admits Kubernetes' own priority classes, if the arguments ask."""
        if not self._args.get("system_priorities"):
            return []
        quota = kubernetes.core.v1.ResourceQuota(
            f"{self._prefix}-system-priorities",
            metadata={"name": "system-priorities", "namespace": self._gpu_provider.chart},
            spec=_SYSTEM_PRIORITIES,
            opts=opts,
        )
        return [quota]

    def _release(self, version: str, opts: ResourceOptions) -> None:
        """Declare the chart's Helm release, which waits 15 minutes for its objects to be ready.

        Raises pulumi.RunError as `chart_args` does. A chart that only Helm finds to be another one
        ends the run later, as `hold_to` says.
        """
        chart = self._gpu_provider.chart
        helm = kubernetes.helm.v3.Release(
            f"{self._prefix}-release",
            **chart_args(chart, version, self._args, self._gpu_provider.repository),
            name=chart,
            namespace=chart,
            values=gpu_values(self._gpu_provider, self._args),
            timeout=900,  # seconds; drivers are built on the nodes
            opts=opts,
        )
        hold_to(self._title, helm, chart, version)


def gpu_values(provider: GpuProvider, args: GpuStackArgs) -> Values:
    """Chart values of a provider for the arguments, with `values` of the arguments over all.

    A list in `values` replaces a computed one. Raises KeyError for a toleration without a key.
    """
    return merged(
        provider.in_kind if args.get("in_kind") else {},
        _toleration_values(provider, args.get("tolerations", [])),
        _pull_secret_values(provider) if args.get("registries") else {},
        args.get("values", {}),
    )


def _toleration_values(provider: GpuProvider, tolerations: Sequence[TolerationArgs]) -> Values:
    """The chart's own tolerations of each DaemonSet and, behind them, these; {} without these.

    A tainted node without DaemonSets advertises no GPUs. Raises KeyError for one without a key.
    """
    if not tolerations:
        return {}
    specs = [toleration_spec(toleration) for toleration in tolerations]
    lists = [nested(key, [*chart, *specs]) for key, chart in provider.tolerations.items()]
    return merged(*lists)


def _pull_secret_values(provider: GpuProvider) -> Values:
    """A list of the pull Secret under each key that takes one, as a name or as an object."""
    names = [nested(key, [STACK_PULL_SECRET]) for key in provider.pull_names]
    objects = [nested(key, [{"name": STACK_PULL_SECRET}]) for key in provider.pull_objects]
    return merged(*names, *objects)
