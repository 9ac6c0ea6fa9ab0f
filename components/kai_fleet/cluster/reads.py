"""What a run reads of a cluster by the project's own provider: a Secret, and its identity.

For a resource that is read, the engine writes its whole state twice in each run, though nothing
changed: with fifteen teams that was half of its work. A function of a provider costs nothing.
"""

from typing import Any

import pulumi
import pulumi_command as command
from pulumi.runtime import invoke_output

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.provider import CLUSTER_UID, SECRET
from kai_fleet.state.deployed_state import DeployedState


def secret_data(
    access: ClusterAccess,
    namespace: pulumi.Input[str],
    name: str,
    after: pulumi.Input[str],
    parent: pulumi.Resource,
    workload: str = "statefulset",
) -> pulumi.Output[dict[str, str]]:
    """The data of a Secret in base64, read anew in each run and kept out of the state.

    `workload` is what kubectl calls the control plane that writes it. It is read once `after` is
    known, and unknown until then, by the provider of the `parent`. A Secret that is not there, or
    may not be read, ends the run with a sentence.
    """
    read: pulumi.Output[Any] = invoke_output(
        SECRET,
        {"namespace": namespace, "name": name, "after": after, **access.reached()},
        pulumi.InvokeOptions(parent=parent),
    )

    def data(answer: dict[str, Any], namespace: str) -> dict[str, str]:
        if problem := answer.get("problem"):
            raise pulumi.RunError(
                f"Secret {name} of namespace {namespace} {problem}. Look with: kubectl -n"
                f" {namespace} get secrets,statefulsets; if somebody removed something by hand:"
                f" .venv/bin/fleet up --refresh --stack {pulumi.get_stack()}; if the Secret alone:"
                f" kubectl -n {namespace} rollout restart {workload} {name.removeprefix('vc-')}"
            )
        content: dict[str, str] = answer["data"]
        return content

    both = pulumi.Output.all(read, namespace)
    return pulumi.Output.secret(both.apply(lambda known: data(*known)))


def cluster_identity(
    name: str, access: ClusterAccess, deployed: DeployedState, parent: pulumi.Resource
) -> pulumi.Output[str]:
    """The cluster's identifier, from a step that keeps it; `name` is that of its provider.

    What is inside a vCluster belongs to it, and to no other at the same address. The identifier is
    the UID of its namespace `kube-system`. Another UID replaces this step, the provider whose
    identifier it gives, and everything declared with that provider, old ones first. Give these
    `deleted_with` the provider: then the API of a cluster that is gone is not called. A cluster
    that does not answer now is taken for the one that it was.
    """
    step = f"{name}-identity"
    known = deployed.triggers.get(step)
    read: pulumi.Output[Any] = invoke_output(
        CLUSTER_UID, dict(access.reached()), pulumi.InvokeOptions(parent=parent)
    )

    def uid(answer: dict[str, Any]) -> str:
        if "uid" in answer:
            return str(answer["uid"])
        if known:
            return str(known[0])
        raise pulumi.RunError(f"the API of vCluster {name} does not answer: {answer['problem']}")

    now = pulumi.Output.unsecret(read.apply(uid))
    stdout: pulumi.Output[str] = command.local.Command(
        step,
        create='printf %s "$CLUSTER"',
        environment={"CLUSTER": now},
        triggers=[now],
        opts=pulumi.ResourceOptions(parent=parent, delete_before_replace=True),
    ).stdout
    return stdout
