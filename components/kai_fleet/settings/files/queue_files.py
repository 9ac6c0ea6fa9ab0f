"""Queue trees in files of their own: `queues: queues/prod.yaml` in place of the tree itself.

Pulumi hands all of a stack file to each plugin as one environment variable, and Linux takes at most
128 KiB in one: about 1,200 queues. What stands in another file is not part of that.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ruamel.yaml.error import MarkedYAMLError, YAMLError

from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.files.project import ROOT
from kai_fleet.settings.mistakes import Mistake, key_path

_WRITE: Final = "write the tree itself, or the path of a YAML file below this project's folder"


class QueueFileError(Exception):
    """A file that cannot be read, or holds no queue tree; the message follows the key's path."""


def read_tree(queues: Any) -> Any:
    """What stands at a `queues:` key, or in the file that it names. Raises QueueFileError."""
    if not isinstance(queues, str):
        return queues
    try:
        path = (ROOT / queues).resolve()
    except (RuntimeError, ValueError):  # links in a circle, or no name of a file
        path = Path("/")
    if not path.is_relative_to(ROOT) or path.suffix not in (".yaml", ".yml"):
        raise QueueFileError(f"is {queues!r}; {_WRITE}")
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        return _tree(text)
    except FileNotFoundError:
        raise QueueFileError(f"names {queues}, which is not there; {_WRITE}") from None
    except MarkedYAMLError as why:
        raise QueueFileError(f"names {queues}, {yaml_file.mistake(text, why)}") from None
    except (QueueFileError, yaml_file.RefusedYamlError) as why:
        raise QueueFileError(f"names {queues}, {why}") from None
    except (OSError, YAMLError, ValueError, RecursionError) as why:
        raise QueueFileError(f"names {queues}, which cannot be read: {why}") from None


@lru_cache
def _tree(text: str) -> Any:
    """A file's tree; cached, because a command checks the rules before the program does, and five
    thousand queues take a second. Raises QueueFileError.
    """
    tree = yaml_file.load(text)
    if not isinstance(tree, Mapping):
        raise QueueFileError("which holds no queue tree; write NAME: {gpu: …} in it")
    try:
        # In the order in which Pulumi gives a stack file's keys: a tree that moves into a file, or
        # within one, changes nothing.
        return json.loads(json.dumps(tree, sort_keys=True))
    except TypeError:
        raise QueueFileError(
            "which has a key or a value that is neither text nor a number; put it in quotes"
        ) from None


def with_trees(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[Mistake]]:
    """A stack's configuration with every named tree in its place, empty where there is a mistake.

    `raw` itself stays as it is.
    """
    whole, mistakes = dict(raw), []
    for place in _named(raw):
        here = whole
        for key in place[:-1]:
            here[key] = dict(here[key])
            here = here[key]
        try:
            here[place[-1]] = read_tree(here[place[-1]])
        except QueueFileError as why:
            mistakes.append(Mistake(key_path(place), str(why)))
            here[place[-1]] = {}
    return whole, mistakes


def or_file(schema: dict[str, Any]) -> None:
    """The JSON Schema of a `queues:` key, from that of a tree."""
    tree = {key: schema.pop(key) for key in tuple(schema) if key not in ("description", "default")}
    pattern = r"\.ya?ml$"
    schema["anyOf"] = [
        tree,
        {"type": "string", "pattern": pattern, "description": "A YAML file with the tree."},
    ]


def _named(raw: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where a tree is named by its file."""
    teams = raw.get("teams")
    places: list[tuple[str, ...]] = [("queues",), ("team", "queues")]
    places += [("teams", name, "queues") for name in teams] if isinstance(teams, Mapping) else []
    for place in places:
        here: Any = raw
        for key in place:
            here = here.get(key) if isinstance(here, Mapping) else None
        if isinstance(here, str):
            yield place
