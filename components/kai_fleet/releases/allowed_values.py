"""Which values of vCluster's and KAI's charts may be set for a team that is kept from others."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from kai_fleet.releases import table, version_key
from kai_fleet.values import UNKNOWN, items, pairs, value_at
from kai_fleet.wording import listed, spelt_like

Chart = Literal["vcluster", "kai"]
READ: Final = table("allowed_values")
_OFF: Final = "write isolation: {level: off} for the team if that is meant"


def refusals(
    chart: Chart, values: Mapping[str, Any], version: str = ""
) -> Iterator[tuple[str, str, str]]:
    """The key, the cause and the fix of each value that an isolated team may not set.

    Where a value is not known yet, cause and fix are "". `version` is KAI's.
    """
    yield from _refused(chart, values, _tree(chart, version), "", version)


def unread(values: Mapping[str, Any], version: str) -> Iterator[tuple[str, str, str]]:
    """The key, the cause and the fix of each value that the chart of a KAI version does not read
    and that of another one does, or that is of a part which no version has.
    """
    every = READ["kai"]["allowed"]
    settings = {path.rpartition(".")[2] for path in every if path.startswith("binder.")}
    parts = {path.partition(".")[0] for path in every}
    for path in every:
        if value_at(values, path) is not None and not _is_read(path, version):
            yield path, *_unread(path, version)
    for part, value in values.items():
        for key in settings & pairs(value).keys() if part not in parts else ():
            like = f"{spelt_like(str(part), sorted(parts))}.{key}"
            fix = f"write {like}" if like in every and _is_read(like, version) else "drop it"
            yield f"{part}.{key}", f"has {part}.{key}, and no KAI has such a part", fix


def _is_read(path: str, version: str) -> bool:
    """Whether the chart of a version reads a path of KAI's list."""
    spans, numbers = READ["kai"]["allowed"][path], version_key(version)
    return not spans or any(
        version_key(span[0]) <= numbers and (len(span) == 1 or numbers < version_key(span[1]))
        for span in spans
    )


def _unread(path: str, version: str) -> tuple[str, str]:
    """Cause and fix of a path that the chart of a version does not read."""
    spans = READ["kai"]["allowed"][path]
    words = (f"from {span[0]} " + (f"to before {span[1]}" if span[1:] else "on") for span in spans)
    cause = f"has {path}, which the chart of {version} does not read: it would change nothing"
    return cause, f"drop it; charts read it {listed([*words], 'and')}"


@cache
def _tree(chart: Chart, version: str) -> Any:
    """The allowed paths, step by step; below an empty mapping everything is allowed."""
    tree: dict[str, Any] = {}
    for path in READ[chart]["allowed"]:
        if chart == "kai" and not _is_read(path, version):
            continue
        here = tree
        for step in path.split("."):
            here = here.setdefault(step, {})
    return tree


def _refused(
    chart: Chart, value: object, tree: Mapping[str, Any], key: str, version: str
) -> Iterator[tuple[str, str, str]]:
    """`tree` is what is allowed below the key; where it is empty everything is, but what Helm
    would run, or read as more than a value: with the rights of who installs.
    """
    if value is UNKNOWN:
        yield key, "", ""
    elif isinstance(value, Mapping):
        for name, below in value.items():
            step = f"{key}.{name}" if key else str(name)
            inner = tree.get(str(name))
            if not tree:
                yield from _text(chart, str(name), key)
                yield from _refused(chart, below, tree, step, version)
            elif inner is None:
                cause = f"has {step}, which is not among the values of a team"
                yield step, cause, _fix(chart, step)
            else:
                yield from _refused(chart, below, inner, step, version)
    elif tree:
        # Of a null Helm drops what the platform writes there, and the chart's own comes back.
        yield key, f"has {value!r} in {key}, where the platform writes a mapping", "drop it"
    elif value is None:
        yield key, f"has nothing in {key}, which drops what the chart has", "drop it"
    elif isinstance(value, str):
        yield from _text(chart, value, key)
    else:
        for item in items(value):
            yield from _refused(chart, item, tree, key, version)


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
