"""Which values of vCluster's and KAI's charts may be set for a team that is kept from others."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from kai_fleet.releases import table
from kai_fleet.values import UNKNOWN, items

Chart = Literal["vcluster", "kai"]
READ: Final = table("allowed_values")
_OFF: Final = "write isolation: {level: off} for the team if that is meant"


def refusals(chart: Chart, values: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The key, the cause and the fix of each value that an isolated team may not set.

    Where a value is not known yet, cause and fix are "".
    """
    yield from _refused(chart, values, _tree(chart), "")


@cache
def _tree(chart: Chart) -> Any:
    """The allowed paths, step by step; below an empty mapping everything is allowed."""
    tree: dict[str, Any] = {}
    for path in READ[chart]["allowed"]:
        here = tree
        for step in path.split("."):
            here = here.setdefault(step, {})
    for name, below in tree.items():
        below |= tree.get("*", {}) if name != "*" else {}
    return tree


def _refused(
    chart: Chart, value: object, tree: Mapping[str, Any], key: str
) -> Iterator[tuple[str, str, str]]:
    """`tree` is what is allowed below the key; where it is empty everything is, but what Helm
    would run, or read as more than a value: with the rights of who installs.
    """
    if value is UNKNOWN:
        yield key, "", ""
    elif isinstance(value, Mapping):
        for name, below in value.items():
            step = f"{key}.{name}" if key else str(name)
            inner = tree.get(str(name), tree.get("*"))
            if not tree:
                yield from _text(chart, str(name), key)
                yield from _refused(chart, below, tree, step)
            elif inner is None:
                cause = f"has {step}, which is not among the values of a team"
                yield step, cause, _fix(chart, step)
            else:
                yield from _refused(chart, below, inner, step)
    elif tree:
        # Of a null Helm drops what the platform writes there, and the chart's own comes back.
        yield key, f"has {value!r} in {key}, where the platform writes a mapping", "drop it"
    elif value is None:
        yield key, f"has nothing in {key}, which drops what the chart has", "drop it"
    elif isinstance(value, str):
        yield from _text(chart, value, key)
    else:
        for item in items(value):
            yield from _refused(chart, item, tree, key)


def _fix(chart: Chart, key: str) -> str:
    """What to write instead of a value: a key of the stack file where one says the same."""
    for path, instead in READ[chart]["instead"].items():
        if f"{key}.".startswith(f"{path}.") or path.startswith(f"{key}."):
            return f"write {instead} in the stack file instead, or {_OFF}"
    return f"drop it, or {_OFF}"


def _text(chart: Chart, text: str, key: str) -> Iterator[tuple[str, str, str]]:
    if key in READ[chart]["texts"]:
        return
    if "{{" in text:
        cause = "which Helm runs as a template with the rights of whoever installs the chart"
        yield key, f"has {{{{ in {key}, {cause}", "write the text that is meant"
    if len(text.splitlines()) > 1:
        cause = "and the chart writes it into its manifests as it is: the second could be an"
        yield key, f"has several lines, {cause} object of its own", "write one line"
