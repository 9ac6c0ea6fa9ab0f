"""Node pools whose taints keep off the pods of their team."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kai_fleet.declaring.inputs import plain_spec
from kai_fleet.taints import Taint, closing_taint, toleration_to_write

if TYPE_CHECKING:
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs


def closed_pool(
    args: TeamNamespaceArgs, nodes: Sequence[Iterable[Taint]], path: str
) -> tuple[str, str] | None:
    """Cause and fix if taints keep a team's pods off all nodes of its pool, else None.

    None as well without nodes. The text names the first node's taint.

    Args:
        nodes: the taints of each node of the pool.
        path: the key of the stack file where the team's tolerations belong.
    """
    tolerations = [plain_spec(toleration) for toleration in args.get("tolerations", [])]
    taint = closing_taint(tolerations, nodes)
    if taint is None:
        return None
    return (
        f"each of its {len(nodes)} nodes has a taint ({taint['key']}) that the team does not"
        " tolerate: only pods that tolerate it themselves run there, its DNS not among them",
        f"write tolerations: [{toleration_to_write(taint)}] at {path}",
    )
