"""A stack's past as its state's file has it, for a command that has read that file anyway.

The engine hands over every output of every resource, a quarter of a second beside nineteen other
teams; of the file the program waits for nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

import pulumi

from components.past import STACK, Past, own_outputs, past_of
from fleet.state_secrets import has_secrets

_KUBECONFIGS: Final = "kubeconfigs"
# What the program looks at in the outputs of a release, of a wait and of the stack.
_IN_CLEAR: Final = ("version", "triggers", "teams", "workloads")


def past_at_hand(resources: Iterable[Mapping[str, Any]]) -> Past | None:
    """The past of which these are the resources; inside a run of the program.

    The kubeconfigs, which a state has encrypted, are what the engine is still asked for. None where
    more of what the program needs is a secret.
    """
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    for each in resources:
        if each.get("delete"):
            continue  # the engine does not tell of what is on its way out
        outputs = each.get("outputs") or {}
        if has_secrets([outputs.get(key) for key in _IN_CLEAR]):
            return None
        if each["type"] == STACK:
            kept = outputs.get(_KUBECONFIGS) or {}
            outputs = {**outputs, _KUBECONFIGS: _said_by_the_engine(kept)}
        found.append((str(each["urn"]), str(each["type"]), outputs))
    return past_of(found)


def _said_by_the_engine(kept: Mapping[str, Any]) -> Mapping[str, pulumi.Output[str]]:
    coming: Awaitable[Any] = _kubeconfigs()
    told: pulumi.Output[Any] = pulumi.Output.from_input(coming)
    return {name: told.apply(itemgetter(name)) for name in kept}


async def _kubeconfigs() -> Any:
    return (await own_outputs())[_KUBECONFIGS]
