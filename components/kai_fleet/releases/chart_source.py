"""Where a chart comes from: the table, an override of the config, or a local mirror."""

import os
from pathlib import Path
from typing import TypedDict

import pulumi
from pulumi_kubernetes.helm.v3 import RepositoryOptsArgs

from kai_fleet.releases.sources import MIRROR


class ChartArgs(TypedDict, total=False):
    """The part of a Release's arguments that says which chart it installs."""

    chart: str
    version: str
    repository_opts: RepositoryOptsArgs


def chart_args(
    name: str, version: str, *, override: str | None, oci: str = "", repository: str = ""
) -> ChartArgs:
    """Chart `name` at `version`: the override (OCI, URL or path), else the mirror, else its home.

    Its home is an OCI reference or a chart repository's URL; never a local repository alias,
    which would give every machine another diff. Raises pulumi.RunError where Helm would take a
    file of that name from beside Pulumi.yaml.
    """
    if override is not None:
        return {"chart": override, "version": version}
    mirror = os.environ.get(MIRROR)
    if mirror:
        return {"chart": str(Path(mirror) / f"{name}-{version}.tgz"), "version": version}
    if oci:
        return {"chart": oci, "version": version}
    if Path(name).exists():
        raise pulumi.RunError(
            f"{name} beside Pulumi.yaml would be installed in place of the chart {name} of"
            f" {repository}: Helm looks there first; remove it, or give it another name"
        )
    return {
        "chart": name,
        "version": version,
        "repository_opts": RepositoryOptsArgs(repo=repository),
    }
