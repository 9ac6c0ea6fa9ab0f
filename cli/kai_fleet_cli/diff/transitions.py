"""Why a change replaces something, and what a version switch does, in words.

The plan has no engine to ask, so what the program and the providers do is said here, in one place.
"""

import re
from collections.abc import Collection
from typing import Final

from kai_fleet.state import transitions
from kubectl_fleet.releases import KAI, UnknownVersionError, kai

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
PROVIDER: Final = "pulumi:providers:kubernetes"
COMMAND: Final = "command:local:Command"
KAI_COMPONENT: Final = "kai-fleet:index:KaiScheduler"
CRD: Final = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
# Once made for a host they stay with the stack, whatever its file wants of them later.
KEPT_ON_HOST: Final = (CRD, "kubernetes:node.k8s.io/v1:RuntimeClass")

AFTER_ITS_RELEASE: Final = "it runs again after its release"
AFTER_ITS_PROVIDER: Final = "its cluster is another one"
_TRAP = re.compile(r" \([A-Z]\d+\)$")


def kai_switch(old: str, new: str, stays: str = "") -> str:
    """`KAI v0.14.7 → v0.16.8, upgraded in place`, or `replaced` with the reason behind it.

    `stays` comes before the reason.
    """
    reason = why_kai_replaced(old, new)
    how, why = ("replaced", f" ({reason})") if reason else ("upgraded in place", "")
    return f"KAI {old} → {new}, {how}{stays}{why}"


def why_kai_replaced(old: str, new: str) -> str | None:
    """Why KaiScheduler replaces its release for another version; None for an upgrade in place.

    Queues and running pods stay either way.
    """
    known = KAI.get(old)
    if known is None:
        return f"{old} is not in the table"
    try:
        way = transitions.kai_transition(known, kai(new, untested=True))
    except UnknownVersionError:
        return f"{new} is not in the table"
    if way.kind != "replace":
        return None
    # The sentence around it names both versions already, and a reader of a diff no trap's number.
    return _TRAP.sub("", way.why.removeprefix(f"{old} → {new}").lstrip(": "))


def why_deleted(type_: str, *, on_host: bool, has_parent: bool) -> str:
    """The reason for which something goes that one would not expect to go; else ""."""
    if on_host and type_ in KEPT_ON_HOST:
        return "it leaves the stack, and stays in the cluster"
    if type_ == CRD and has_parent:
        return "it was made for KAI v0.9 and v0.10, which wait for it; this version does not"
    return ""


def why_replaced(
    type_: str, parent_type: str, changed: Collection[str], versions: tuple[str, str]
) -> str | None:
    """The reason for which a changed resource is replaced; None where it is updated in place.

    `changed` are the paths of the fields that differ, `versions` its `version` before and after.
    """
    if type_ == RELEASE:
        if parent_type == KAI_COMPONENT:
            return _kai_replaced(changed, *versions)
        if {"name", "namespace"} & set(changed):
            return "a release cannot change its name or namespace"
    elif type_ == PROVIDER:
        if "clusterIdentifier" in changed:
            return "the cluster has another identity, so everything on it is created again"
    elif type_ == COMMAND:
        if any(path.split("[")[0] == "triggers" for path in changed):
            return "its trigger changed"
    elif type_.startswith("kubernetes:"):
        if {"metadata.name", "metadata.namespace"} & set(changed):
            return "an object cannot change its name or namespace"
        if type_.endswith(":RuntimeClass") and "handler" in changed:
            return "a RuntimeClass cannot change its handler"
    return None


def _kai_replaced(changed: Collection[str], old: str, new: str) -> str | None:
    if old != new:
        return why_kai_replaced(old, new)
    known = KAI.get(new)
    values = any(path.startswith("values.") for path in changed)
    if values and known is not None and known.recreates_config:
        return (
            f"new values recreate kai-config of {new}, and its scheduler would not come up for long"
        )
    return None
