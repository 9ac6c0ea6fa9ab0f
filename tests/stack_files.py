"""Stack files of any size, for tests and the benchmark."""

from typing import Any

UNLIMITED = {"quota": "unlimited"}
BASE: dict[str, Any] = {
    "kai-fleet:cluster": {"name": "bench", "context": "kai-fleet-sandbox"},
    "kai-fleet:gpu": {"provider": "none"},
}
VCLUSTER: dict[str, Any] = {
    "version": "v0.36.1",
    "kubernetesVersion": "v1.36.3",
    "access": {"type": "NodePort", "host": "127.0.0.1"},
}


def queue(gpus: float, **more: Any) -> dict[str, Any]:
    """A queue with that GPU quota, as a stack file has it."""
    return {"cpu": UNLIMITED, "memory": UNLIMITED, "gpu": {"quota": gpus}, **more}


def queue_tree(count: int, first: float = 1) -> dict[str, Any]:
    """About `count` queues in three levels, ten leaves to a parent; the first leaf has `first`."""
    groups = max(1, count // 11)
    tree: dict[str, Any] = {}
    for group in range(groups):
        leaves = {f"q{group}-{n}": queue(1) for n in range(10)}
        tree[f"g{group}"] = queue(20, children=leaves)
    tree["g0"]["children"]["q0-0"] = queue(first)
    return {"all": queue(20 * groups, children=tree)}


def team(pool: str, version: str, queues: int = 2) -> dict[str, Any]:
    """A team in virtual mode."""
    leaves = {f"leaf{n}": queue(0.1) for n in range(max(1, queues - 1))}
    return {
        "scheduler": {"mode": "virtual", "version": version},
        "nodePool": {"kai-fleet/pool": pool},
        "gpus": 2,
        "queues": {"default": queue(2, children=leaves)},
    }


def teams(count: int, version: str, queues: int = 2) -> dict[str, Any]:
    """Teams of `queues` queues, each with a pool of its own."""
    return {
        **BASE,
        "kai-fleet:vcluster": VCLUSTER,
        "kai-fleet:teams": {f"team{n}": team(f"bench-{n}", version, queues) for n in range(count)},
    }


def queue_object(name: str, resources: Any, parent: str | None = None) -> dict[str, Any]:
    """A Queue as its API has it."""
    spec = {"resources": resources} | ({"parentQueue": parent} if parent else {})
    kind = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}}
    return {**kind, "spec": spec}
