"""Trees that are written as the parent of each name, None at the top.

A parent may be absent, and there may be rings: nobody checks who writes a Queue.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

Parents = Mapping[str, str | None]
_Children = dict[str | None, list[str]]


def upwards(parents: Parents, name: str | None) -> Iterator[str]:
    """A name and those above it, nearest first; nothing for None or a name that is absent.

    It ends before a parent that is absent, and before a name is repeated.
    """
    passed = set[str]()
    while name is not None and name in parents and name not in passed:
        passed.add(name)
        yield name
        name = parents[name]


def levels(parents: Parents) -> dict[str, int]:
    """The level of each name, 1 at the top.

    Each name is before its children, all below it come before its next sibling, and siblings are
    sorted. Names in a ring, below one, or below an absent parent are left out.
    """
    children: _Children = defaultdict(list)
    for name in sorted(parents, reverse=True):
        parent = parents[name]
        children[parent].append(name)
    found: dict[str, int] = {}
    pending = [*children[None]]
    while pending:
        name = pending.pop()
        parent = parents[name]
        found[name] = 1
        if parent is not None:
            found[name] += found[parent]
        pending += children[name]
    return found


def leaves_below(
    parents: Parents,
    leaves: Iterable[str],
) -> dict[str, list[str]]:
    """The leaves below each name that has any, in the order of `leaves`; any other name gives [].

    `leaves` are the names that no other has as its parent; they are not looked for, and not below
    themselves. Raises KeyError for a leaf that is not in `parents`.
    """
    below: dict[str, list[str]] = defaultdict(list)
    for leaf in leaves:
        parent = parents[leaf]
        for name in upwards(parents, parent):
            below[name].append(leaf)
    return below
