"""`kai-fleet:workloads`: the YAML files of what runs in each team's vCluster."""

from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from kai_fleet.settings.files.manifests import ManifestFiles, read_manifests


def _files(value: Any) -> ManifestFiles:
    """The documents by path, of a list of paths. Raises ValueError for all files at once."""
    if isinstance(value, ManifestFiles):  # read already
        return value
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise ValueError("is no list of files; write [workloads/train.yaml]")
    return read_manifests(value)


_PATH = {"type": "string", "pattern": r"\.ya?ml$"}
Manifests = Annotated[
    ManifestFiles,
    PlainValidator(_files),
    WithJsonSchema({"type": "array", "items": _PATH}),
]
