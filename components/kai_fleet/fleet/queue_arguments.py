"""The QueueArgs of a queue tree in the settings."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from kai_fleet.inputs import without_none
from kai_fleet.quantities import WORD
from kai_fleet.queue_specs import UNLIMITED, every_spec, walk
from kai_fleet.settings.sections.queues import Queue, Share

Args = dict[str, Any]
_GPU: Final = "gpu"
_OWN: Final = ("display_name", "priority", "preempt_min_runtime", "reclaim_min_runtime")


def queue_args(tree: Mapping[str, Queue], shard: str | None = None) -> Args:
    """The queues by name, as they are written: a QueueTree fills in the quotas that are left out.

    `shard` serves all of them, where they hang below a queue of another tree.
    """
    return {name: _queue(queue, shard or queue.shard) for name, queue in tree.items()}


def host_queue_args(tree: Mapping[str, Queue], limits: Mapping[str, int]) -> Args:
    """Those of the host, each with every quota of GPUs written out.

    `limits` are the GPUs of the teams that a queue is for: it has no more of them.
    """
    queues = queue_args(tree)
    # Before anything is changed: a quota of all that is above a bounded queue stays.
    specs = every_spec(queues)
    for (name, queue), (_, spec) in zip(list(walk(queues)), specs, strict=True):
        share = queue.setdefault(_GPU, {})
        share.setdefault("quota", spec["resources"][_GPU]["quota"])
        if (most := limits.get(name)) is not None:
            if share["quota"] == UNLIMITED:
                share["quota"] = most
            share.setdefault("limit", max(most, share["quota"]))
    return queues


def _queue(queue: Queue, shard: str | None) -> Args:
    shares = {
        "cpu": _share(queue.cpu, lambda millicores: millicores / 1000, -1),
        "memory": _share(queue.memory, lambda megabytes: f"{megabytes:.0f}M", WORD),
        _GPU: _share(queue.gpu, lambda gpus: gpus, -1),
    }
    return without_none(
        {
            **{key: getattr(queue, key) for key in _OWN},
            **{key: share or None for key, share in shares.items()},
            "shard": shard,
            "children": queue_args(queue.children) or None,
        }
    )


def _share(share: Share[float], written: Callable[[float], Any], unlimited: Any) -> Args:
    """What is written of a share, in the units of QueueArgs."""
    amounts = {
        key: unlimited if amount == UNLIMITED else written(amount)
        for key, amount in share.written.items()
        if key != "weight"
    }
    return amounts | ({"weight": share.weight} if "weight" in share.model_fields_set else {})
