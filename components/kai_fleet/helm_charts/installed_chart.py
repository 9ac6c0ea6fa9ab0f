"""Refuse a Helm release whose chart has another name or version than the one that was asked for.

The provider loads the chart before it declares the release, in a preview too, and replaces the
release's `version` by that of the chart's Chart.yaml. The chart's name is in the release's status
once it is installed (`Check` and `setReleaseAttributes` of helm_release.go, pulumi-kubernetes v4).
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from weakref import WeakSet

import pulumi
from pulumi_kubernetes.helm import v3 as helm

from kai_fleet.releases.charts import same_version

# Event loops of the runs that an error here has ended; each run of a program has its own loop.
# Nobody awaits a second error, so asyncio would print it with its traceback.
_ENDED = WeakSet[asyncio.AbstractEventLoop]()


def hold_to(
    component: str, release: helm.Release, name: str, version: str, installed: str | None = None
) -> None:
    """End the run if Helm read a chart of another version, or installed a chart of another name.

    Args:
        component: type and name of the component, for the message: `VirtualCluster ml`.
        name: the expected chart's name.
        version: the expected chart's version.
        installed: the version that an update with `--exclude` may leave in place, which passes, but
            not in a preview; None: no other one passes.

    Raises:
        pulumi.RunError: in the callbacks of `version` and `status`, once for a run.
    """
    excluded = None if pulumi.runtime.is_dry_run() else installed
    release.version.apply(partial(_refuse_version, component, name, version, excluded))
    release.status.apply(partial(_refuse_name, component, name, version))


def _refuse_version(
    component: str, name: str, expected: str, excluded: str | None, version: object
) -> None:
    """Raise pulumi.RunError for another version than the expected one and the excluded one.

    A version that is absent passes.
    """
    if not version or version == excluded or same_version(str(version), expected):
        return
    _refuse(component, f"has a chart whose version is {version}, and not {expected} of {name}")


def _refuse_name(component: str, expected: str, version: str, status: object) -> None:
    """Raise pulumi.RunError if a release's status has a chart with another name.

    A status without a chart passes: nothing is installed yet.
    """
    name = status.get("chart") if isinstance(status, Mapping) else getattr(status, "chart", None)
    if name and name != expected:
        _refuse(component, f"has the chart {name}, and not {expected} {version}")


def _refuse(component: str, cause: str) -> None:
    """Raise pulumi.RunError, unless an earlier error here has ended this run."""
    run = asyncio.get_running_loop()
    if run in _ENDED:
        return
    _ENDED.add(run)
    fix = "write another `chart`, drop it, or have the right one put where it is"
    raise pulumi.RunError(f"{component} {cause}; {fix}")
