"""The check that a team's queues in a shared QueueTree are as declared."""

from collections.abc import Sequence
from typing import Any

import pulumi
from pulumi import Input, Resource, ResourceOptions

from kai_fleet.names import QUEUE_CHECK


def check_queues(
    name: str,
    queues: Sequence[Input[str]],
    refusal: Input[str],
    opts: ResourceOptions,
) -> Resource:
    """Declare the check `name` that these queues, by name, of a shared tree are as declared.

    The update fails here, with `refusal`, unless that is empty. A preview does not.
    """
    properties: dict[str, Any] = {"queues": list(queues), "refusal": refusal}
    return pulumi.CustomResource(QUEUE_CHECK, name, properties, opts)
