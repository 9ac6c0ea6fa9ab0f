"""A component of the package, declared as by the plugin for a request with plain inputs."""

from typing import Any

import pulumi

from kai_fleet.fleet.deployed_state import DeployedState
from kai_fleet.package.construct import construct
from kai_fleet.package.request import ComponentRequest, Result, read_inputs
from kai_fleet.provider.values import struct
from kai_fleet_policies.component_judge import judge


def constructed(
    kind: str, name: str, inputs: dict[str, Any], opts: pulumi.ResourceOptions
) -> Result:
    given = read_inputs(struct(inputs))
    return construct(ComponentRequest(kind, name, given, opts, DeployedState(), judge))
