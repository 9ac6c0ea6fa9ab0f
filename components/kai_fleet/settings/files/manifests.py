"""Manifests of a team: files of Kubernetes objects, which become resources of Pulumi.

Parts of an object become the type and the name of its resource, and Pulumi's Kubernetes plugin has
types of its own that run programs, read files or change what others made: `helm.sh/v3:Release`,
`kustomize/v2:Directory`, `core/v1:ConfigMapPatch`. So each part has to have the form that it has in
Kubernetes.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from kai_fleet.settings.files.yaml_file import PATH, load_all, named
from kai_fleet.values import get, pairs

Manifest = Mapping[str, Any]

_NEEDED: Final = (("apiVersion",), ("kind",), ("metadata", "name"))
_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
# Kubernetes' own groups without a dot, "" for that of v1. Those of the plugin have none either, but
# for one.
_GROUPS: Final = ("", "apps", "autoscaling", "batch", "policy")
_GROUP_OF_PLUGIN: Final = "helm.sh"
_VERSION: Final = "v[1-9][a-z0-9]{0,62}"
_KIND: Final = "(?!.*(List|Patch)$)[A-Z][A-Za-z0-9]{0,62}"
_FIELD: Final = "[a-z][A-Za-z0-9]*"
_RBAC: Final = "rbac.authorization.k8s.io"
_RBAC_NAME: Final = "(?!.*::)[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?"  # system:node
_LONGEST: Final = 253
# What the plugin reads of an object besides the object: how long it waits, who owns its fields.
_OF_PLUGIN: Final = "pulumi.com/"


def type_of(manifest: Manifest) -> str:
    """Its type token of `pulumi_kubernetes`, which calls the group of `v1` core."""
    group, _, version = manifest["apiVersion"].rpartition("/")
    return f"kubernetes:{group or 'core'}/{version}:{manifest['kind']}"


def name_of(team: str, manifest: Manifest) -> str:
    """The name of its resource: TEAM/NAMESPACE/NAME."""
    metadata = manifest["metadata"]
    namespaces = [metadata["namespace"]] if "namespace" in metadata else []
    return "/".join((team, *namespaces, metadata["name"]))


def _is_api_version(text: str) -> bool:
    group, slash, version = text.rpartition("/")
    if bool(group) != bool(slash) or not re.fullmatch(_VERSION, version):
        return False
    if "." not in group:
        return group in _GROUPS
    is_domain = len(group) <= _LONGEST and re.fullmatch(_DOMAIN, group) is not None
    return is_domain and group != _GROUP_OF_PLUGIN


def _is_name(text: str, group: str) -> bool:
    form = _RBAC_NAME if group == _RBAC else _DOMAIN
    return len(text) <= _LONGEST and re.fullmatch(form, text) is not None


def _object(manifest: Manifest) -> Manifest:
    """The manifest. Raises ValueError where a part has another form than in Kubernetes."""
    if not all(isinstance(get(manifest, *path), str) for path in _NEEDED):
        raise ValueError("is no Kubernetes object; write apiVersion, kind and metadata.name")
    version, kind, metadata = (manifest[key] for key in ("apiVersion", "kind", "metadata"))
    if not _is_api_version(version):
        raise ValueError(
            f"has the apiVersion {_shown(version)}, which is none of a cluster; write one such as"
            " v1, apps/v1 or example.com/v1"
        )
    if not re.fullmatch(_KIND, kind):
        raise ValueError(
            f"has the kind {_shown(kind)}, which is none of an object; write one such as Pod, and"
            " each object of a list as a document of its own"
        )
    if wrong := [key for key in manifest if not re.fullmatch(_FIELD, key)]:
        raise ValueError(f"has {_shown(wrong[0])}, which is no field of an object; drop it")
    if not _is_name(metadata["name"], version.rpartition("/")[0]):
        raise ValueError(
            f"has the name {_shown(metadata['name'])}, which Kubernetes does not take; write"
            " lower-case letters, digits, dashes and dots"
        )
    namespace = metadata.get("namespace", "default")
    if not (isinstance(namespace, str) and re.fullmatch(_LABEL, namespace)):
        raise ValueError(
            f"has the namespace {_shown(namespace)}, which Kubernetes does not take; write"
            " lower-case letters, digits and dashes"
        )
    for annotation in pairs(metadata.get("annotations")):
        if annotation.startswith(_OF_PLUGIN):
            raise ValueError(
                f"has the annotation {_shown(annotation)}, which the update would obey; drop it"
            )
    return manifest


def _shown(value: Any) -> str:
    return repr(value)[:80]


def _by_path(paths: Any) -> Any:
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError("is no list of files; write [workloads/train.yaml]")
    return {path: path for path in paths}


def _documents(path: Any) -> Any:
    """The documents of a file, empty ones left out. Raises ValueError."""
    return [document for document in named(path, load_all) if document is not None]


def _each_once(files: Mapping[str, list[Manifest]]) -> Mapping[str, list[Manifest]]:
    """The files. Raises ValueError for two objects that would be one resource: no run takes any."""
    seen = set[tuple[str, str]]()
    for manifest in (document for file in files.values() for document in file):
        resource = (type_of(manifest), name_of("", manifest))
        if resource in seen:
            cause = f"has {manifest['kind']} {resource[1].removeprefix('/')} twice"
            raise ValueError(f"{cause}; write it once")
        seen.add(resource)
    return files


# The objects of files by path; a stack file has a list of paths.
Manifests = Annotated[
    dict[
        str,
        Annotated[
            list[Annotated[dict[str, Any], AfterValidator(_object)]], BeforeValidator(_documents)
        ],
    ],
    BeforeValidator(_by_path),
    AfterValidator(_each_once),
    WithJsonSchema({"type": "array", "items": PATH}),
]
