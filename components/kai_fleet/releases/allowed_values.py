"""Which values of vCluster's and KAI's charts an isolated team may set: allowed_values.yaml."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal

from kai_fleet.releases import table, version_key
from kai_fleet.values import UNKNOWN, items, pairs, value_at
from kai_fleet.wording import listed, spelt_like

Chart = Literal["vcluster", "kai"]
# The key, the cause and the fix of a value that a team may not set. The cause is a predicate of the
# values, the fix an imperative. Both are "" if the value is not known before the update, so that
# nothing is decided.
Refusal = tuple[str, str, str]
Tree = dict[str, "Tree"]  # allowed keys; below an empty tree every key is allowed
READ = table("allowed_values")
# The spans of versions whose charts read a value of KAI, by its path; no spans: all versions.
_KAI_SPANS = READ["kai"]["allowed"]
_OFF = "write isolation: {level: off} for the team if that is meant"


def refusals(
    chart: Chart,
    values: Mapping[str, object],
    version: str = "",
) -> Iterator[Refusal]:
    """The values that an isolated team may not set, among those for a chart.

    `version` is that of KAI, and "" for vCluster. A value is refused if it

    - is outside the allow-list,
    - is a scalar, a list or null where allowed keys are below it,
    - is a null, with which Helm drops the chart's default,
    - is a text with `{{`, which Helm would run with the rights of whoever installs the chart,
    - is a text of several lines, which could add an object to the chart's manifests.

    A key of a mapping counts as a text. Texts at the keys that the table has at `texts` may be any.
    A value that only the update knows yields a refusal without cause and fix.
    """
    yield from _refused(chart, values, _allowed(chart, version), key="")


def unread(values: Mapping[str, object], version: str) -> Iterator[Refusal]:
    """The values that the chart of a KAI version ignores.

    Those are values that only charts of other versions read, in the order of the allow-list, then
    settings of a component, such as `podgruper.resources`, that no version has. Of the former those
    that are null are left out. One that only the update knows counts as set, and so does each below
    a mapping that only the update knows.
    """
    for path in _KAI_SPANS:
        if value_at(values, path) is not None and not _is_read(path, version):
            yield _unread(path, version)
    components = {path.partition(".")[0] for path in _KAI_SPANS}
    settings = {path.rpartition(".")[2] for path in _KAI_SPANS if path.startswith("binder.")}
    for name, value in values.items():
        if name in components:
            continue
        for key in pairs(value):
            if key in settings:
                yield _without_component(name, key, components, version)


def _without_component(
    name: str,
    key: str,
    components: set[str],
    version: str,
) -> Refusal:
    """The refusal of a setting of a component that no KAI has.

    The fix is a key that this version's chart reads, if one is spelt like it, else to drop it.
    """
    similar = f"{spelt_like(str(name), sorted(components))}.{key}"
    fix = "drop it"
    if similar in _KAI_SPANS and _is_read(similar, version):
        fix = f"write {similar}"
    return f"{name}.{key}", f"has {name}.{key}, and no KAI has such a part", fix


def _is_read(path: str, version: str) -> bool:
    """Whether the chart of a KAI version reads a path of the allow-list.

    Raises KeyError for another path.
    """
    spans = _KAI_SPANS[path]
    return not spans or any(_includes(span, version) for span in spans)


def _includes(span: list[str], version: str) -> bool:
    """Whether a version is in a span: from its first version on, to before its second if any."""
    first, *end = map(version_key, span)
    key = version_key(version)
    return first <= key and all(key < limit for limit in end)


def _unread(path: str, version: str) -> Refusal:
    """The refusal of a path that the chart of a KAI version does not read."""
    spans = []
    for first, *end in _KAI_SPANS[path]:
        spans.append(f"from {first} to before {end[0]}" if end else f"from {first} on")
    cause = f"has {path}, which the chart of {version} does not read: it would change nothing"
    return path, cause, f"drop it; charts read it {listed(spans, 'and')}"


@cache
def _allowed(chart: Chart, version: str) -> Tree:
    """The allow-list of a chart as a tree; of KAI's the paths that this version reads.

    Do not change it: it is cached.
    """
    tree: Tree = {}
    for path in READ[chart]["allowed"]:
        if chart == "kai" and not _is_read(path, version):
            continue
        branch = tree
        for key in path.split("."):
            branch = branch.setdefault(key, {})
    return tree


def _refused(
    chart: Chart,
    value: object,
    allowed: Tree,
    key: str,
) -> Iterator[Refusal]:
    """The refused values in a value at a key, below which these keys are allowed."""
    if value is UNKNOWN:
        yield key, "", ""
    elif isinstance(value, Mapping):
        for name, below in value.items():
            yield from _refused_below(chart, str(name), below, allowed, key)
    elif allowed:
        # For a null Helm drops what the platform writes there, and uses the chart's default.
        yield key, f"has {value!r} in {key}, where the platform writes a mapping", "drop it"
    elif value is None:
        yield key, f"has nothing in {key}, which drops what the chart has", "drop it"
    elif isinstance(value, str):
        yield from _refused_text(chart, value, key)
    else:
        for element in items(value):
            yield from _refused(chart, element, allowed, key)


def _refused_below(
    chart: Chart,
    name: str,
    value: object,
    allowed: Tree,
    parent: str,
) -> Iterator[Refusal]:
    """The refused values in the entry `name` of a mapping at the key `parent`."""
    key = f"{parent}.{name}" if parent else name
    if not allowed:
        yield from _refused_text(chart, name, parent)
        yield from _refused(chart, value, allowed, key)
    elif name in allowed:
        yield from _refused(chart, value, allowed[name], key)
    else:
        yield key, f"has {key}, which is not among the values of a team", _fix(chart, key)


def _fix(chart: Chart, key: str) -> str:
    """What to write in place of a value: a key of the stack file if one sets the same.

    That is the first in the table for a path that is the value's key, above it or below it.
    """
    for path, stack_key in READ[chart]["instead"].items():
        if f"{key}.".startswith(f"{path}.") or path.startswith(f"{key}."):
            return f"write {stack_key} in the stack file instead, or {_OFF}"
    return f"drop it, or {_OFF}"


def _refused_text(chart: Chart, text: str, key: str) -> Iterator[Refusal]:
    """The refusals of a text, or of a name in a mapping, at a key where any value is allowed.

    None at a key that the table has at `texts`; two for a template of several lines.
    """
    if key in READ[chart]["texts"]:
        return
    if "{{" in text:
        cause = "which Helm runs as a template with the rights of whoever installs the chart"
        yield key, f"has {{{{ in {key}, {cause}", "write the text that is meant"
    if len(text.splitlines()) > 1:
        cause = "and the chart writes it into its manifests as it is: the second could be an"
        yield key, f"has several lines, {cause} object of its own", "write one line"
