"""Where a chart comes from: the table, an override of the config, or a local mirror."""

import os
from pathlib import Path
from typing import Any

import pulumi
from pulumi_kubernetes.helm import v3 as helm

from kai_fleet.releases.sources import MIRROR


def chart_args(
    name: str, version: str, *, override: str | None, oci: str = "", repository: str = ""
) -> dict[str, Any]:
    """What a Release is told of chart `name` at `version`: the override (OCI, URL or path), else
    the mirror, else its home.

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
    home = helm.RepositoryOptsArgs(repo=repository)
    return {"chart": name, "version": version, "repository_opts": home}
