"""Queue trees in files of their own: `queues: queues/prod.yaml` in place of the tree itself.

Pulumi hands all of a stack file to each plugin as one environment variable, and Linux takes at most
128 KiB in one: about 1,200 queues. What stands in another file is not part of that.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.files.project import ROOT

_WRITE: Final = "write the tree itself, or the path of a YAML file below this project's folder"


def read_tree(queues: Any) -> Any:
    """What stands at a `queues:` key, or in the file that it names. Raises ValueError."""
    if not isinstance(queues, str):
        return queues
    try:
        path = (ROOT / queues).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, or no name of a file
        path = Path("/")
    if not path.is_relative_to(ROOT) or path.suffix not in (".yaml", ".yml"):
        raise ValueError(f"is {queues!r}; {_WRITE}")
    try:
        tree = _loaded(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"names {queues}, which is not there; {_WRITE}") from None
    except yaml_file.RefusedYamlError as why:
        raise ValueError(f"names {queues}, {why}") from None
    except (OSError, ValueError) as why:
        raise ValueError(f"names {queues}, which cannot be read: {why}") from None
    if not isinstance(tree, Mapping):
        raise ValueError(f"names {queues}, which holds no queue tree; write NAME: {{gpu: …}} in it")
    return tree


@lru_cache
def _loaded(text: str) -> Any:
    """A file's content in the order in which Pulumi gives a stack file's keys: a tree that moves
    into a file changes nothing. Cached, because a command reads it before the program does.
    """
    return _sorted(yaml_file.load(text))


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return value


def or_file(schema: dict[str, Any]) -> None:
    """The JSON Schema of a `queues:` key, from that of a tree."""
    tree = {key: schema.pop(key) for key in tuple(schema) if key not in ("description", "default")}
    pattern = r"\.ya?ml$"
    schema["anyOf"] = [
        tree,
        {"type": "string", "pattern": pattern, "description": "A YAML file with the tree."},
    ]
