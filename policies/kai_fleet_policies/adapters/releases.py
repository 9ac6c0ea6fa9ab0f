"""Helm releases of any program, read as KAI, vClusters and other charts."""

from collections.abc import Iterator, Mapping
from typing import Any

from kai_fleet.releases import GPU_CHARTS, has_sharing_modes, keys, minor_line
from kai_fleet.releases.chart_stores import store_of
from kai_fleet.releases.charts import chart_in
from kai_fleet.releases.sharing import SharingMode, mode_in, mode_of_switch
from kai_fleet.urns import read_urn
from kai_fleet.values import UNKNOWN, Maybe, flag, known_or, mapping, text, value_at
from kai_fleet_policies.adapters.resource import DeclaredResource, Properties
from kai_fleet_policies.model.cluster import TeamModel
from kai_fleet_policies.model.device_sharing import device_sharing
from kai_fleet_policies.model.installed import Chart, Kai, ManagedObject
from kai_fleet_policies.model.queues import UNLIMITED_SHARES, DeclaredQueue

KAI_CHART = "kai-scheduler"
VCLUSTER_CHART = "vcluster"
# The charts that this program's components install; the other components install none.
_CHARTS = {
    "VirtualCluster": (VCLUSTER_CHART,),
    "KaiScheduler": (KAI_CHART,),
    "GpuStack": tuple(sorted(GPU_CHARTS)),
}
_IMAGE = "controlPlane.statefulSet.image.repository"
# With one of them a vCluster has a scheduler inside.
_SCHEDULER_SWITCHES = (
    "controlPlane.distro.k8s.scheduler.enabled",
    "controlPlane.advanced.virtualScheduler.enabled",
)


class HelmRelease:
    """A Helm release, or a chart whose objects a program declares.

    Without a name it has that of the resource, without a namespace that of the provider.

    Attributes:
        component: The component of this program that declares it; "" for any other release.
        chart: Name of its chart; in a component with one chart that chart.
        version: Version of the chart; None if the newest one is installed.
        values: Its values; None if it has none. UNKNOWN with files of values, which only the engine
            reads, whatever `values` has.
        name: Name of the release; Pulumi's is `resource.name`.
    """

    def __init__(self, resource: DeclaredResource) -> None:
        """`resource` is of type Release or Chart; its type is not checked."""
        props = resource.props
        self.resource = resource
        self.chart, self.version = chart_of(props)
        self.component = read_urn(resource.urn).component
        charts = _CHARTS.get(self.component, ())
        if len(charts) == 1:
            self.chart = charts[0]
        self.values = UNKNOWN if props.get("valueYamlFiles") else props.get("values")
        self.name = text(props.get("name")) or resource.name
        self.namespace = text(props.get("namespace")) or resource.default_namespace

    @property
    def _judged_values(self) -> Maybe[Mapping[str, Any]]:
        """The values that its user writes; UNKNOWN if they are as a whole.

        Empty in any component of this program: those are judged with the stack file, where levels
        and sources are known.
        """
        return {} if self.component else mapping(self.values)

    def chart_of_component(self) -> Chart:
        """The chart of a release in a component of this program, where only some are allowed.

        By what it was given: `chart` as it is written (a location, or UNKNOWN), not the name in
        `self.chart`; "" if it is absent. Its version is `version` as it is written, or None.
        """
        return Chart(
            text(self.resource.props.get("chart")) or "",
            version=text(self.resource.props.get("version")),
            subject=f"release {self.resource.name} in component {self.component}",
            path=self.resource.urn,
            names=_CHARTS.get(self.component, ()),
        )

    def kai(self) -> Kai:
        """The KAI that it is; `chart` has to be that of KAI.

        In any component of this program it has no values, as `_judged_values` says. In KaiScheduler
        it may be of an untested version, whatever the component's `untested` says: that is not
        known here. Its shards and topologies are other resources.
        """
        return Kai(
            self.version,
            sharing=_sharing(self.version, self.values),
            values=self._judged_values,
            untested=self.component == "KaiScheduler",
            namespace=self.namespace,
            path=self.resource.urn,
            makes_queues=self._makes_queues,
        )

    @property
    def _makes_queues(self) -> Maybe[bool]:
        """Whether KAI's chart makes its two queues: from v0.10, if they are not switched off.

        UNKNOWN if the version is left open, or if it or the switch is not known. A switch that is
        off, or a version before v0.10, decides alone.
        """
        switch = flag(value_at(self.values, "defaultQueue.createDefaultQueue"), unset=True)
        version = known_or(self.version, None)
        if switch is False or (version and minor_line(version) < (0, 10)):
            return False
        return switch if version else UNKNOWN

    def queues_of_kai(self) -> Iterator[DeclaredQueue]:
        """The two queues that KAI's chart makes: the parent, then the leaf.

        None if it makes no queues, or if that is not known.

        Their quota of 0 is not the user's to change: unlimited shares keep rules silent about it.
        """
        if self._makes_queues is True:
            path = self.resource.urn
            yield DeclaredQueue(keys.CHART_PARENT, None, UNLIMITED_SHARES, path=path)
            yield DeclaredQueue(keys.CHART_LEAF, keys.CHART_PARENT, UNLIMITED_SHARES, path=path)

    def team(self) -> TeamModel:
        """The team of the vCluster that it is, by the values of its chart.

        Its GPUs and what is inside are not known here. A known version begins with `v`. In
        component VirtualCluster an untested version is accepted, which is judged with the stack
        file, and it is licensed unless the values have a repository of its image, or are UNKNOWN.
        """
        version = self.version
        if isinstance(version, str) and version:
            version = f"v{version.removeprefix('v')}"  # the chart's versions have no v
        in_component = self.component == "VirtualCluster"
        return TeamModel(
            self.name,
            path=self.resource.urn,
            namespace=self.namespace,
            version=version,
            node_pool=mapping(value_at(self.values, "sync.fromHost.nodes.selector.labels")),
            mode=_mode(self.values),
            values=self._judged_values,
            chart_values=mapping(self.values),
            store=store_of(self.values),
            untested=in_component,
            # Without a licence the component writes the open source image.
            licensed=in_component and value_at(self.values, _IMAGE) is None,
        )

    def managed_object(self) -> ManagedObject:
        """The release as any other object; `sharing` is set if its chart has a device plugin."""
        has_plugin = self.chart in GPU_CHARTS or self.component == "GpuStack"
        return ManagedObject(
            "Release",
            self.name,
            self.namespace,
            path=self.resource.urn,
            sharing=device_sharing(self.values) if has_plugin else None,
        )


def chart_of(props: Properties) -> tuple[Maybe[str], Maybe[str] | None]:
    """The chart and the version of a release; the version is None if the newest one is installed.

    `chart` may be a name, an OCI reference, a package, a URL of one, or a path. The version of a
    package counts before `version`, that of an OCI reference after it. Both are UNKNOWN if `chart`
    is. The chart is "" if there is none. A `version` of "" counts as absent.
    """
    chart = text(props.get("chart"))
    version = text(props.get("version"))
    if chart is UNKNOWN:
        return UNKNOWN, UNKNOWN
    name, version_in_name = chart_in(chart or "")
    is_package = version_in_name is not None and not str(chart).startswith("oci://")
    if is_package:
        return name, version_in_name
    return name, version or version_in_name


def _sharing(version: Maybe[str] | None, values: object) -> Maybe[SharingMode]:
    """How pods share GPUs; UNKNOWN if the version or the values leave it open.

    Through v0.17 only if it is switched on, later unless it is switched off. A mode counts before
    the older switch, as it is written: it may be none of SharingMode. Through v0.17 that is
    HamiCore alone, and not if the switch is absent or off. Without a known version only the switch
    counts.
    """
    default = has_sharing_modes(version) if isinstance(version, str) else UNKNOWN
    switch = flag(value_at(values, "global.gpuSharing"), unset=default)
    if isinstance(version, str) and (default or switch):
        mode: SharingMode | None = mode_in(version, values)
        if mode:
            return mode
    return UNKNOWN if switch is UNKNOWN else mode_of_switch(switch)


def _mode(values: object) -> Maybe[str]:
    """The mode that values of vCluster's chart mean; UNKNOWN if one that decides is.

    A scheduler inside is mode virtual. Else `setOwner: false`, which the host's KAI needs, is mode
    host.
    """
    schedulers = [flag(value_at(values, key), unset=False) for key in _SCHEDULER_SWITCHES]
    sets_owner = flag(value_at(values, "experimental.syncSettings.setOwner"), unset=True)
    if True in schedulers:
        return "virtual"
    if UNKNOWN in (*schedulers, sets_owner):
        return UNKNOWN
    return "default" if sets_owner else "host"
