"""What people do first with a new team: take its kubeconfig, run a pod in one of its queues."""

import shlex
from collections.abc import Mapping
from typing import Any

import yaml

from kubectl_fleet.releases.keys import QUEUE_LABEL, SCHEDULER


def next_steps(platform: str, team: str, about: Mapping[str, Any], resource: str) -> str:
    """Commands to copy; `about` is the team's entry of the stack's output `teams`."""
    file = f"{team}.kubeconfig"
    queues = about.get("queues") or []
    queue = str(queues[0]) if queues else None
    pod = yaml.safe_dump(_first_pod(queue, resource if about.get("gpus") else ""), sort_keys=False)
    where = f" in queue {queue}" if queue else ""
    return (
        f"Next, for team {team}:\n"
        f"  .venv/bin/fleet team kubeconfig {team} --stack {platform} --output {file}\n"
        f"A first pod{where}:\n"
        f"kubectl --kubeconfig {file} apply -f - <<'EOF'\n{pod}EOF\n"
        f"{for_the_team(file)}"
    )


def for_the_team(file: str) -> str:
    """What whoever gets the kubeconfig looks at with it."""
    return (
        "Its queues, its GPUs, why a pod waits (for the team: docs/ml-engineers.md):\n"
        f"  .venv/bin/fleet my queues --kubeconfig {shlex.quote(file)}"
    )


def _first_pod(queue: str | None, resource: str) -> dict[str, Any]:
    """A pod that sleeps a while with one GPU, if `resource` names any, in a leaf queue of KAI's."""
    label = {"labels": {QUEUE_LABEL: queue}} if queue is not None else {}
    scheduler = {"schedulerName": SCHEDULER} if queue is not None else {}
    main: dict[str, Any] = {"name": "main", "image": "busybox:1.37", "command": ["sleep", "600"]}
    if resource:
        main["resources"] = {"limits": {resource: "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "first", "namespace": "default", **label},
        "spec": {"restartPolicy": "Never", **scheduler, "containers": [main]},
    }
