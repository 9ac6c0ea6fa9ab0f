"""Kubernetes manifests in YAML files below the project, with the limits of a stack file."""

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.files.project import ROOT


class ManifestFiles(dict[str, list[dict[str, Any]]]):
    """The objects of files by path; each has apiVersion, kind and metadata.name."""


def read_manifests(paths: Iterable[str]) -> ManifestFiles:
    """The objects of each file. Raises ValueError with every mistake of every file."""
    files = ManifestFiles()
    mistakes = []
    first: dict[tuple[str, ...], str] = {}
    for path in dict.fromkeys(paths):
        try:
            files[path] = _objects(path)
        except ValueError as error:
            mistakes.append(f"has {path}, {error}")
            continue
        for document in files[path]:
            other = first.setdefault(identity(document), path)
            if other != path or files[path].count(document) > 1:
                called = f"{document['kind']} {document['metadata']['name']}"
                mistakes.append(f"has {called} in {other} and again in {path}; drop one")
    if mistakes:
        raise ValueError("; ".join(dict.fromkeys(mistakes)))
    return files


def identity(document: dict[str, Any]) -> tuple[str, ...]:
    """What makes an object one of its own in a cluster: group, kind, namespace and name."""
    group = document["apiVersion"].rpartition("/")[0]
    metadata = document["metadata"]
    return group, document["kind"], metadata.get("namespace", "default"), metadata["name"]


def _objects(path: str) -> list[dict[str, Any]]:
    """The documents of one file, empty ones left out. Raises ValueError after the file's name."""
    place = (ROOT / path).resolve()
    if not place.is_relative_to(ROOT) or place.suffix not in (".yaml", ".yml"):
        raise ValueError("which is no YAML file below this project's folder; write one that is")
    try:
        text = place.read_text(encoding="utf-8")
        # A copy for each reader: transformations change what they get.
        return list(_checked(json.loads(_documents(text))))
    except FileNotFoundError:
        raise ValueError("which is not there; write the path from the project's folder") from None
    except (OSError, UnicodeError) as error:
        raise ValueError(f"which cannot be read: {error}") from None


@lru_cache
def _documents(text: str) -> str:
    return json.dumps(yaml_file.load_all(text))


def _checked(documents: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for number, document in enumerate(documents, 1):
        if document is None:
            continue
        about = document if isinstance(document, dict) else {}
        metadata = about.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not all(
            isinstance(text, str) for text in (about.get("apiVersion"), about.get("kind"), name)
        ):
            raise ValueError(
                f"document {number} is no Kubernetes object; write apiVersion, kind and"
                " metadata.name"
            )
        if about["kind"].endswith("List") and "items" in about:
            raise ValueError(f"document {number} is a list; write each item as a document (---)")
        yield about
