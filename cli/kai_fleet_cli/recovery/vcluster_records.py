"""Helm's records of the vClusters of a stack, before something else than an update acts on them.

Of an update's own steps `fleet-probe record` looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from kai_fleet.releases import helm_record
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.recovery.state import RELEASE, Operation, State, provider_of

_OF_VCLUSTER: Final = f":VirtualCluster${RELEASE}::"


def is_of_vcluster(urn: str) -> bool:
    """Whether it is the release of a vCluster."""
    return _OF_VCLUSTER in urn


def believe(now: State, say: Callable[[str], None], only: str | None = None) -> None:
    """Raises UserError where a record of a vCluster's release is not of its chart.

    `only` is a team. One that cannot be read stops nothing: Helm cannot read it either.
    """
    # A client of Kubernetes: slow to load.
    from kai_fleet_cli.recovery.object_reader import Cluster, Unanswered

    known, wrong = now.providers(), []
    for resource in now.resources:
        if not is_of_vcluster(resource["urn"]):
            continue
        namespace, name = Operation("updating", resource).address
        if only not in (None, name):
            continue
        try:
            with ExitStack() as clusters:
                cluster = Cluster(known[provider_of(resource)], clusters)
                found = cluster.forged(namespace, name)
        except (Unanswered, KeyError) as why:
            say(f"warning: Helm's record of release {name} was not looked at: {why}")
            continue
        if found:
            wrong.append(helm_record.sentence(found, name, namespace))
    if wrong:
        raise UserError(f"{'. '.join(wrong)}; then run the same command again. Nothing was done")
