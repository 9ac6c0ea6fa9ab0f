"""Nodes for the teams of a benchmark: each has a pool of its own, where its KAI runs."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from bench.shell import kubectl
from sandbox.lifecycle import Sandbox
from sandbox.nodes.fake_nodes import EVERY_NODE, POOL_LABEL, fake_node

_HAS: Final = {**EVERY_NODE, "cpu": "32", "memory": "128Gi", "nvidia.com/gpu": "2"}


def node(pool: str) -> dict[str, Any]:
    """A node of that pool, with two GPUs, as the sandbox's others are."""
    return fake_node(f"{pool}-1", {POOL_LABEL: pool}, _HAS, _HAS, [])


@contextmanager
def nodes(sandbox: Sandbox, pools: Iterable[str]) -> Iterator[None]:
    """Have a node in each of these pools, for a while."""
    items = [node(pool) for pool in pools]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    kubectl(sandbox, "create", "-f", "-", stdin=text)
    try:
        yield
    finally:
        kubectl(sandbox, "delete", "--wait=false", "--ignore-not-found", "-f", "-", stdin=text)
