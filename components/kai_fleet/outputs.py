"""A stack's outputs: what people and `fleet` are shown, and what its team stacks read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime.config import is_config_secret

from kai_fleet.fleet.model import Fleet
from kai_fleet.host.platform_reading import OUTPUT
from kai_fleet.state.targeting import DeclaredRun

if TYPE_CHECKING:
    from kai_fleet.team import Team


def export(
    fleet: Fleet,
    run: DeclaredRun,
    teams: Mapping[str, Team],
    workloads: Mapping[str, Any],
) -> None:
    """Say what a stack has: the teams of this run, and what was said of those it leaves alone."""
    if fleet.facts is not None:
        facts = fleet.facts.output()
        # Chart values may have come as a secret; nothing else of it does.
        secret = is_config_secret("kai-fleet:vcluster")
        pulumi.export(OUTPUT, pulumi.Output.secret(facts) if secret else facts)
    pulumi.export("cluster", fleet.cluster.name)
    summaries = {name: team.summary for name, team in teams.items()}
    kubeconfigs = {name: team.vcluster.kubeconfig for name, team in teams.items()}
    pulumi.export("teams", {**run.summaries, **summaries})
    pulumi.export("kubeconfigs", {**run.kubeconfigs, **kubeconfigs})
    if said := {**run.workloads, **workloads}:
        pulumi.export("workloads", said)
