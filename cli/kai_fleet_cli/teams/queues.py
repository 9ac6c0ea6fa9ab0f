"""Queue trees as stack files write them: their names, their leaves and their quotas."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kai_fleet.fleet.queue_arguments import queue_args
from kai_fleet.queue_specs import every_spec
from kai_fleet.settings.files.queue_files import QueueFileError, read_tree
from kai_fleet.settings.sections.kubernetes import UNLIMITED
from kai_fleet.settings.sections.queues import Queue, QueueTree
from kai_fleet.values import pairs

_TREE: Final = TypeAdapter(QueueTree)


def names(tree: Any) -> list[str]:
    """Every queue of a tree, or of the file that is named for it, parents before their children;
    nothing of what is no tree.
    """
    return [name for name, _ in _every(tree)]


def leaves(tree: Any) -> list[str]:
    """The names of the queues that pods may name."""
    return [name for name, children in _every(tree) if not children]


def _every(tree: Any) -> Iterator[tuple[str, Any]]:
    """Each queue's name with what stands at its `children`."""
    try:
        left = [*pairs(read_tree(tree)).items()]
    except QueueFileError:
        return
    while left:
        name, queue = left.pop(0)
        children = pairs(queue).get("children")
        yield str(name), children
        left[:0] = pairs(children).items()


def filled(
    tree: Any, gpus: float | None, pools: Mapping[str, float | None] | None = None
) -> QueueTree:
    """The tree with every quota, empty where it is no right one; `gpus` are the team's."""
    of_pools = {name: most or 0.0 for name, most in (pools or {}).items()}
    try:
        whole = _TREE.validate_python(read_tree(tree))
    except (QueueFileError, ValidationError):
        return {}
    specs = dict(every_spec(queue_args(whole), gpus, of_pools))

    def with_quota(name: str, queue: Queue) -> Queue:
        quota = specs[name]["resources"]["gpu"]["quota"]
        children = {child: with_quota(child, own) for child, own in queue.children.items()}
        gpu = queue.gpu.model_copy(update={"quota": quota})
        return queue.model_copy(update={"gpu": gpu, "children": children})

    return {name: with_quota(name, queue) for name, queue in whole.items()}


def guaranteed(
    tree: Any, gpus: float | None, pools: Mapping[str, float | None] | None = None
) -> float:
    """The GPUs that a tree's top-level queues promise together; -1 is unlimited."""
    quotas = [queue.gpu.quota for queue in filled(tree, gpus, pools).values()]
    return UNLIMITED if UNLIMITED in quotas else sum(quotas)
