"""Node pools whose taints keep off the pods of their team."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kai_fleet.declaring.inputs import plain_spec
from kai_fleet.taints import Taint, closing_taint, toleration_to_write

if TYPE_CHECKING:
    from kai_fleet.isolation.team_namespace import TeamNamespaceArgs


def closed_pool(
    args: "TeamNamespaceArgs", nodes: Sequence[Iterable[Taint]], path: str
) -> tuple[str, str] | None:
    """Cause and fix if taints keep a team's pods off all nodes of its pool, else None.

    None as well without nodes. Each node may have another such taint: the text names only that of
    the first node. The cause is a predicate of the nodes, the fix an imperative; it keeps what is
    tolerated already, because a team's list replaces the stack's.

    Args:
        args: read is `tolerations`, which has no Outputs. Tolerations that vCluster adds to all
            pods are not known: the caller leaves out a team that has some.
        nodes: the taints of each node of the pool, with `key` and `effect`, and maybe `value`.
        path: the key path of the team's section: the fix writes `tolerations` below it.

    Raises:
        KeyError: a toleration or a taint lacks a key, which settings and Kubernetes refuse.
    """
    tolerations = [plain_spec(toleration) for toleration in args.get("tolerations", [])]
    taint = closing_taint(tolerations, nodes)
    if taint is None:
        return None
    to_write = ", ".join(map(toleration_to_write, [*tolerations, taint]))
    return (
        f"each of its {len(nodes)} nodes has a taint ({taint['key']}) that the team does not"
        " tolerate: only pods that tolerate it themselves run there, its DNS not among them",
        f"write tolerations: [{to_write}] at {path}",
    )
