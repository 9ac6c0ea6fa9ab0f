"""A queue tree, which is one resource, shown to people as its queues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kai_fleet.provider import QUEUES
from kai_fleet_policies.adapters import declared_trees
from kai_fleet_policies.adapters.declared_trees import QUEUE

__all__ = ["QUEUE", "with_queues"]

Item = Mapping[str, Any]


def with_queues(resources: Iterable[Item]) -> Iterator[Item]:
    """A plan's resources as records, with each queue of a tree in the place of the tree.

    A queue is called after its tree, and its URN is the tree's with the queue's name behind it.
    """
    listed = list(resources)
    of_cluster = declared_trees.providers(
        (item["type"], item["urn"], item.get("inputs", {})) for item in listed
    )
    for item in listed:
        if item["type"] != QUEUES:
            yield item
            continue
        for queue in declared_trees.members(item.get("inputs", {}), of_cluster):
            yield {
                **item,
                "urn": f"{item['urn']}#{queue.name}",
                "type": QUEUE,
                "name": f"{item['name']}-{queue.name}",
                "provider": queue.provider,
                "inputs": queue.props,
            }
