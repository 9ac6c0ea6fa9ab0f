"""The provider plugin `kai-fleet`: queue trees and functions as resources, and every component."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pulumi.provider.experimental import provider as engine
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.resource import Resource
from pulumi.runtime import rpc

from kai_fleet.provider import server
from kai_fleet.provider.errors import PluginError
from kai_fleet.provider.queue_plugin import QueuePlugin
from kai_fleet.provider.tokens import PACKAGE
from kai_fleet.provider.version import version

if TYPE_CHECKING:
    from kai_fleet.state.deployed_state import DeployedState


class Plugin(QueuePlugin):
    """One process for all of the package."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, asyncio.Future[DeployedState]] = {}

    async def get_schema(self, request: engine.GetSchemaRequest) -> engine.GetSchemaResponse:
        """The file that ships with the package."""
        from kai_fleet.package.schema import served

        return engine.GetSchemaResponse(json.dumps(served()))

    async def construct(self, request: engine.ConstructRequest) -> engine.ConstructResponse:
        """Declare a component as this repository's own program does."""
        # Not before one is asked for: a stack of this repository has its components without it.
        from kai_fleet.package.constructed import constructed

        package, _, kind = request.resource_type.partition(":index:")
        if package != PACKAGE:
            raise PluginError(f"the plugin kai-fleet serves no component {request.resource_type}")
        opts = server.options_of(request, server.asked())
        made, state = constructed(kind, request.name, request.inputs, opts, await self._state())
        urn: Any = await made.urn.future()
        return engine.ConstructResponse(urn, await _answered(state), {})

    async def _state(self) -> DeployedState:
        """What the stack runs now: read once in an update, however many components it has."""
        from kai_fleet.state.deployed_state import deployed_state

        monitor = server.asked().monitorEndpoint
        if monitor not in self._states:
            self._states[monitor] = asyncio.ensure_future(deployed_state())
        return await asyncio.shield(self._states[monitor])


async def _answered(state: Mapping[str, Any]) -> dict[str, PropertyValue]:
    """A component's outputs, each with the resources that it comes from."""
    known = {key: value for key, value in state.items() if value is not None}
    sources: dict[str, list[Resource]] = {}
    struct = await rpc.serialize_properties(known, sources)
    found = PropertyValue.unmarshal_map(struct)
    for key, resources in sources.items():
        urns = [urn for resource in resources if (urn := await resource.urn.future())]
        found[key] = found[key].with_dependencies(urns)
    return found


def main() -> None:
    """Serve until the engine ends."""
    server.main(Plugin(), version())


if __name__ == "__main__":
    main()
