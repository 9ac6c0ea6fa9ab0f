"""Manifests of a team: files with Kubernetes objects, which are declared as Pulumi resources.

apiVersion and kind of an object become the type of its resource, namespace and name its name.
Pulumi's Kubernetes plugin also has types that run programs, read files or change foreign objects,
such as `helm.sh/v3:Release`, `kustomize/v2:Directory` and `core/v1:ConfigMapPatch`. So an object is
refused unless each of them has the form that it has in Kubernetes.
"""

import re
from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from kai_fleet.manifests import Manifest, name_of, type_of
from kai_fleet.values import get, pairs
from kai_fleet_stack.settings.files.yaml_file import PATH, load_all, read_named_file

_NEEDED = (("apiVersion",), ("kind",), ("metadata", "name"))
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN = rf"{_LABEL}(\.{_LABEL})*"
# The only API groups without a dot, "" for that of v1. The plugin's own groups have no dot, except
# _GROUP_OF_PLUGIN.
_GROUPS = ("", "apps", "autoscaling", "batch", "policy")
_GROUP_OF_PLUGIN = "helm.sh"
_VERSION = "v[1-9][a-z0-9]{0,62}"
_KIND = "(?!.*(List|Patch)$)[A-Z][A-Za-z0-9]{0,62}"
_FIELD = "[a-z][A-Za-z0-9]*"
_RBAC = "rbac.authorization.k8s.io"
_RBAC_NAME = "(?!.*::)[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?"  # system:node
_LONGEST = 253  # characters of a group or a name
# Domain of annotations that the plugin acts on, such as how long an update waits for the object.
_OF_PLUGIN = "pulumi.com/"


def _is_api_version(text: str) -> bool:
    """Whether a text is an apiVersion of a cluster, and not of a group of Pulumi's plugin."""
    group, slash, version = text.rpartition("/")
    if bool(group) != bool(slash) or not re.fullmatch(_VERSION, version):
        return False
    if "." not in group:
        return group in _GROUPS
    is_domain = len(group) <= _LONGEST and re.fullmatch(_DOMAIN, group) is not None
    return is_domain and group != _GROUP_OF_PLUGIN


def _is_name(text: str, group: str) -> bool:
    """Whether a text is a name for an object of the API group; RBAC allows more characters."""
    form = _RBAC_NAME if group == _RBAC else _DOMAIN
    return len(text) <= _LONGEST and re.fullmatch(form, text) is not None


def _object(manifest: Manifest) -> Manifest:
    """The manifest as it is.

    Raises:
        ValueError: a part that becomes type or name of the resource is absent; it, or a top-level
            field's name, has another form than in Kubernetes; or an annotation is one that the
            plugin acts on.
    """
    if not all(isinstance(get(manifest, *path), str) for path in _NEEDED):
        raise ValueError("is no Kubernetes object; write apiVersion, kind and metadata.name")
    _refuse_type(manifest)
    _refuse_metadata(manifest)
    return manifest


def _refuse_type(manifest: Manifest) -> None:
    """Raise ValueError if the apiVersion, the kind or a field is none of a Kubernetes object.

    Of fields only the form of top-level names counts. Kinds that end with List or Patch are
    refused, those of custom resources too. apiVersion and kind are texts already.
    """
    version = manifest["apiVersion"]
    kind = manifest["kind"]
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
    for field in manifest:
        if not re.fullmatch(_FIELD, field):
            raise ValueError(f"has {_shown(field)}, which is no field of an object; drop it")


def _refuse_metadata(manifest: Manifest) -> None:
    """Raise ValueError for a name or namespace of another form, and for a plugin's annotation.

    apiVersion and name are texts already. A namespace may be absent, and not null.
    """
    version = manifest["apiVersion"]
    metadata = manifest["metadata"]
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


def _shown(value: object) -> str:
    """A value for a message: the first 80 characters of its repr."""
    return repr(value)[:80]


def _by_path(paths: object) -> dict[str, str]:
    """The paths of a list by themselves, each once. Raises ValueError if it is no list of texts."""
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError("is no list of files; write [workloads/train.yaml]")
    return {path: path for path in paths}


def _documents(path: str) -> list[object]:
    """The documents of a file that a stack file names, without empty ones.

    Raises:
        ValueError: the file is refused, cannot be read, or is no YAML.
    """
    return [document for document in read_named_file(path, load_all) if document is not None]


def _each_once(files: Mapping[str, list[Manifest]]) -> Mapping[str, list[Manifest]]:
    """The files as they are.

    Raises:
        ValueError: two objects, also of different files, have the same apiVersion, kind, namespace
            and name, so that they would be one resource. An object without a namespace is not the
            same as one that names `default`.
    """
    seen = set[tuple[str, str]]()
    for manifest in chain.from_iterable(files.values()):
        resource = (type_of(manifest), name_of("", manifest))
        if resource in seen:
            cause = f"has {manifest['kind']} {resource[1].removeprefix('/')} twice"
            raise ValueError(f"{cause}; write it once")
        seen.add(resource)
    return files


# The objects of files, by path; a stack file has only the list of paths.
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
