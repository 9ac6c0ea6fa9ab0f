"""A team's workloads: Kubernetes objects of its files, declared inside its vCluster."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pulumi
from pulumi import Output, Resource, ResourceOptions

from kai_fleet.declaring.options import depending_on

Manifest = Mapping[str, Any]
# Kinds of Kubernetes objects that other objects need: declared first.
_DECLARED_FIRST = ("Namespace", "CustomResourceDefinition")


def declare_manifests(
    team: str, files: Mapping[str, Sequence[Manifest]], opts: ResourceOptions
) -> None:
    """Declare the objects of these files inside a team's vCluster, which is the provider of `opts`.

    Namespaces and CustomResourceDefinitions come before the others. Each object is one resource, so
    that a preview shows it, rules check it, and removing it from a file deletes it. Not by
    `yaml.v2.ConfigGroup`, which reads the API of a running cluster: an offline plan and a new
    vCluster have none.

    `files` has the objects by file; the files' names do not matter. Raises KeyError for an object
    without `apiVersion`, `kind` or `metadata.name`.
    """
    manifests = list(chain.from_iterable(files.values()))
    declared_first = [
        _declare(team, manifest, opts)
        for manifest in manifests
        if manifest["kind"] in _DECLARED_FIRST
    ]
    for manifest in manifests:
        if manifest["kind"] not in _DECLARED_FIRST:
            _declare(team, manifest, depending_on(opts, *declared_first))


def _declare(team: str, manifest: Manifest, opts: ResourceOptions) -> Resource:
    """Declare one object; the data of a Secret are secret in the state, too.

    Raises KeyError as `declare_manifests` does.
    """
    properties = dict(manifest)
    if manifest["kind"] == "Secret":
        for key in {"data", "stringData"} & properties.keys():
            properties[key] = Output.secret(properties[key])
    return pulumi.CustomResource(type_of(manifest), name_of(team, manifest), properties, opts)


def type_of(manifest: Manifest) -> str:
    """The type of the object's resource: `kubernetes:apps/v1:Deployment`.

    Pulumi calls the group of `v1` core. Raises KeyError without `apiVersion` or `kind`.
    """
    group, _, version = manifest["apiVersion"].rpartition("/")
    return f"kubernetes:{group or 'core'}/{version}:{manifest['kind']}"


def name_of(team: str, manifest: Manifest) -> str:
    """The name of the object's resource: TEAM/NAMESPACE/NAME, or TEAM/NAME without a namespace.

    The kind is not part of it: the resource's type tells it. Raises KeyError without `metadata` or
    a name in it.
    """
    metadata = manifest["metadata"]
    parts = [team]
    if "namespace" in metadata:
        parts.append(metadata["namespace"])
    parts.append(metadata["name"])
    return "/".join(parts)
