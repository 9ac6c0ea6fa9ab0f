"""Queue trees as stack files write them, before anything has checked them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.settings.quantities import UNLIMITED, gpu_devices
from components.settings.queue_files import NoTree, opened


@dataclass(frozen=True)
class Written:
    """One queue: its name, its keys below the tree's, and what stands there."""

    name: str
    keys: tuple[str, ...]
    raw: Mapping[str, Any]

    @property
    def is_leaf(self) -> bool:
        """Whether pods may name it."""
        return not self.raw.get("children")

    def gpus(self, field: str) -> float | None:
        """Its GPU quota or limit; -1 is unlimited, None is unwritten or no amount."""
        share = self.raw.get("gpu")
        value = share.get(field) if isinstance(share, Mapping) else None
        try:
            return None if value is None else gpu_devices(value)
        except ValueError:
            return None


def every(tree: Any) -> Iterator[Written]:
    """Every queue of a tree, or of the file that is named for it, parents before their children;
    nothing of what is no tree.
    """
    try:
        yield from _below(opened(tree), ())
    except NoTree:
        return


def _below(tree: Any, keys: tuple[str, ...]) -> Iterator[Written]:
    for name, raw in tree.items() if isinstance(tree, Mapping) else ():
        here = (*keys, str(name))
        queue = Written(str(name), here, raw if isinstance(raw, Mapping) else {})
        yield queue
        yield from _below(queue.raw.get("children"), (*here, "children"))


def names(tree: Any) -> list[str]:
    """The queues' names, parents first."""
    return [queue.name for queue in every(tree)]


def leaves(tree: Any) -> list[str]:
    """The names of the queues that pods may name."""
    return [queue.name for queue in every(tree) if queue.is_leaf]


def guaranteed(tree: Any) -> float:
    """The GPUs that a tree's top-level queues promise together; -1 is unlimited."""
    quotas = [queue.gpus("quota") or 0.0 for queue in every(tree) if len(queue.keys) == 1]
    return UNLIMITED if UNLIMITED in quotas else sum(quotas)
