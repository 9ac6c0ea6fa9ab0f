"""What components declare alike: the options of their children, charts, Secrets of registries."""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pulumi
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.helm import v3 as helm
from pulumi_kubernetes.meta import v1 as meta
from pydantic import SecretStr

from kai_fleet.provider import QUEUES
from kai_fleet.releases.sources import MIRROR
from kai_fleet.settings.sections.registries import RegistryCredentials

TYPE: Final = "kubernetes.io/dockerconfigjson"
# Of a pod's annotations the guards let few domains through, and by those of an account clouds give
# their rights.
_LABELLED_ONLY: Final = ("kubernetes:core/v1:Pod", "kubernetes:core/v1:ServiceAccount")


def child_of(
    component: pulumi.Resource, opts: pulumi.ResourceOptions | None, **more: Any
) -> pulumi.ResourceOptions:
    """Options of a child: it waits for what its component waits for, and is deleted with the same.

    `more` are further options, by their names.
    """
    opts = opts or pulumi.ResourceOptions()
    return pulumi.ResourceOptions(
        parent=component, depends_on=opts.depends_on, deleted_with=opts.deleted_with, **more
    )


def after(opts: pulumi.ResourceOptions, *before: pulumi.Resource) -> pulumi.ResourceOptions:
    """The same options, for a resource that also waits for `before`."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(before)))


def deleted_with(cluster: pulumi.Resource) -> pulumi.ResourceTransformation:
    """Delete resources together with their cluster (`deleted_with`), not one by one.

    For a component: all that it declares on the cluster, unless it is deleted with another resource
    already.
    """

    def transform(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        is_on_it = args.type_.startswith(("kubernetes:", "command:", QUEUES))
        if not is_on_it or args.opts.deleted_with is not None or args.opts.id is not None:
            return None
        with_it = pulumi.ResourceOptions(deleted_with=cluster)
        return pulumi.ResourceTransformationResult(
            args.props, pulumi.ResourceOptions.merge(args.opts, with_it)
        )

    return transform


def noted(
    opts: pulumi.ResourceOptions | None, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> pulumi.ResourceOptions | None:
    """The options of a component whose objects have them; what an object has itself stays.

    What a Helm chart makes has those of the chart's values.
    """
    if not labels and not annotations:
        return opts

    def note(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        metadata = args.props.get("metadata")
        if not args.type_.startswith("kubernetes:") or not isinstance(metadata, Mapping):
            return None
        notes = {} if args.type_ in _LABELLED_ONLY else annotations
        more = {"labels": labels, "annotations": notes}
        of_both = {key: {**it, **(metadata.get(key) or {})} for key, it in more.items() if it}
        props = {**args.props, "metadata": {**metadata, **of_both}}
        return pulumi.ResourceTransformationResult(props, args.opts)

    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(transformations=[note]))


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


def registry_secret(
    name: str,
    secret: str,
    namespace: pulumi.Input[str],
    registries: Mapping[str, RegistryCredentials],
    opts: pulumi.ResourceOptions,
) -> core.Secret:
    """The Secret of that name in a namespace, by which images are pulled; `name` begins that of the
    resource. It is changed in place: a new password is in use at a pod's next pull.
    """
    accounts: dict[str, Any] = {
        registry: {"username": own.username, "password": _clear(own.password)}
        for registry, own in registries.items()
    }
    metadata: meta.ObjectMetaArgsDict = {"name": secret, "namespace": namespace}
    return core.Secret(
        f"{name}-{secret.removeprefix('kai-fleet-')}",
        metadata=metadata,
        type=TYPE,
        data={".dockerconfigjson": pulumi.Output.secret(accounts).apply(docker_config)},
        opts=opts,
    )


def _clear(password: Any) -> Any:
    """The password; of a program's component it may be another resource's output."""
    return password.get_secret_value() if isinstance(password, SecretStr) else password


def docker_config(accounts: Mapping[str, Mapping[str, str]]) -> str:
    """What kubelets read, in base64: name and password of each registry."""
    auths = {
        registry: {
            "username": own["username"],
            "password": str(own["password"]),  # of another resource it may be a number
            "auth": _base64(f"{own['username']}:{own['password']}"),
        }
        for registry, own in accounts.items()
    }
    return _base64(json.dumps({"auths": auths}, sort_keys=True))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
