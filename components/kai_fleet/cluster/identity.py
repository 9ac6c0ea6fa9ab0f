"""Which vCluster it is: what is inside belongs to it, and to no other at the same address."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_command as command
from pulumi.runtime import invoke_output

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.provider import CLUSTER_UID
from kai_fleet.state.deployed_state import DeployedState


def cluster_identity(
    name: str, access: ClusterAccess, deployed: DeployedState, parent: pulumi.Resource
) -> pulumi.Output[str]:
    """The cluster's identifier, from a step that keeps it; `name` is that of its provider.

    The cluster is the UID of its namespace `kube-system`. Another UID replaces this step, the
    provider whose identifier it gives, and everything declared with that provider, old ones first.
    Give these `deleted_with` the provider: then nobody asks the API of a cluster that is gone.
    A cluster that does not answer now is taken for the one that it was.
    """
    step = f"{name}-identity"
    known = deployed.triggers.get(step)
    found: pulumi.Output[Any] = invoke_output(
        CLUSTER_UID, dict(access.reached()), pulumi.InvokeOptions(parent=parent)
    )

    def uid(answer: dict[str, Any]) -> str:
        if "uid" in answer:
            return str(answer["uid"])
        if known:
            return str(known[0])
        raise pulumi.RunError(f"the API of vCluster {name} does not answer: {answer['problem']}")

    before = deployed.clusters.get(name)
    now = pulumi.Output.unsecret(found.apply(uid))
    identifier = now.apply(lambda it: _identifier(it, known, before))
    kept = command.local.Command(
        step,
        create='printf %s "$CLUSTER"',
        environment={"CLUSTER": identifier},
        triggers=[now],
        opts=pulumi.ResourceOptions(parent=parent, delete_before_replace=True),
    )
    if before is not None and not known:
        # An earlier release's stack has no such step: what a new one prints is unknown to a
        # preview, which would have everything inside replaced.
        return pulumi.Output.from_input(before)
    stdout: pulumi.Output[str] = kept.stdout
    return stdout


def _identifier(uid: str, known: Any, before: str | None) -> str:
    """The identifier that the provider has, while it is the same cluster.

    Stacks of earlier releases name the cluster, which is kept: otherwise the first update by this
    release would replace everything inside.
    """
    if before is not None and (not known or known[0] == uid):
        return before
    return uid
