"""The host cluster of a team stack: made by the platform stack, used here."""

import pulumi

from kai_fleet.cluster.access import ClusterAccess
from kai_fleet.fleet.model import Fleet
from kai_fleet.state.deployed_state import full_name


class ReferencedPlatform(pulumi.ComponentResource):
    """A platform that another stack holds; for the team it is what `Platform` is elsewhere.

    Type, name and provider are those of `Platform`, so that a team's resources find the same
    provider in either stack, and moving them between stacks replaces nothing.
    """

    access: ClusterAccess
    ready: list[pulumi.Resource]
    guards: None  # they are the platform's
    transformations: list[pulumi.ResourceTransformation]

    def __init__(self, name: str, fleet: Fleet, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("kai-fleet:index:Platform", name, None, opts)
        cluster = fleet.cluster
        # The settings were read before; this shows in the stack what it depends on.
        pulumi.StackReference("platform", stack_name=full_name(fleet.platform))
        self.access = ClusterAccess(
            cluster.name,
            context=cluster.context,
            kubeconfig=cluster.kubeconfig.get_secret_value() if cluster.kubeconfig else None,
        )
        self.provider = self.access.provider(name, pulumi.ResourceOptions(parent=self))
        self.ready, self.transformations = [], []
        self.guards = None
        self.register_outputs({"cluster": cluster.name})
