"""Removals that wait because a resource failed.

With --continue-on-error the engine (v3.274) deletes what is no longer declared even if a resource
that was skipped depends on it, and then refuses its own state. If the program fails it deletes
nothing.
"""

import pulumi
from pulumi.runtime import is_dry_run

from kai_fleet.one_run import REMOVALS_WAIT, restored_teams
from kai_fleet.ownership.deployed import Deployed


class DeclaredResources:
    """The resources that the program declares, from this object's creation on."""

    def __init__(self) -> None:
        self._resources: list[pulumi.Resource] = []
        pulumi.runtime.register_stack_transformation(self._note)

    def keep_others_if_one_fails(self, state: Deployed) -> None:
        """Fail the program at its end if a resource failed and `state` has others to delete.

        `state` is that of the last update; if it cannot be read, it may have others. Nothing
        happens in a preview, and while a restore leaves out what waits for its vCluster.
        """
        if not is_dry_run() and not any(restored_teams()):
            # The SDK waits for each Output after all registrations have ended.
            _: pulumi.Output[bool] = pulumi.Output.from_input(self._check(state))

    async def _check(self, state: Deployed) -> bool:
        """True. Raises pulumi.RunError as `keep_others_if_one_fails` says."""
        declared = {await resource.urn.future() for resource in self._resources}
        if state.readable and not state.declared - declared:
            return True
        for resource in self._resources:
            if not await _has_outputs(resource):
                raise pulumi.RunError(REMOVALS_WAIT)
        return True

    def _note(self, args: pulumi.ResourceTransformationArgs) -> None:
        """A transformation that changes nothing."""
        self._resources.append(args.resource)


async def _has_outputs(resource: pulumi.Resource) -> bool:
    """Whether all outputs of a resource are known; of one that failed or was skipped some are not.

    A component's depend on those of its children.
    """
    for value in vars(resource).values():
        if isinstance(value, pulumi.Output):
            is_known = await value.is_known()
            if not is_known:
                return False
    return True
