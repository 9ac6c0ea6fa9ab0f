"""Queue trees as stack files write them: looked at, cut in two parts, and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from kai_fleet.settings.files.queue_files import QueueFileError, read_tree
from kai_fleet.settings.sections.kubernetes import UNLIMITED, gpu_devices
from kai_fleet.settings.sections.queues import QueueTree, walk, with_quotas

_TREE: Final = TypeAdapter(QueueTree)
_PER_GPU: Final = 10**6  # quotas count in millionths, as the settings round them
_STEP: Final = 10**4  # parts are cut in hundredths of a GPU
Field = tuple[str, ...]  # keys below the queue tree, down to `quota` or `limit`


@dataclass(frozen=True)
class WrittenQueue:
    """One queue: its name, its keys below the tree's, and what stands there."""

    name: str
    keys: tuple[str, ...]
    raw: Mapping[str, Any]

    @property
    def children(self) -> list[WrittenQueue]:
        """The queues right below it."""
        return _level(self.raw.get("children"), (*self.keys, "children"))

    def place(self, field: str) -> tuple[str, ...]:
        """The keys of its GPU quota or limit; `gpu: 4` is short for `gpu: {quota: 4}`."""
        short = field == "quota" and isinstance(self.raw.get("gpu"), int | float | str)
        return (*self.keys, "gpu") if short else (*self.keys, "gpu", field)

    def amount(self, field: str) -> int | None:
        """Its GPU quota or limit in millionths; None where it is unlimited or no amount."""
        share = self.raw.get("gpu")
        written = share if isinstance(share, Mapping) else {"quota": share}
        try:
            return _millionths(gpu_devices(written.get(field)))
        except ValueError:
            return None


def every(tree: Any) -> Iterator[WrittenQueue]:
    """Every queue of a tree, or of the file that is named for it, parents before their children;
    nothing of what is no tree.
    """
    try:
        left = _level(read_tree(tree), ())
    except QueueFileError:
        return
    while left:
        queue = left.pop(0)
        yield queue
        left[:0] = queue.children


def _level(tree: Any, keys: Field) -> list[WrittenQueue]:
    """The queues at the top of a tree that stands at these keys."""
    return [
        WrittenQueue(str(name), (*keys, str(name)), raw if isinstance(raw, Mapping) else {})
        for name, raw in (tree.items() if isinstance(tree, Mapping) else ())
    ]


def leaves(tree: Any) -> list[str]:
    """The names of the queues that pods may name."""
    return [queue.name for queue in every(tree) if not queue.raw.get("children")]


def filled(
    tree: Any, gpus: float | None, pools: Mapping[str, float | None] | None = None
) -> QueueTree:
    """The tree with every quota, empty where it is no right one; `gpus` are the team's."""
    of_pools = {name: most or 0.0 for name, most in (pools or {}).items()}
    try:
        return with_quotas(_TREE.validate_python(read_tree(tree)), gpus, of_pools)
    except (QueueFileError, ValidationError):
        return {}


def guaranteed(
    tree: Any, gpus: float | None, pools: Mapping[str, float | None] | None = None
) -> float:
    """The GPUs that a tree's top-level queues promise together; -1 is unlimited."""
    quotas = [queue.gpu.quota for queue in filled(tree, gpus, pools).values()]
    return UNLIMITED if UNLIMITED in quotas else sum(quotas)


def split(
    tree: Any, gpus: int, part: int
) -> tuple[dict[Field, float | int], dict[Field, float | int]]:
    """`part` of `gpus` taken out of a queue tree, each queue's quota and limit in proportion.

    The numbers that change, by their place below `queues`: what stays, and what is taken.
    Both trees keep what the rules want of one: children within their parent, limits above quotas,
    and all within the team's GPUs. The two together are the tree as it was.
    """
    quotas = {it.name: _millionths(it.queue.gpu.quota) or 0 for it in walk(filled(tree, gpus))}
    whole = Cut(gpus * _PER_GPU, part * _PER_GPU)
    cuts = dict(_cuts(_level(tree, ()), quotas, whole, whole, whole))
    stays = {field: _number(cut.whole - cut.out) for field, cut in cuts.items()}
    return stays, {field: _number(cut.out) for field, cut in cuts.items()}


def joined(tree: Any, other: Any) -> dict[Field, float | int]:
    """The numbers of a tree with those of the same queues of another one added."""
    trial = {queue.keys: queue for queue in every(other)}
    numbers: dict[Field, float | int] = {}
    for queue in every(tree):
        for field in ("quota", "limit") if queue.keys in trial else ():
            mine, theirs = queue.amount(field), trial[queue.keys].amount(field)
            if mine is not None and theirs:
                numbers[queue.place(field)] = _number(mine + theirs)
    return numbers


def with_numbers(tree: Any, numbers: Mapping[Field, float | int]) -> Any:
    """A copy of a tree with other numbers at some places."""

    def copied(value: Any, keys: Field) -> Any:
        if isinstance(value, Mapping):
            return {key: copied(item, (*keys, str(key))) for key, item in value.items()}
        return numbers.get(keys, value)

    return copied(tree, ())


class Cut(NamedTuple):
    """An amount in millionths of a GPU, and what is taken out of it."""

    whole: int
    out: int


def _cuts(
    level: Sequence[WrittenQueue], quotas: Mapping[str, int], above: Cut, bound: Cut, team: Cut
) -> Iterator[tuple[Field, Cut]]:
    """The numbers that are written in queues and below them, by place. `above` is the quota that
    the queues share, `bound` the nearest limit above them.
    """
    own = {queue.name: quotas.get(queue.name, 0) for queue in level}
    total = sum(own.values())
    wanted = max(_rounded(total * above.out, above.whole), total - (above.whole - above.out))
    taken = _shared(own, max(min(wanted, above.out, total), 0))
    for queue in level:
        quota, below = Cut(own[queue.name], taken[queue.name]), bound
        limit = queue.amount("limit")
        if queue.amount("quota"):  # what is left out follows from what is written, in both parts
            yield queue.place("quota"), quota
        if limit is not None:
            least = max(quota.out, limit - (bound.whole - bound.out))
            most = min(bound.out, limit - (quota.whole - quota.out))
            below = Cut(limit, max(min(_rounded(limit * team.out, team.whole), most), least))
            yield queue.place("limit"), below
        yield from _cuts(queue.children, quotas, quota, below, team)


def _shared(amounts: Mapping[str, int], total: int) -> dict[str, int]:
    """`total` in proportion to the amounts, none above its own.

    Each gets what lies between two shares of the sums so far, rounded down: to a step where all
    amounts are in steps.
    """
    whole = sum(amounts.values())
    step = 1 if any(it % _STEP for it in (total, *amounts.values())) else _STEP
    sums = [it * total // whole // step * step for it in accumulate(amounts.values()) if whole]
    taken = [upper - lower for lower, upper in pairwise([0, *sums])]
    return dict(zip(amounts, taken, strict=True)) if whole else dict.fromkeys(amounts, 0)


def _millionths(amount: float) -> int | None:
    return None if amount < 0 else round(amount * _PER_GPU)


def _rounded(product: int, by: int) -> int:
    return round(product / by / _STEP) * _STEP if by else 0


def _number(amount: int) -> float | int:
    return amount // _PER_GPU if amount % _PER_GPU == 0 else round(amount / _PER_GPU, 6)
