"""Queue trees as stack files write them: looked at, cut in two parts, and put together again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kai_fleet.settings.files.queue_files import QueueFileError, read_tree
from kai_fleet.settings.quantities import UNLIMITED, gpu_devices
from kai_fleet.settings.sections.queues import Queue, QueueTree, with_quotas

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


def every(tree: Any) -> Iterator[WrittenQueue]:
    """Every queue of a tree, or of the file that is named for it, parents before their children;
    nothing of what is no tree.
    """
    try:
        yield from _below(read_tree(tree), ())
    except QueueFileError:
        return


def _below(tree: Any, keys: tuple[str, ...]) -> Iterator[WrittenQueue]:
    for name, raw in tree.items() if isinstance(tree, Mapping) else ():
        here = (*keys, str(name))
        queue = WrittenQueue(str(name), here, raw if isinstance(raw, Mapping) else {})
        yield queue
        yield from _below(queue.raw.get("children"), (*here, "children"))


def names(tree: Any) -> list[str]:
    """The queues' names, parents first."""
    return [queue.name for queue in every(tree)]


def leaves(tree: Any) -> list[str]:
    """The names of the queues that pods may name."""
    return [queue.name for queue in every(tree) if queue.is_leaf]


def gpu_quotas(
    tree: Any, gpus: float | None, pools: Mapping[str, float | None] | None = None
) -> dict[tuple[str, ...], float]:
    """Each queue's GPU quota by its keys, with those that are left out filled in; `gpus` are the
    team's. What is no right tree has none.
    """
    try:
        of_pools = {name: most or 0.0 for name, most in (pools or {}).items()}
        filled = with_quotas(_TREE.validate_python(read_tree(tree)), gpus, of_pools)
    except (QueueFileError, ValidationError):
        return {}
    return dict(_quotas(filled, ()))


def _quotas(
    tree: Mapping[str, Queue], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, queue in tree.items():
        yield (*above, name), queue.gpu.quota
        yield from _quotas(queue.children, (*above, name, "children"))


def guaranteed(
    tree: Any, gpus: float | None, pools: Mapping[str, float | None] | None = None
) -> float:
    """The GPUs that a tree's top-level queues promise together; -1 is unlimited."""
    quotas = [quota for keys, quota in gpu_quotas(tree, gpus, pools).items() if len(keys) == 1]
    return UNLIMITED if UNLIMITED in quotas else sum(quotas)


@dataclass(frozen=True)
class TreeParts:
    """The numbers that change, by their place below `queues`: what stays and what is taken."""

    stays: Mapping[Field, float | int]
    taken: Mapping[Field, float | int]


def split(tree: Any, gpus: int, part: int) -> TreeParts:
    """`part` of `gpus` taken out of a queue tree, each queue's quota and limit in proportion.

    Both trees keep what the rules want of one: children within their parent, limits above quotas,
    and all within the team's GPUs. The two together are the tree as it was.
    """
    queues = list(every(tree))
    filled = gpu_quotas(tree, gpus)
    quota = {q.keys: _millionths(filled.get(q.keys)) or 0 for q in queues}
    taken = _taken_quotas(queues, quota, gpus * _PER_GPU, part * _PER_GPU)
    limits, cut = _limits(queues, quota, taken, gpus * _PER_GPU, part * _PER_GPU)
    # What is left out follows from what is written, in both parts.
    fields = {
        q.place("quota"): (quota[q.keys], taken[q.keys]) for q in queues if _amount(q, "quota")
    }
    fields |= {(*keys, "gpu", "limit"): (limits[keys], cut[keys]) for keys in limits}
    return TreeParts(
        {field: _number(whole - out) for field, (whole, out) in fields.items()},
        {field: _number(out) for field, (_, out) in fields.items()},
    )


def joined(tree: Any, other: Any) -> dict[Field, float | int]:
    """The numbers of a tree with those of the same queues of another one added."""
    trial = {queue.keys: queue for queue in every(other)}
    numbers: dict[Field, float | int] = {}
    for queue in every(tree):
        twin = trial.get(queue.keys)
        for field in ("quota", "limit"):
            mine = _amount(queue, field)
            theirs = _amount(twin, field) if twin else None
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


def _taken_quotas(
    queues: Sequence[WrittenQueue], quota: Mapping[Field, int], gpus: int, part: int
) -> dict[Field, int]:
    taken: dict[Field, int] = {}
    children: dict[Field, list[Field]] = {}
    for queue in queues:
        children.setdefault(queue.keys[:-2], []).append(queue.keys)
    for above, below in children.items():  # parents come first
        whole, out = (quota[above], taken[above]) if above else (gpus, part)
        total = sum(quota[keys] for keys in below)
        wanted = _rounded(total * out, whole)
        out_of_these = min(max(wanted, total - (whole - out)), out, total)
        taken |= _shared({keys: quota[keys] for keys in below}, max(out_of_these, 0))
    return taken


def _shared(amounts: Mapping[Field, int], total: int) -> dict[Field, int]:
    """`total` in proportion to the amounts, none above its own: largest remainders get the rest."""
    whole = sum(amounts.values())
    if not whole:
        return dict.fromkeys(amounts, 0)
    exact = {keys: amount * total / whole for keys, amount in amounts.items()}
    shares = {keys: int(value // _STEP) * _STEP for keys, value in exact.items()}
    left = total - sum(shares.values())
    for keys in sorted(exact, key=lambda k: shares[k] - exact[k]) * 2:
        more = min(left, amounts[keys] - shares[keys], _STEP)
        shares[keys] += more
        left -= more
    for keys in amounts:  # what is finer than a step
        more = min(left, amounts[keys] - shares[keys])
        shares[keys] += more
        left -= more
    return shares


def _limits(
    queues: Sequence[WrittenQueue],
    quota: Mapping[Field, int],
    taken: Mapping[Field, int],
    gpus: int,
    part: int,
) -> tuple[dict[Field, int], dict[Field, int]]:
    whole: dict[Field, int] = {}
    out: dict[Field, int] = {}
    for queue in queues:
        keys, limit = queue.keys, _amount(queue, "limit")
        if limit is None:
            continue
        above = keys[:-2]
        while above and above not in whole:
            above = above[:-2]
        bound, of_bound = (whole[above], out[above]) if above else (gpus, part)
        least = max(taken[keys], limit - (bound - of_bound))
        most = min(of_bound, limit - (quota[keys] - taken[keys]))
        whole[keys] = limit
        out[keys] = max(min(_rounded(limit * part, gpus), most), least)
    return whole, out


def _amount(queue: WrittenQueue, field: str) -> int | None:
    """In millionths of a GPU; None where it is unlimited or not written."""
    return _millionths(queue.gpus(field))


def _millionths(amount: float | None) -> int | None:
    return None if amount is None or amount < 0 else round(amount * _PER_GPU)


def _rounded(product: int, by: int) -> int:
    return round(product / by / _STEP) * _STEP if by else 0


def _number(amount: int) -> float | int:
    return amount // _PER_GPU if amount % _PER_GPU == 0 else round(amount / _PER_GPU, 6)
