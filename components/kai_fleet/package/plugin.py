"""The provider plugin `kai-fleet`: queue trees and functions, and every component."""

from __future__ import annotations

import asyncio
import functools
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

import pulumi
from pulumi.provider import ConstructResult, Provider
from pulumi.provider.server import ProviderServicer
from pulumi.runtime import reset_options
from pulumi.runtime.proto import provider_pb2

from kai_fleet.package import SCHEMA_FILE
from kai_fleet.provider import PACKAGE, PluginError, version
from kai_fleet.provider.plugin import QueuePlugin
from kai_fleet.provider.process import answering, engine_address, serve_provider

if TYPE_CHECKING:
    from kai_fleet.fleet.deployed_state import DeployedState
    from kai_fleet.package.request import Judge

# The group of entry points where a distribution says how it judges settings.
RULES: Final = "kai_fleet.rules"


class Plugin(QueuePlugin):
    """One process for all of the package."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, asyncio.Future[DeployedState]] = {}

    @answering
    def GetSchema(self, request: Any) -> Any:  # noqa: N802
        """The file that ships with the package."""
        return provider_pb2.GetSchemaResponse(schema=SCHEMA_FILE.read_text(encoding="utf-8"))

    @answering
    async def Construct(self, request: Any) -> Any:  # noqa: N802
        """Declare a component as this repository's own program does."""
        component = _Component(request, installed_judge(), await self._deployed(request))
        return await ProviderServicer(component, [], engine_address()).Construct(request, None)

    async def _deployed(self, request: Any) -> DeployedState:
        """What the stack runs now: read once in an update, however many components it has."""
        from kai_fleet.fleet.deployed_state import deployed_state

        monitor = request.monitorEndpoint
        if monitor not in self._states:
            reset_options(
                organization=request.organization or "organization",
                project=request.project,
                stack=request.stack,
                monitor_address=monitor,
                preview=request.dryRun,
            )
            self._states[monitor] = asyncio.ensure_future(deployed_state())
        return await asyncio.shield(self._states[monitor])


class _Component(Provider):
    """The SDK's server sets its runtime up for a request, and has this declare the component."""

    def __init__(self, request: Any, judge: Judge, deployed: DeployedState) -> None:
        super().__init__(version())
        self._request, self._judge, self._deployed = request, judge, deployed

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Any,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Declare it, of the inputs as they came: the SDK would have outputs in place of values."""
        # Not before one is wanted: a stack of this repository has its components without it.
        from kai_fleet.package.construct import construct
        from kai_fleet.package.request import ComponentRequest, read_inputs

        package, _, kind = resource_type.partition(":index:")
        if package != PACKAGE:
            raise PluginError(f"the plugin kai-fleet serves no component {resource_type}")
        values = read_inputs(self._request.inputs, self._request.inputDependencies)
        opts = options or pulumi.ResourceOptions()
        request = ComponentRequest(kind, name, values, opts, self._deployed, self._judge)
        component, state = construct(request)
        outputs = {key: value for key, value in state.items() if value is not None}
        return ConstructResult(component.urn, outputs)


@functools.cache
def installed_judge() -> Judge:
    """The rules that are installed beside this package. Raises PluginError if there are none.

    An entry point, because rules know components, and components know no rules.
    """
    for entry_point in metadata.entry_points(group=RULES):
        judge: Judge = entry_point.load()
        return judge
    raise PluginError(
        "the rules that judge a component are not installed beside kai-fleet; write:"
        " pip install kai-fleet-policies"
    )


def main() -> None:
    """Serve until the engine ends."""
    asyncio.run(serve_provider(Plugin()))


if __name__ == "__main__":
    main()
