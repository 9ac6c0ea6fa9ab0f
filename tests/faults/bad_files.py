"""Stack files that nobody should write, made from a good one; the same ones for the same seed."""

import copy
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from kai_fleet_cli.stack_file.reading import ROOT

GOOD = ("sandbox", "sandbox-host", "prod", "dev")
# Values that somebody, or something, may put where another is wanted.
ODD: tuple[Any, ...] = (
    *yaml.safe_load(Path(__file__).with_name("odd_values.yaml").read_text()),
    *(10**400, "1" * 5000, "9" * 400 + "Gi", "🚀" * 50, "é" * 300, "x" * 20_000),
    *({1: 2}, {None: None}, {True: 1}, [1] * 2000, {f"k{i}": i for i in range(2000)}),
)
RAW = (
    "",
    "\n",
    "---\n",
    "--- {}\n--- {}\n",
    "config:",
    "config: []",
    "config: 7",
    "[]",
    "just text",
    "config: {kai-fleet:teams: {a: {scheduler: {mode: default}, gpus: 1}}",
    "config:\n\tkai-fleet:teams: {}",
    "config:\n  kai-fleet:teams: &a {x: *a}",
    "config:\n  kai-fleet:teams: &a [*a]",
    "config:\n  kai-fleet:cluster: &c {name: c, context: c}\n  kai-fleet:gpu: *c",
    "config:\n  kai-fleet:cluster: {<<: {name: c}, context: c}",
    "config:\n  kai-fleet:cluster: {<<: [1, 2]}",
    "config:\n  kai-fleet:cluster: !!python/object/apply:os.system ['true']",
    "config:\n  kai-fleet:cluster: !!binary R0lGODlhDAAMAIQAAP",
    "config:\n  kai-fleet:cluster: !!set {a, b}",
    "config:\n  kai-fleet:cluster: !unknown {name: c}",
    "config:\n  ? [a, b]\n  : c",
    "config:\n  ? {a: b}\n  : c",
    "config:\n  kai-fleet:cluster: {name: a, name: b}",
    "%YAML 9.9\n---\nconfig: {}",
    "\ufeffconfig: {}",
    "config: {kai-fleet:cluster: 'unclosed",
    "config:\n  kai-fleet:nosuch: 1",
    "config:\n  other:key: 1",
    "config: " + "[" * 2000,
    "config: " + "{a: " * 500 + "1" + "}" * 500,
    "config:\n" + "".join(f"{' ' * (i + 2)}k{i}:\n" for i in range(300)),
    "config:\n  a: &a [x, x, x, x]\n"
    + "".join(f"  b{i}: &b{i} [*{'a' if i == 0 else f'b{i - 1}'}, *a]\n" for i in range(200)),
)
BYTES = (b"\xff\xfe\x00c", b"config: \x80\x81", b"\x00" * 100, bytes(range(256)))


def files(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Exactly `count` files, each with what was done to it."""
    chance = random.Random(seed)
    given = 0
    for text in RAW:
        given += 1
        yield f"raw {text[:40]!r}", text.encode()
    for content in BYTES:
        given += 1
        yield f"bytes {content[:8]!r}", content
    for made in (_many_queues(3_000), _deep(60), _many_teams(50)):
        given += 1
        yield made[0], json.dumps(made[1]).encode()  # which is YAML too
    good = [yaml.safe_load((ROOT / f"Pulumi.{name}.yaml").read_text()) for name in GOOD]
    while given < count:
        document = copy.deepcopy(chance.choice(good))
        done = [_spoil(document, chance) for _ in range(chance.choice((1, 1, 1, 2, 5)))]
        text = yaml.safe_dump(document, allow_unicode=True)
        if chance.random() < 0.1:
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice("\t:{}[]&*!|>'\"%@`\n#-") + text[at + 1 :]
            done.append(f"one character at {at}")
        given += 1
        yield "; ".join(done), text.encode("utf-8", "surrogatepass")


def _spoil(document: dict[str, Any], chance: random.Random) -> str:
    """Put something odd at a place, take a key away, or call it otherwise; said in words."""
    places = list(_places(document["config"], document, "config"))
    parent, key, path = chance.choice(places)
    odd = chance.choice(ODD)
    acts: tuple[Callable[[], str], ...] = (
        lambda: _set(parent, key, odd, path),
        lambda: _set(parent, key, odd, path),
        lambda: _set(parent, key, [parent[key]], path),
        lambda: _set(parent, key, {"nested": parent[key]}, path),
        lambda: _drop(parent, key, path),
        lambda: _rename(parent, key, odd, path),
    )
    return chance.choice(acts)()


def _set(parent: Any, key: Any, value: Any, path: str) -> str:
    parent[key] = copy.deepcopy(value)
    return f"{path} = {str(value)[:40]!r}"


def _drop(parent: Any, key: Any, path: str) -> str:
    del parent[key]
    return f"without {path}"


def _rename(parent: Any, key: Any, odd: Any, path: str) -> str:
    if not isinstance(parent, dict) or isinstance(odd, dict | list):
        return _drop(parent, key, path)
    parent[odd] = parent.pop(key)
    return f"{path} called {str(odd)[:40]!r}"


def _places(value: Any, parent: Any, key: Any) -> Iterator[tuple[Any, Any, str]]:
    if key != "config" or parent.get("config") is not value:
        yield parent, key, str(key)
    if not isinstance(value, dict | list):
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in list(items):
        for above, last, path in _places(item, value, name):
            yield above, last, path if above is value else f"{name}.{path}"


def _team(queues: dict[str, Any]) -> dict[str, Any]:
    return {
        "config": {
            "kai-fleet:cluster": {"name": "c", "context": "c"},
            "kai-fleet:teams": {
                "ml": {
                    "scheduler": {"mode": "virtual", "version": "v0.16.8"},
                    "nodePool": {"pool": "ml"},
                    "gpus": 8,
                    "queues": queues,
                }
            },
        }
    }


def _queue(**more: Any) -> dict[str, Any]:
    free = {"quota": "unlimited"}
    return {"cpu": dict(free), "memory": dict(free), "gpu": {"quota": 0}, **more}


def _many_queues(count: int) -> tuple[str, dict[str, Any]]:
    children = {f"q{i}": _queue() for i in range(count - 2)}
    children["more-than-there-is"] = _queue(gpu={"quota": 9})
    return f"{count} queues, one too large", _team({"top": _queue(children=children)})


def _deep(levels: int) -> tuple[str, dict[str, Any]]:
    queue = _queue()
    for level in range(levels):
        queue = _queue(children={f"q{level}": queue})
    return f"{levels} levels of queues", _team({"top": queue})


def _many_teams(count: int) -> tuple[str, dict[str, Any]]:
    document = _team({"top": _queue()})
    ml = document["config"]["kai-fleet:teams"].pop("ml")
    for i in range(count):
        document["config"]["kai-fleet:teams"][f"t{i}"] = {**ml, "nodePool": {"pool": f"t{i}"}}
    return f"{count} teams", document
