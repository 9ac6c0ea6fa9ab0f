"""Everything that differs by vCluster version, in one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Final

VCLUSTER_REPOSITORY: Final = "https://charts.loft.sh"


@dataclass(frozen=True)
class VclusterRelease:
    """One vCluster version: the key of its virtual scheduler and its default Kubernetes.

    The key changed in v0.26 (V2); every version here knows the new one. `support_end` is the last
    day of its line's security fixes, from vCluster's page of supported versions. `renews`: when it
    starts it makes the certificates anew that end within 90 days (pkg/certs/ensure.go).
    """

    version: str
    kubernetes: str
    support_end: date | None = None
    advised: bool = True  # False for a version that no advice leads to
    virtual_scheduler_key: str = "controlPlane.distro.k8s.scheduler.enabled"
    renews: bool = True

    @property
    def line(self) -> str:
        """The minor line, for example `v0.36`; upgrades go one line at a time (V12)."""
        return ".".join(self.version.split(".")[:2])

    @property
    def chart_version(self) -> str:
        """The version as the chart repository spells it: without the `v`."""
        return self.version.removeprefix("v")


_VCLUSTER = (
    VclusterRelease("v0.27.3", kubernetes="v1.33.4", support_end=date(2026, 2, 12), renews=False),
    VclusterRelease("v0.28.1", kubernetes="v1.33.4", support_end=date(2026, 3, 8), renews=False),
    VclusterRelease("v0.29.3", kubernetes="v1.33.4", support_end=date(2026, 4, 1), renews=False),
    VclusterRelease("v0.30.5", kubernetes="v1.34.0", support_end=date(2026, 4, 28), renews=False),
    VclusterRelease("v0.31.3", kubernetes="v1.34.0", support_end=date(2026, 7, 29)),
    VclusterRelease("v0.32.3", kubernetes="v1.35.0", support_end=date(2026, 8, 18)),
    VclusterRelease("v0.33.4", kubernetes="v1.35.0", support_end=date(2026, 9, 13)),
    VclusterRelease("v0.34.7", kubernetes="v1.35.0", support_end=date(2026, 10, 29)),
    VclusterRelease("v0.35.3", kubernetes="v1.36.0", support_end=date(2026, 12, 16)),
    VclusterRelease("v0.36.1", kubernetes="v1.36.0", support_end=date(2027, 1, 22)),
    # From its chart as it was ten days before, v0.37.0-rc.1: not run with this program.
    VclusterRelease("v0.37.0", kubernetes="v1.36.0", support_end=date(2027, 3, 1), advised=False),
)

VCLUSTER: Final[Mapping[str, VclusterRelease]] = MappingProxyType({r.version: r for r in _VCLUSTER})

# What a stack gets that names no vCluster version: the newest that was run with this program.
DEFAULT_VCLUSTER: Final = "v0.36.1"
