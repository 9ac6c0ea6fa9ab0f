"""The checks: each a plain function from what was read to findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol, cast

from kai_fleet.cli.doctor.causes import merge_by_cause
from kai_fleet.cli.doctor.checks import (
    held_gpus,
    helm_records,
    isolation,
    monitoring,
    network_plugin,
    network_reach,
    nodes,
    pending,
    refused,
    rule_violations,
    runtime_classes,
    unreadable,
    vclusters,
)
from kai_fleet.cli.doctor.checks.kai import (
    gpu_sharing,
    kai_parts,
    leftovers,
    pod_groups,
    queue_guard,
    queues,
    shards,
    webhooks,
)
from kai_fleet.cli.doctor.cluster_state import Snapshot
from kai_fleet.cli.doctor.finding import Finding


class Check(Protocol):
    """A module of this package."""

    NAME: str

    def check(self, look: Snapshot, /) -> Iterator[Finding]:
        """Everything that this check looked at, what is well included."""


CHECKS: Final[tuple[Check, ...]] = tuple(
    cast(Check, module)
    for module in (
        unreadable,
        nodes,
        runtime_classes,
        vclusters,
        held_gpus,
        isolation,
        helm_records,
        network_plugin,
        network_reach,
        monitoring,
        kai_parts,
        webhooks,
        leftovers,
        queues,
        queue_guard,
        shards,
        rule_violations,
        pending,
        refused,
        pod_groups,
        gpu_sharing,
    )
)


def examine(look: Snapshot) -> list[Finding]:
    """What all checks say, in their order, each cause once."""
    return merge_by_cause(finding for check in CHECKS for finding in check.check(look))
