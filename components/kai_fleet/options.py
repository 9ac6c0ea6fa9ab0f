"""What components give their children: resource options, the chart of a Helm release, and image
pull Secrets.
"""

import base64
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Final, NotRequired, TypedDict, Unpack

import pulumi
from pulumi import (
    Input,
    Output,
    ProviderResource,
    Resource,
    ResourceOptions,
    ResourceTransformationArgs,
    ResourceTransformationResult,
)
from pulumi_kubernetes import core
from pulumi_kubernetes.helm import v3 as helm

from kai_fleet.inputs import RegistryArgs
from kai_fleet.names import RELEASE
from kai_fleet.releases import charts
from kai_fleet.releases.sources import MIRROR

# Types of objects that get no annotations: guards admit few domains on pods, and clouds grant IAM
# roles by annotations of ServiceAccounts.
_LABELLED_ONLY: Final = ("kubernetes:core/v1:Pod", "kubernetes:core/v1:ServiceAccount")


class ChildOptions(TypedDict, total=False):
    """Options of a child that do not follow from its component's."""

    provider: ProviderResource | None
    retain_on_delete: bool
    delete_before_replace: bool
    replace_on_changes: list[str]
    ignore_changes: list[str]


class ChartSource(TypedDict):
    """The arguments of a component that say where the chart of its release is."""

    chart: NotRequired[str]
    chart_account: NotRequired[RegistryArgs]


class ReleaseChart(TypedDict):
    """The arguments of a Helm release that say which chart it installs."""

    chart: str
    version: str
    repository_opts: NotRequired[helm.RepositoryOptsArgs]


@contextmanager
def source_positions() -> Iterator[None]:
    """Limit the stack trace that the SDK records for each resource to the line that declares it.

    The SDK sends the complete call stack with each resource. The engine (from v3.195) keeps it in
    the state, shows it nowhere, and writes it again twice for each changed resource: with 15 teams
    of 20 resources the state was twice as large and an update took twice as long. The SDK (3.272)
    has no option for this; `sys.tracebacklimit`, which this sets while it is open, limits it.
    """
    before = getattr(sys, "tracebacklimit", 1000)  # Python's default
    sys.tracebacklimit = 7  # six frames are the SDK's own
    try:
        yield
    finally:
        sys.tracebacklimit = before


def component_options(opts: ResourceOptions | None) -> ResourceOptions | None:
    """Options for the component itself: without `depends_on`, which its children get instead.

    None without options.

    With --continue-on-error the engine skips a component that depends on a failed resource, and all
    of its children with it. If one of them is a provider that exists, the engine (v3.274) panics.
    """
    if opts is None:
        return None
    unordered = copy(opts)
    unordered.depends_on = None
    return unordered


def child_options(
    component: Resource,
    opts: ResourceOptions | None,
    *,
    ordered: bool = True,
    **more: Unpack[ChildOptions],
) -> ResourceOptions:
    """Options for a child, with `depends_on` and `deleted_with` from its component's options.

    `ordered=False` leaves out `depends_on`, for a child that depends on another child that has it.
    """
    opts = opts or ResourceOptions()
    return ResourceOptions(
        parent=component,
        depends_on=opts.depends_on if ordered else None,
        deleted_with=opts.deleted_with,
        **more,
    )


def depending_on(opts: ResourceOptions, *dependencies: Resource) -> ResourceOptions:
    """The same options with these resources added to `depends_on`."""
    more = ResourceOptions(depends_on=list(dependencies))
    return ResourceOptions.merge(opts, more)


def adding_labels(
    opts: ResourceOptions | None,
    labels: Mapping[str, Input[str]],
    annotations: Mapping[str, Input[str]],
) -> ResourceOptions:
    """Options for a component that add labels and annotations to the Kubernetes objects below it.

    Labels and annotations that an object has already win. Pods and ServiceAccounts get labels only.
    Objects of a Helm chart are not reached; they get theirs by chart values.
    """
    opts = opts or ResourceOptions()
    if not labels and not annotations:
        return opts

    def add_notes(
        args: ResourceTransformationArgs,
    ) -> ResourceTransformationResult | None:
        metadata = args.props.get("metadata")
        if not args.type_.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return None
        merged = dict(metadata)
        if labels:
            merged["labels"] = {**labels, **(metadata.get("labels") or {})}
        if annotations and args.type_ not in _LABELLED_ONLY:
            merged["annotations"] = {**annotations, **(metadata.get("annotations") or {})}
        props = {**args.props, "metadata": merged}
        return ResourceTransformationResult(props, args.opts)

    notes = ResourceOptions(transformations=[add_notes])
    return ResourceOptions.merge(opts, notes)


def hide_values(
    args: ResourceTransformationArgs,
) -> ResourceTransformationResult | None:
    """A transformation that makes the values of a Helm release secret; None for other resources."""
    if args.type_ != RELEASE:
        return None
    props = {**args.props, "values": Output.secret(args.props["values"])}
    return ResourceTransformationResult(props, args.opts)


def chart_args(name: str, version: str, source: ChartSource, home: str) -> ReleaseChart:
    """Arguments of a Helm release for chart `name` at `version`.

    The chart is the first of: `chart` of the component's arguments, with the login of
    `chart_account`; the package in the folder that the environment variable of `MIRROR` names; and
    `home`, an OCI reference or the URL of a repository. A URL and not a local alias of the
    repository, because aliases differ by machine.

    Raises:
        pulumi.RunError: the chart's location or the Chart.yaml of a local package names another
            chart or version, the package cannot be read, or Helm would install a file of the
            chart's name in the current folder instead.
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
    """Refuse a URL that Helm would read as a file, and a local package of another chart."""
    if "://" in chart:
        _refuse_beside(chart, name, home)
    else:
        _refuse_if(_wrong_content(chart, name, version), name, version)


def _refuse_beside(chart: str, name: str, home: str) -> None:
    """Refuse a chart that is also a file: Helm looks for a file of a chart's name first, and for
    `oci://…` in a folder `oci:`.
    """
    if (file := Path(chart)).exists():
        raise pulumi.RunError(
            f"{file} beside Pulumi.yaml would be installed in place of the chart {name} of"
            f" {home}: Helm looks there first; remove it, or give it another name"
        )


def _wrong_content(chart: str, name: str, version: str) -> str | None:
    """Why a package or folder on this machine is not that chart; None if it is, or is not there."""
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
    if why is not None:
        raise pulumi.RunError(
            f"the chart for {name} {version} {why}; write oci://…/{name},"
            f" https://…/{name}-{version}.tgz or the path of a package of it, or drop it"
        )


def registry_secrets(
    prefix: str,
    secret: str,
    namespace: Input[str],
    registries: Mapping[str, RegistryArgs] | None,
    opts: ResourceOptions,
) -> list[Resource]:
    """Declare the image pull Secret `secret` in a namespace; none without registries. The
    resource's name begins with `prefix`. The Secret is updated in place: the next pull uses a new
    password.
    """
    if not registries:
        return []
    config = Output.secret(dict(registries)).apply(docker_config)
    declared = core.v1.Secret(
        f"{prefix}-{secret.removeprefix('kai-fleet-')}",
        metadata={"name": secret, "namespace": namespace},
        type="kubernetes.io/dockerconfigjson",
        data={".dockerconfigjson": config},
        opts=opts,
    )
    return [declared]


def docker_config(accounts: Mapping[str, RegistryArgs]) -> str:
    """The base64 text of `.dockerconfigjson` with the accounts' names and passwords by registry."""
    auths = {}
    for registry, account in accounts.items():
        username = account["username"]
        # A password from another resource may be a number.
        password = str(account["password"])
        pair = _base64(f"{username}:{password}")
        auths[registry] = {"username": username, "password": password, "auth": pair}
    return _base64(json.dumps({"auths": auths}, sort_keys=True))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
