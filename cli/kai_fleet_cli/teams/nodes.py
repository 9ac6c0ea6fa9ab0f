"""The nodes of a new team, looked at before its update begins to wait for them."""

from collections.abc import Mapping, Sequence
from typing import Any

from kai_fleet_cli import cluster_reader
from kai_fleet_cli.teams import questions, trial
from kai_fleet_cli.teams.lookup import PlatformFile
from kubectl_fleet.errors import UserError


def check_pool(
    platform: PlatformFile, pool: Mapping[str, str], nodes: Sequence[Mapping[str, Any]]
) -> None:
    """Raise UserError, with the pools that are free, where no Ready node has these labels.

    Without one a vCluster cannot start its DNS, and its update would wait in vain (V16).
    """
    labels = pool.items()
    if any(
        cluster_reader.ready(it) and labels <= cluster_reader.labels(it).items() for it in nodes
    ):
        return
    what = " and ".join(f"{key}={value}" for key, value in labels)
    free = ", ".join(map(str, questions.free_pools(platform, nodes)))
    raise UserError(
        f"no Ready node has {what}, and without one the vCluster cannot start;"
        f" {f'free are: {free}' if free else 'no labelled pool is free'}. Write another --pool, or"
        f" label nodes first: {trial.labelling([], pool)}. Where nodes come later, write --no-up,"
        f" and run make up STACK={platform.stack} then"
    )
