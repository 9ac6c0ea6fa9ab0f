"""Queue trees as stack files write them, before anything has checked them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kai_fleet.settings.files.queue_files import QueueFileError, read_tree
from kai_fleet.settings.quantities import UNLIMITED, gpu_devices
from kai_fleet.settings.quota_defaults import with_quotas
from kai_fleet.settings.sections.queues import Queue, QueueTree

_TREE: Final = TypeAdapter(QueueTree)


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

    def place(self, field: str) -> tuple[str, ...]:
        """The keys of its GPU quota or limit; `gpu: 4` is short for `gpu: {quota: 4}`."""
        short = field == "quota" and isinstance(self.raw.get("gpu"), int | float | str)
        return (*self.keys, "gpu") if short else (*self.keys, "gpu", field)

    def gpus(self, field: str) -> float | None:
        """Its GPU quota or limit; -1 is unlimited, None is unwritten or no amount."""
        share = self.raw.get("gpu")
        if isinstance(share, Mapping):
            value = share.get(field)
        else:
            value = share if field == "quota" else None
        try:
            return None if value is None else gpu_devices(value)
        except ValueError:
            return None


def every(tree: Any) -> Iterator[Written]:
    """Every queue of a tree, or of the file that is named for it, parents before their children;
    nothing of what is no tree.
    """
    try:
        yield from _below(read_tree(tree), ())
    except QueueFileError:
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


def gpu_quotas(tree: Any, gpus: float | None) -> dict[tuple[str, ...], float]:
    """Each queue's GPU quota by its keys, with those that are left out filled in; `gpus` are the
    team's. What is no right tree has none.
    """
    try:
        filled = with_quotas(_TREE.validate_python(read_tree(tree)), gpus)
    except (QueueFileError, ValidationError):
        return {}
    return dict(_quotas(filled, ()))


def _quotas(
    tree: Mapping[str, Queue], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, queue in tree.items():
        yield (*above, name), queue.gpu.quota
        yield from _quotas(queue.children, (*above, name, "children"))


def guaranteed(tree: Any, gpus: float | None) -> float:
    """The GPUs that a tree's top-level queues promise together; -1 is unlimited."""
    quotas = [quota for keys, quota in gpu_quotas(tree, gpus).items() if len(keys) == 1]
    return UNLIMITED if UNLIMITED in quotas else sum(quotas)
