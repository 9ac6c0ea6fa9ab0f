"""Resource options of child resources; the chart of Helm releases, and its image pull Secrets."""

import base64
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, Final

import pulumi
from pulumi_kubernetes import core
from pulumi_kubernetes.helm import v3 as helm

from kai_fleet.inputs import RegistryArgs
from kai_fleet.names import RELEASE
from kai_fleet.releases import charts
from kai_fleet.releases.sources import MIRROR

# Kinds that get no annotations: guards admit few domains on pods, and clouds grant IAM roles by
# annotations of ServiceAccounts.
_LABELLED_ONLY: Final = ("kubernetes:core/v1:Pod", "kubernetes:core/v1:ServiceAccount")


@contextmanager
def source_positions() -> Iterator[None]:
    """Limit the stack trace that is recorded for each resource to the line that declares it.

    The SDK sends the whole call stack with each resource, and the engine (from v3.195) keeps it in
    the state, shows it nowhere, and writes it again twice for each changed resource: with 15 teams
    of 20 resources the state was twice as large and an update took twice as long. The SDK (3.272)
    has no option for this; `sys.tracebacklimit` limits it.
    """
    before = getattr(sys, "tracebacklimit", 1000)  # Python's default
    sys.tracebacklimit = 7  # six frames are the SDK's own
    try:
        yield
    finally:
        sys.tracebacklimit = before


def component_options(opts: pulumi.ResourceOptions | None) -> pulumi.ResourceOptions | None:
    """The options of a component itself: without `depends_on`, which its children have.

    With --continue-on-error the engine skips a component that depends on what failed, and with it
    every child. It (v3.274) panics where that is a provider that exists.
    """
    if opts is None:
        return None
    unordered = copy(opts)
    unordered.depends_on = None
    return unordered


def child_of(
    component: pulumi.Resource,
    opts: pulumi.ResourceOptions | None,
    *,
    ordered: bool = True,
    **more: Any,
) -> pulumi.ResourceOptions:
    """Options of a child, with `depends_on` and `deleted_with` of its component.

    `ordered=False` leaves out `depends_on`: for a child that depends on one that has it. `more` are
    further options, by their names.
    """
    opts = opts or pulumi.ResourceOptions()
    return pulumi.ResourceOptions(
        parent=component,
        depends_on=opts.depends_on if ordered else None,
        deleted_with=opts.deleted_with,
        **more,
    )


def after(opts: pulumi.ResourceOptions, *before: pulumi.Resource) -> pulumi.ResourceOptions:
    """The same options with more `depends_on`."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(before)))


def noted(
    opts: pulumi.ResourceOptions | None,
    labels: Mapping[str, pulumi.Input[str]],
    annotations: Mapping[str, pulumi.Input[str]],
) -> pulumi.ResourceOptions:
    """Options of a component that add labels and annotations to its Kubernetes objects.

    An object's own values win. Objects of a Helm chart get theirs by chart values.
    """

    def note(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        metadata = args.props.get("metadata")
        if not args.type_.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return None
        notes = {"labels": labels, "annotations": annotations}
        if args.type_ in _LABELLED_ONLY:
            del notes["annotations"]
        both = {key: {**more, **(metadata.get(key) or {})} for key, more in notes.items() if more}
        props = {**args.props, "metadata": {**metadata, **both}}
        return pulumi.ResourceTransformationResult(props, args.opts)

    opts = opts or pulumi.ResourceOptions()
    notes = pulumi.ResourceOptions(transformations=[note])
    return pulumi.ResourceOptions.merge(opts, notes) if labels or annotations else opts


def hide_values(
    args: pulumi.ResourceTransformationArgs,
) -> pulumi.ResourceTransformationResult | None:
    """Make the values of a Helm release secret."""
    if args.type_ != RELEASE:
        return None
    props = {**args.props, "values": pulumi.Output.secret(args.props["values"])}
    return pulumi.ResourceTransformationResult(props, args.opts)


def chart_args(name: str, version: str, args: Mapping[str, Any], home: str) -> dict[str, Any]:
    """Arguments of a Release for chart `name` at `version`: `chart` of a component's arguments
    (OCI, URL or path) with `chart_account`, else the mirror, else `home`, its OCI reference or the
    URL of its repository. A local alias of the repository differs by machine.

    Raises pulumi.RunError where Helm would install a file of that name in the project's folder,
    and for a chart that is another one by its location, or by the Chart.yaml of a package here.
    """
    mirror, override, account = os.environ.get(MIRROR), args.get("chart"), args.get("chart_account")
    of_mirror = str(Path(mirror) / f"{name}-{version}.tgz") if mirror else None
    of_home = home if home.startswith("oci:") else name
    chart = override or of_mirror or of_home
    if override:
        _refuse(charts.mismatch(override, (name,), version), name, version)
    by_name = chart == name and not override
    if "://" in chart or by_name:
        _refuse_beside(chart, name, home)
    else:
        _refuse(_content(chart, name, version), name, version)
    found = {"chart": chart, "version": version}
    if override and account:
        password = pulumi.Output.secret(account["password"])
        login = helm.RepositoryOptsArgs(username=account["username"], password=password)
        return {**found, "repository_opts": login}
    if by_name:
        return {**found, "repository_opts": helm.RepositoryOptsArgs(repo=home)}
    return found


def _refuse_beside(chart: str, name: str, home: str) -> None:
    """Helm looks for a file of a chart's name first, and of `oci://…` for a folder `oci:`."""
    if (file := Path(chart)).exists():
        raise pulumi.RunError(
            f"{file} beside Pulumi.yaml would be installed in place of the chart {name} of"
            f" {home}: Helm looks there first; remove it, or give it another name"
        )


def _content(chart: str, name: str, version: str) -> str | None:
    """What is wrong with what a package or folder of this machine has."""
    try:
        found = charts.packaged(chart)
    except charts.UnreadableChartError as why:
        return str(why)
    if found is None or (found.name == name and charts.same_version(str(found.version), version)):
        return None
    return f"is {found.name} {found.version} by its Chart.yaml"


def _refuse(why: str | None, name: str, version: str) -> None:
    if why is not None:
        raise pulumi.RunError(
            f"the chart for {name} {version} {why}; write oci://…/{name},"
            f" https://…/{name}-{version}.tgz or the path of a package of it, or drop it"
        )


def registry_secret(
    name: str,
    secret: str,
    namespace: pulumi.Input[str],
    registries: Mapping[str, RegistryArgs],
    opts: pulumi.ResourceOptions,
) -> pulumi.Resource:
    """Declare the image pull Secret `secret` in a namespace; `name` is the prefix of the resource.
    It is updated in place: the next pull uses a new password.
    """
    accounts: Any = dict(registries)
    metadata: Any = {"name": secret, "namespace": namespace}
    return core.v1.Secret(
        f"{name}-{secret.removeprefix('kai-fleet-')}",
        metadata=metadata,
        type="kubernetes.io/dockerconfigjson",
        data={".dockerconfigjson": pulumi.Output.secret(accounts).apply(docker_config)},
        opts=opts,
    )


def docker_config(accounts: Mapping[str, Mapping[str, Any]]) -> str:
    """Content of `.dockerconfigjson` in base64: user and password of each registry."""
    auths = {}
    for registry, account in accounts.items():
        # A password from another resource may be a number.
        name, password = account["username"], str(account["password"])
        pair = base64.b64encode(f"{name}:{password}".encode()).decode()
        auths[registry] = {"username": name, "password": password, "auth": pair}
    return base64.b64encode(json.dumps({"auths": auths}, sort_keys=True).encode()).decode()
