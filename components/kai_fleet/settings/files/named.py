"""YAML files below the project that a stack file names: queue trees, and manifests of teams.

Pulumi hands all of a stack file to each plugin as one environment variable, and Linux takes at most
128 KiB in one: about 1,200 queues. What stands in another file is not part of that.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import PlainValidator, WithJsonSchema

from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.files.project import ROOT


def _text(name: str) -> str:
    """A file's content. Raises ValueError with what is wrong, which follows its name."""
    try:
        path = (ROOT / name.partition("\0")[0]).resolve()
        if not path.is_relative_to(ROOT) or path.suffix not in (".yaml", ".yml"):
            raise ValueError("which is no YAML file below this project's folder; write one that is")
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError("which is not there; write the path from the project's folder") from None
    except (OSError, RuntimeError, UnicodeError) as why:  # also links in a circle
        raise ValueError(f"which cannot be read: {why}") from None


@lru_cache
def _json(text: str, read: Callable[[str], Any]) -> str:
    """Cached, because a command reads it before the program does; as text, because transformations
    change what they get.
    """
    return json.dumps(read(text))


def read_tree(queues: Any) -> Any:
    """What stands at a `queues:` key, or in the file that it names. Raises ValueError.

    The keys are in the order in which Pulumi gives those of a stack file: a tree that moves into a
    file changes nothing.
    """
    if not isinstance(queues, str):
        return queues
    try:
        tree = _sorted(json.loads(_json(_text(queues), yaml_file.load)))
    except ValueError as why:
        raise ValueError(f"names {queues}, {why}") from None
    if not isinstance(tree, Mapping):
        raise ValueError(f"names {queues}, which holds no queue tree; write NAME: {{gpu: …}} in it")
    return tree


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return value


class ManifestFiles(dict[str, list[dict[str, Any]]]):
    """The objects of files by path; each has apiVersion, kind and metadata.name."""


def read_manifests(paths: Any) -> ManifestFiles:
    """The objects of each file. Raises ValueError with every mistake of every file."""
    if isinstance(paths, ManifestFiles):  # read already
        return paths
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ValueError("is no list of files; write [workloads/train.yaml]")
    files, first = ManifestFiles(), dict[tuple[str, ...], str]()
    mistakes = dict[str, None]()
    for path in dict.fromkeys(paths):
        try:
            files[path] = list(_objects(json.loads(_json(_text(path), yaml_file.load_all))))
        except ValueError as why:
            mistakes[f"has {path}, {why}"] = None
            continue
        for document in files[path]:
            other = first.setdefault(_identity(document), path)
            if other != path or files[path].count(document) > 1:
                called = f"{document['kind']} {document['metadata']['name']}"
                mistakes[f"has {called} in {other} and again in {path}; drop one"] = None
    if mistakes:
        raise ValueError("; ".join(mistakes))
    return files


def _identity(document: dict[str, Any]) -> tuple[str, ...]:
    """What makes an object one of its own in a cluster: group, kind, namespace and name."""
    group, metadata = document["apiVersion"].rpartition("/")[0], document["metadata"]
    return group, document["kind"], metadata.get("namespace", "default"), metadata["name"]


def _objects(documents: list[Any]) -> Iterator[dict[str, Any]]:
    """The documents of one file, empty ones left out."""
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        about = document if isinstance(document, dict) else {}
        metadata = about.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not all(isinstance(text, str) for text in (*map(about.get, _NEEDED), name)):
            cause = f"document {number} is no Kubernetes object"
            raise ValueError(f"{cause}; write apiVersion, kind and metadata.name")
        if about["kind"].endswith("List") and "items" in about:
            raise ValueError(f"document {number} is a list; write each item as a document (---)")
        yield about


_NEEDED: Final = ("apiVersion", "kind")
_PATH: Final = {"type": "string", "pattern": r"\.ya?ml$"}
TreeFile = Annotated[str, WithJsonSchema({**_PATH, "description": "A YAML file with the tree."})]
Manifests = Annotated[
    ManifestFiles,
    PlainValidator(read_manifests),
    WithJsonSchema({"type": "array", "items": _PATH}),
]
