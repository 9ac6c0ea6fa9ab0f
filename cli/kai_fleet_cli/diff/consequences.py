"""What a change brings: why it replaces something, and what is refused, lost, restarted."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from kai_fleet.fleet.deployed_state import COMMAND, KAI_SCHEDULER, RELEASE
from kai_fleet.releases import KAI, UnknownVersionError, kai, transitions
from kai_fleet_cli.plan.recorder import Registered


class Hazard(StrEnum):
    """`refused` stops the update; `lost` does not come back; `restarts` is away for a while."""

    REFUSED = "refused"
    LOST = "lost"
    RESTARTS = "restarts"


HEADINGS: Final[dict[Hazard | None, str]] = {
    Hazard.REFUSED: "The update refuses this",
    Hazard.LOST: "Lost with this",
    Hazard.RESTARTS: "Restarts",
    None: "Changes",
}


class Part(NamedTuple):
    """A part of a sentence about a team or the host, with what it puts at risk."""

    text: str
    hazard: Hazard | None = None


@dataclass(frozen=True)
class Sentence:
    """What happens to one team, or to the host, in parts: `research`, `GPUs 8 → 10`."""

    subject: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The parts as one."""
        return "; ".join(part.text for part in self.parts)

    def record(self) -> dict[str, Any]:
        """For the JSON format; what is at risk, the worst first."""
        own = {part.hazard for part in self.parts}
        hazards = [hazard.value for hazard in Hazard if hazard in own]
        return {"subject": self.subject, "text": self.text, "hazards": hazards}


def by_hazard(sentences: Iterable[Sentence]) -> dict[Hazard | None, list[Sentence]]:
    """The sentences, each in what it says of a hazard; what is harmless last, at None."""
    groups: dict[Hazard | None, list[Sentence]] = {hazard: [] for hazard in HEADINGS}
    for sentence in sentences:
        for hazard, group in groups.items():
            if own := tuple(part for part in sentence.parts if part.hazard is hazard):
                group.append(Sentence(sentence.subject, own))
    return {hazard: group for hazard, group in groups.items() if group}


PROVIDER: Final = "pulumi:providers:kubernetes"
CRD: Final = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
_RUNTIME_CLASS: Final = "kubernetes:node.k8s.io/v1:RuntimeClass"
# Once made for a host they stay with the stack, whatever its file wants of them later.
KEPT_ON_HOST: Final = (CRD, _RUNTIME_CLASS)

LEFT_BEHIND: Final = "it leaves the stack, and stays in the cluster"
OF_OLD_KAI: Final = "it was made for KAI v0.9 and v0.10, which wait for it; this version does not"
AFTER_ITS_RELEASE: Final = "it runs again after its release"
AFTER_ITS_PROVIDER: Final = "its cluster is another one"
# What no resource of a type can change in place; the type's beginning is enough.
_FIXED: Final = (
    (RELEASE, {"name", "namespace"}, "a release cannot change its name or namespace"),
    (
        PROVIDER,
        {"clusterIdentifier"},
        "the cluster has another identity, so everything on it is created again",
    ),
    (COMMAND, {"triggers"}, "its trigger changed"),
    (_RUNTIME_CLASS, {"handler"}, "a RuntimeClass cannot change its handler"),
    (
        "kubernetes:",
        {"metadata.name", "metadata.namespace"},
        "an object cannot change its name or namespace",
    ),
)
_TRAP: Final = re.compile(r" \([A-Z]\d+\)$")


def kai_switch(old: str, new: str, stays: str = "") -> str:
    """`KAI v0.14.7 → v0.16.8, upgraded in place`, or `replaced` with the reason behind it.

    `stays` comes before the reason.
    """
    reason = _why_kai_replaced(old, new)
    how, why = ("replaced", f" ({reason})") if reason else ("upgraded in place", "")
    return f"KAI {old} → {new}, {how}{stays}{why}"


def _why_kai_replaced(old: str, new: str) -> str:
    """Why KaiScheduler replaces its release for another version; "" for an upgrade in place.

    Queues and running pods stay either way.
    """
    if old not in KAI:
        return f"{old} is not in the table"
    try:
        way = transitions.kai_transition(KAI[old], kai(new, untested=True))
    except UnknownVersionError:
        return f"{new} is not in the table"
    # The sentence around it names both versions already, and a reader of a diff no trap's number.
    why = _TRAP.sub("", way.why.removeprefix(f"{old} → {new}").lstrip(": "))
    return why if way.kind == "replace" else ""


def why_replaced(
    before: Registered, after: Registered, parent: Registered | None, changed: Collection[str]
) -> str:
    """The reason for which a changed resource is replaced; "" where it is updated in place.

    `changed` are the paths of the fields that differ.
    """
    if after.type != RELEASE or parent is None or parent.type != KAI_SCHEDULER:
        fields = {path.partition("[")[0] for path in changed}
        own = (why for of, fixed, why in _FIXED if after.type.startswith(of) and fields & fixed)
        return next(own, "")
    old, new = (str(it.inputs.get("version", "")) for it in (before, after))
    if old != new:
        return _why_kai_replaced(old, new)
    values = any(path.startswith("values.") for path in changed)
    if not (values and new in KAI and KAI[new].recreates_config):
        return ""
    return f"new values recreate kai-config of {new}, and its scheduler would not come up for long"
