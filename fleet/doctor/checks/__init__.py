"""The checks: each a plain function from what was read to findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol, cast

from fleet.doctor.checks import (
    gpu_sharing,
    kai_parts,
    leftovers,
    nodes,
    pending,
    pod_groups,
    queues,
    refused,
    runtime_classes,
    shards,
    unreadable,
    vclusters,
    webhooks,
    written_wrong,
)
from fleet.doctor.finding import Finding
from fleet.doctor.seen import Look


class Check(Protocol):
    """A module of this package."""

    NAME: str

    def check(self, look: Look, /) -> Iterator[Finding]:
        """Everything that this check looked at, what is well included."""


CHECKS: Final[tuple[Check, ...]] = tuple(
    cast(Check, module)
    for module in (
        unreadable,
        nodes,
        runtime_classes,
        vclusters,
        kai_parts,
        webhooks,
        leftovers,
        queues,
        shards,
        written_wrong,
        pending,
        refused,
        pod_groups,
        gpu_sharing,
    )
)


def examine(look: Look) -> list[Finding]:
    """What all checks say, in their order, each thing once."""
    return list(dict.fromkeys(finding for check in CHECKS for finding in check.check(look)))
