"""Queue trees in files of their own: `queues: queues/prod.yaml` in place of the tree itself.

Pulumi hands all of a stack file to each plugin as one environment variable, and Linux takes at most
128 KiB in one: about 1,200 queues. What stands in another file is not part of that.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from kai_fleet.finding import Finding
from kai_fleet.settings.files import yaml_file
from kai_fleet.settings.files.project import ROOT
from kai_fleet.settings.mistakes import key_path, wrong_key

_WRITE: Final = "write the tree itself, or the path of a YAML file below this project's folder"


class QueueFileError(Exception):
    """A file that cannot be read, or holds no queue tree; the message follows the key's path."""


def read_tree(queues: Any) -> Any:
    """What stands at a `queues:` key, or in the file that it names. Raises QueueFileError."""
    if not isinstance(queues, str):
        return queues
    try:
        path = (ROOT / queues).resolve()
    except (OSError, RuntimeError, ValueError):  # links in a circle, or no name of a file
        path = Path("/")
    if not path.is_relative_to(ROOT) or path.suffix not in (".yaml", ".yml"):
        raise QueueFileError(f"is {queues!r}; {_WRITE}")
    try:
        tree = _loaded(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise QueueFileError(f"names {queues}, which is not there; {_WRITE}") from None
    except yaml_file.RefusedYamlError as why:
        raise QueueFileError(f"names {queues}, {why}") from None
    except (OSError, ValueError) as why:
        raise QueueFileError(f"names {queues}, which cannot be read: {why}") from None
    if not isinstance(tree, Mapping):
        raise QueueFileError(
            f"names {queues}, which holds no queue tree; write NAME: {{gpu: …}} in it"
        )
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


def with_trees(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[Finding]]:
    """A stack's configuration with every named tree in its place, empty where there is a mistake.

    `raw` itself stays as it is.
    """
    found: list[Finding] = []

    def at(holder: Any, *place: str) -> Any:
        if not isinstance(holder, Mapping) or not isinstance(holder.get("queues"), str):
            return holder
        try:
            return {**holder, "queues": read_tree(holder["queues"])}
        except QueueFileError as why:
            found.append(wrong_key(key_path((*place, "queues")), str(why)))
            return {**holder, "queues": {}}

    whole = dict(at(raw))
    if isinstance(teams := raw.get("teams"), Mapping):
        whole["teams"] = {name: at(team, "teams", name) for name, team in teams.items()}
    if "team" in raw:
        whole["team"] = at(raw["team"], "team")
    return whole, found


def or_file(schema: dict[str, Any]) -> None:
    """The JSON Schema of a `queues:` key, from that of a tree."""
    tree = {key: schema.pop(key) for key in tuple(schema) if key not in ("description", "default")}
    pattern = r"\.ya?ml$"
    schema["anyOf"] = [
        tree,
        {"type": "string", "pattern": pattern, "description": "A YAML file with the tree."},
    ]
