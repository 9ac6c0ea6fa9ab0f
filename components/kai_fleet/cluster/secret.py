"""A Secret of a cluster, read anew in each run and kept out of the state."""

from __future__ import annotations

from typing import Any

import pulumi
from pulumi.runtime import invoke_output

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.provider import SECRET


def secret_data(
    access: ClusterAccess,
    namespace: pulumi.Input[str],
    name: str,
    after: pulumi.Input[str],
    parent: pulumi.Resource,
) -> pulumi.Output[dict[str, str]]:
    """What a Secret holds, in base64; asked once `after` is known, unknown until then. The provider
    is that of the `parent`.

    By a function of the provider in `kai_fleet.provider`: for a resource that is read, the engine
    writes its whole state twice in each run, though nothing changed. With fifteen teams that was
    half of its work. A Secret that is not there, or may not be read, ends the run with a sentence.
    """
    found: pulumi.Output[Any] = invoke_output(
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
                f" kubectl -n {namespace} rollout restart statefulset {name.removeprefix('vc-')}"
            )
        held: dict[str, str] = answer["data"]
        return held

    asked = pulumi.Output.all(found, namespace)
    return pulumi.Output.secret(asked.apply(lambda known: data(*known)))
