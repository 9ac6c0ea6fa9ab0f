"""A stack's state as release 0.1.0 wrote it: a team's namespace was a part of the team."""

from __future__ import annotations

import re
from typing import Any

Resource = dict[str, Any]

_SPACE = "kai-fleet:index:TeamNamespace"
_TEAM = "kai-fleet:index:Team"
_VCLUSTER = f"{_TEAM}$kai-fleet:index:VirtualCluster"
_QUOTA = "kubernetes:core/v1:ResourceQuota"
# Where each resource stands now, and where it stood then.
_MOVED = {
    rf"{re.escape(_SPACE)}\$(kubernetes:core/v1:Namespace::)(\S+)-namespace": (
        rf"{_VCLUSTER}$\1\2-namespace"
    ),
    rf"{re.escape(_SPACE)}\$({re.escape(_QUOTA)}::)": rf"{_TEAM}$\1",
    rf"{re.escape(_SPACE)}\$(kai-fleet:index:QueueGuard\S*::)(\S+)-queue-guard": (
        rf"{_TEAM}$\1\2-guard"
    ),
}
# What a state of then calls its probes by.
_PROBE = re.compile(r"PATH=.* exec fleet-probe ")
_NOT_THERE = re.compile(rf"::{re.escape(_SPACE)}::|-vacant$")


def before(resources: list[Resource]) -> list[Resource]:
    """The same resources under their old URNs, without those that there were none of."""
    absent = {it["urn"] for it in resources if _NOT_THERE.search(it["urn"])}
    moved = {it["urn"] for it in resources if f"{_SPACE}$" in it["urn"]}
    found = []
    for it in resources:
        if it["urn"] in absent:
            continue
        gone = absent if it["urn"] in moved else absent | moved
        it["dependencies"] = [urn for urn in it.get("dependencies") or [] if urn not in gone]
        it["propertyDependencies"] = {
            name: [urn for urn in urns or [] if urn not in gone]
            for name, urns in (it.get("propertyDependencies") or {}).items()
        }
        found.append(_renamed(it))
    for it in found:
        if it["urn"].endswith("-pods") and "::command:local:Command::" in _typed(it):
            team = it["urn"].rpartition("::")[2].removesuffix("-pods")
            it["dependencies"] = [_of(found, f"::{team}-namespace")]
        if "$kai-fleet:index:QueueGuard" in it["urn"]:
            it["dependencies"] = [urn for urn in it["dependencies"] if "-namespace" not in urn]
        it["parent"] = _parent(it, found)
        if f"${_QUOTA}::" in it["urn"]:
            team = it["urn"].rpartition("::")[2].removesuffix("-gpus")
            release = _of(found, f"::{team}-release")
            it["dependencies"], it["deletedWith"] = [release], release
    return _in_order(found)


def _typed(it: Resource) -> str:
    return f"::{it['type']}::"


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    if isinstance(value, str) and " exec fleet-probe " in value:
        return _PROBE.sub("components/probes/run ", value)
    if isinstance(value, str) and value.startswith("urn:pulumi:"):
        for now, then in _MOVED.items():
            value = re.sub(now, then, value)
    return value


def _parent(it: Resource, every: list[Resource]) -> str | None:
    parent = it.get("parent")
    if parent is None or f"::{_SPACE}::" not in parent:
        return parent
    team = parent.rpartition("::")[2]
    kind = _VCLUSTER if "$kubernetes:core/v1:Namespace::" in it["urn"] else _TEAM
    return _of(every, f"::{kind}::{team}")


def _of(every: list[Resource], end: str) -> str:
    return next(it["urn"] for it in every if it["urn"].endswith(end))


def _in_order(every: list[Resource]) -> list[Resource]:
    """Each after what it names, as a state has to be."""
    left, done, found = list(every), set(), []
    while left:
        for it in left:
            urns = {it.get("parent"), it.get("deletedWith"), *it["dependencies"]}
            urns |= {urn for of in it["propertyDependencies"].values() for urn in of}
            urns.add((it.get("provider") or "").rpartition("::")[0])
            if urns <= done | {None, ""}:
                found.append(it)
                done.add(it["urn"])
                left.remove(it)
                break
        else:
            raise AssertionError([it["urn"] for it in left])
    return found
