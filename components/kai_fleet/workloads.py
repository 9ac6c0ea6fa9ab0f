"""The manifests of `kai-fleet:workloads`, declared inside a team's vCluster."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pulumi

from kai_fleet.options import after

if TYPE_CHECKING:
    from kai_fleet.team import Team

# Kinds that other objects depend on: declared first.
_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_HIDDEN: Final = ("data", "stringData")  # of a Secret


def declare_manifests(
    name: str, files: Mapping[str, Sequence[Mapping[str, Any]]], team: "Team"
) -> list[pulumi.Resource]:
    """Declare the objects of these files, after the team's queues.

    Each is one resource, so that a preview shows it, rules check it, and removing it from a file
    deletes it. Not by `yaml.v2.ConfigGroup`, which reads the API of a running cluster: an offline
    plan and a new vCluster have none.
    """
    documents = [document for file in files.values() for document in file]
    opts = after(team.vcluster.inside(team), *team.ready)
    first = [_declare(name, manifest, opts) for manifest in documents if manifest["kind"] in _FIRST]
    others = [manifest for manifest in documents if manifest["kind"] not in _FIRST]
    opts = after(opts, *first)
    return first + [_declare(name, manifest, opts) for manifest in others]


def _declare(
    team: str, manifest: Mapping[str, Any], opts: pulumi.ResourceOptions
) -> pulumi.Resource:
    """Declare one object with its type token of `pulumi_kubernetes`: core/v1 for v1."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    token = f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}"
    prefix = [team, metadata["namespace"]] if "namespace" in metadata else [team]
    props = dict(manifest)
    if kind == "Secret":
        props |= {key: pulumi.Output.secret(props[key]) for key in _HIDDEN if key in props}
    return pulumi.CustomResource(token, "/".join((*prefix, metadata["name"])), props, opts)
