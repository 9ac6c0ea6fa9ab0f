"""The chart that a component's Helm release installs."""

import os
from pathlib import Path
from typing import NotRequired, TypedDict

import pulumi
from pulumi import Output
from pulumi_kubernetes.helm import v3 as helm

from kai_fleet.declaring.inputs import RegistryArgs
from kai_fleet.releases import charts
from kai_fleet.releases.sources import MIRROR


class ChartSource(TypedDict, total=False):
    """The arguments of a component that say where the chart of its release is."""

    chart: str
    chart_account: RegistryArgs


class ReleaseChart(TypedDict):
    """The arguments of a Helm release that say which chart it installs."""

    chart: str
    version: str
    repository_opts: NotRequired[helm.RepositoryOptsArgs]


def chart_args(name: str, version: str, source: ChartSource, home: str) -> ReleaseChart:
    """Arguments of a Helm release for chart `name` at `version`, as its repository spells that.

    The chart is the first of: `chart` of the component's arguments, with the login of
    `chart_account`; the package NAME-VERSION.tgz in the folder that the environment variable of
    `MIRROR` names; and `home`, an OCI reference or the URL of a repository. It is no local alias of
    a repository: aliases differ by machine.

    Raises:
        pulumi.RunError: the chart's location or the Chart.yaml of a local package names another
            chart or version, the package cannot be read, or Helm would install a file of the
            chart's name in the current folder instead. A package that is not there passes: Helm
            reports it.
    """
    override = source.get("chart")
    if override:
        _refuse_if(charts.mismatch(override, (name,), version), name, version)
        _refuse_other_file(override, name, version, home)
        release = ReleaseChart(chart=override, version=version)
        account = source.get("chart_account")
        if account:
            release["repository_opts"] = helm.RepositoryOptsArgs(
                username=account["username"],
                password=Output.secret(account["password"]),
            )
        return release
    mirror = os.environ.get(MIRROR)
    if mirror:
        chart = str(Path(mirror) / f"{name}-{version}.tgz")
        _refuse_other_file(chart, name, version, home)
        return ReleaseChart(chart=chart, version=version)
    if home.startswith("oci:"):
        _refuse_beside(home, name, home)
        return ReleaseChart(chart=home, version=version)
    _refuse_beside(name, name, home)
    repository = helm.RepositoryOptsArgs(repo=home)
    return ReleaseChart(chart=name, version=version, repository_opts=repository)


def _refuse_other_file(chart: str, name: str, version: str, home: str) -> None:
    """Refuse a URL that Helm would read as a file, and a local package of another chart.

    `home` is for the message. Raises pulumi.RunError.
    """
    if "://" in chart:
        _refuse_beside(chart, name, home)
    else:
        _refuse_if(_wrong_content(chart, name, version), name, version)


def _refuse_beside(chart: str, name: str, home: str) -> None:
    """Refuse a chart that is also a file: Helm looks for a file of a chart's name first, and for
    `oci://…` in a folder `oci:`. `name` and `home` are for the message. Raises pulumi.RunError.
    """
    if (file := Path(chart)).exists():
        raise pulumi.RunError(
            f"{file} beside Pulumi.yaml would be installed in place of the chart {name} of"
            f" {home}: Helm looks there first; remove it, or give it another name"
        )


def _wrong_content(chart: str, name: str, version: str) -> str | None:
    """Why a package or folder on this machine is not that chart; None if it is, or is not there.

    The text completes "the chart".
    """
    try:
        packaged = charts.packaged(chart)
    except charts.UnreadableChartError as why:
        return str(why)
    if packaged is None:
        return None
    if packaged.name == name and charts.same_version(str(packaged.version), version):
        return None
    return f"is {packaged.name} {packaged.version} by its Chart.yaml"


def _refuse_if(why: str | None, name: str, version: str) -> None:
    """Raise pulumi.RunError unless `why`, the rest of "the chart", is None."""
    if why is not None:
        raise pulumi.RunError(
            f"the chart for {name} {version} {why}; write oci://…/{name},"
            f" https://…/{name}-{version}.tgz or the path of a package of it, or drop it"
        )
