"""What is installed in a cluster: its KAI, charts and other objects."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kai_fleet import releases
from kai_fleet.releases.charts import mismatch
from kai_fleet.releases.sharing import NOT_ENFORCED, SharingMode
from kai_fleet.values import Maybe
from kai_fleet_policies.model.device_sharing import DeviceSharing
from kai_usage.keys import KAI_NAMESPACE


@dataclass(frozen=True)
class Kai:
    """A KAI scheduler. Fields with a name of KaiSchedulerArgs have the value of that argument.

    Args:
        version: None if it is left open.
        values: Those that its user writes; empty for a release in a component of this program.
        namespace: That of its release.
        sharing: Its mode. One that its chart values choose is as written there, maybe no mode.
        chart: None for the one of the release table.
        shards: Their names.
        fairshare: It shares by usage over time.
        topologies: Labels of the levels of each topology, by its name.
        registries: Names of registries whose credentials its release gets.
        path: Key of its section, or URN of its release.
        makes_queues: Its chart makes a parent queue and a leaf. From a stack file it is False.
        find_key: Finds the key path of one of its keys, which may be written for all teams.
    """

    version: Maybe[str] | None
    sharing: Maybe[SharingMode] = NOT_ENFORCED
    values: Maybe[Mapping[str, Any]] = field(default_factory=dict)
    untested: bool = False
    namespace: Maybe[str] | None = KAI_NAMESPACE
    path: str = ""
    chart: str | None = None
    shards: Collection[str] = ()
    topologies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fairshare: bool = False
    registries: Collection[str] = ()
    makes_queues: Maybe[bool] = False
    find_key: Callable[..., str] | None = field(default=None, compare=False, repr=False)

    @property
    def shares_gpus(self) -> bool:
        """Whether it lets pods share GPUs; also if that is not known."""
        return self.sharing != releases.DISABLED

    @property
    def release(self) -> releases.KaiRelease | None:
        """Its entry in the release table; with `untested` that of the version it is taken for.

        None if the version is open or UNKNOWN, or the table has no such entry.
        """
        if not isinstance(self.version, str):
            return None
        try:
            return releases.kai(self.version, untested=self.untested)
        except releases.UnknownVersionError:
            return None  # kai-version-known reports it


@dataclass(frozen=True)
class Chart:
    """A chart that is installed, or the image of a kind cluster's nodes.

    Args:
        chart: Its location; None for the one of the release table.
        values: Its values.
        values_key: The key below which the values are written; "" if that is the subject's own.
        home: The chart's own registry, which completes a value with a repository only.
        repository: The chart's own repository, which completes a value with a registry only.
        subject: What a finding is about, for a chart besides KAI and vCluster.
        path: Key or URN of that subject.
        names: Names of charts that are allowed here: empty in a component that has no chart, None
            for an image, and for a GPU stack that installs no chart.
        version: The version that is installed.
        tested: The only version that was tried, that of the release table. None or "" where that
            does not matter: another rule judges the version, or nothing is installed.
        untested: Another version than `tested` is accepted, with a warning.
    """

    chart: Maybe[str] | None
    values: Maybe[Mapping[str, Any]] = field(default_factory=dict)
    values_key: str = "values"
    home: str = ""
    repository: str = ""
    subject: str = ""
    path: str = ""
    names: tuple[str, ...] | None = None
    version: Maybe[str] | None = None
    tested: str | None = None
    untested: bool = False

    @property
    def why_another(self) -> str | None:
        """Why it is no chart of `names`, at `version` if that is known, to complete "which".

        None if nothing speaks against it, or if `names` is None or the chart is not known. It shows
        nothing of the location, which may have a password.
        """
        if self.names is None or not isinstance(self.chart, str):
            return None
        version = self.version if isinstance(self.version, str) else ""
        return mismatch(self.chart, self.names, version)


@dataclass(frozen=True)
class ManagedObject:
    """Any other object in a namespace; its kind is `Release` for a chart of any name.

    `sharing` is how a device plugin shares GPUs, see `device_sharing`; None for all objects but the
    release of a GPU stack.
    """

    kind: str
    name: Maybe[str]
    namespace: Maybe[str]
    path: str = ""
    sharing: Maybe[DeviceSharing] | None = None
