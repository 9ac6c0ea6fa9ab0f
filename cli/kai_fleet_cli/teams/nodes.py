"""Whether the nodes that a new team names are there."""

from collections.abc import Mapping
from pathlib import Path

from kai_fleet.kube.objects import in_pool
from kai_fleet.settings.files.project import update_command
from kai_fleet.values import value_at
from kai_fleet_cli.cluster_reader import ClusterReader, NoAnswerError, labels, ready
from kai_fleet_cli.display.terminal import say
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.teams.lookup import StackFile


def check_pool(file: StackFile, pool: Mapping[str, str]) -> None:
    """Raise UserError where the host answers and no node that is Ready has these labels.

    Without one the vCluster cannot start its DNS, and the update would wait in vain (V16).
    """
    context = value_at(file.raw, "cluster.context")
    if not pool or not isinstance(context, str):
        return
    try:
        own = for_stack(file.stack, validated=False).variables.get("KUBECONFIG")
        nodes = ClusterReader(context, Path(own) if own else None).nodes()
    except (UserError, NoAnswerError) as why:
        say(f"the cluster did not answer, so its nodes are not known: {why}")
        return
    if any(ready(node) and in_pool(labels(node), pool) for node in nodes):
        return
    text = " ".join(f"{key}={value}" for key, value in pool.items())
    raise UserError(
        f"no Ready node has {text}, and without one the vCluster cannot start. Write another"
        f" --pool, or label nodes first: kubectl label node <node> {text} --overwrite. Where nodes"
        f" come later, write --no-up, and run {update_command(file.stack)} then"
    )
