"""The manifests of `kai-fleet:workloads`, declared inside a team's vCluster."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pulumi

from kai_fleet.options import after

if TYPE_CHECKING:
    from kai_fleet.team import Team

# What others need: declared before them.
_FIRST: Final = ("Namespace", "CustomResourceDefinition")
_HIDDEN: Final = ("data", "stringData")  # of a Secret


def declare_manifests(
    name: str, files: Mapping[str, Sequence[Mapping[str, Any]]], team: "Team"
) -> list[pulumi.Resource]:
    """Declare the objects of these files once the team's queues are there.

    Each is a resource of its own, so that a preview shows it, rules judge it, and one that is taken
    out of a file is deleted. Nothing here needs a cluster: `yaml.v2.ConfigGroup` reads the API of
    one, which an offline plan and a vCluster that is not there yet do not have.
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
    """One object, under the type that `pulumi_kubernetes` gives it: core/v1 for plain v1."""
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    token = f"kubernetes:{version if '/' in version else f'core/{version}'}:{kind}"
    place = [team, metadata["namespace"]] if "namespace" in metadata else [team]
    props = dict(manifest)
    if kind == "Secret":
        props |= {key: pulumi.Output.secret(props[key]) for key in _HIDDEN if key in props}
    return pulumi.CustomResource(token, "/".join((*place, metadata["name"])), props, opts)
