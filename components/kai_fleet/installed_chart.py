"""What Helm read of a chart, held against the chart that a release is for.

The provider loads the chart before it declares the release and writes the version of its
Chart.yaml over the one that was asked for, in a preview too; the name is in the status, once it is
installed (`Check` and `setReleaseAttributes` of helm_release.go, pulumi-kubernetes v4).
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from weakref import WeakSet

import pulumi
from pulumi_kubernetes.helm import v3 as helm

from kai_fleet.releases.charts import same_version

# Runs that one error has ended, by their event loops, of which each run of a program has its own:
# asyncio prints further errors, which nobody awaits, with their tracebacks.
_ENDED: Final = WeakSet[asyncio.AbstractEventLoop]()


def hold_to(
    component: str, release: helm.Release, name: str, version: str, installed: str | None = None
) -> None:
    """End the run where Helm read another version or, of an installed release, another chart.

    `component` is the type and name of the release's, for the message: `VirtualCluster ml`. An
    update that leaves the release out (--exclude) finds the version that is `installed`.
    """
    left = None if pulumi.runtime.is_dry_run() else installed
    release.version.apply(partial(_refuse_version, component, name, version, left))
    release.status.apply(partial(_refuse_name, component, name, version))


def _refuse_version(component: str, name: str, version: str, left: str | None, found: Any) -> None:
    if found and found != left and not same_version(str(found), version):
        _refuse(component, f"has a chart whose version is {found}, and not {version} of {name}")


def _refuse_name(component: str, name: str, version: str, status: Any) -> None:
    found = status.get("chart") if isinstance(status, Mapping) else getattr(status, "chart", None)
    if found and found != name:
        _refuse(component, f"has the chart {found}, and not {name} {version}")


def _refuse(component: str, cause: str) -> None:
    run = asyncio.get_running_loop()
    if run in _ENDED:
        return
    _ENDED.add(run)
    fix = "write another `chart`, drop it, or have the right one put where it is"
    raise pulumi.RunError(f"{component} {cause}; {fix}")
