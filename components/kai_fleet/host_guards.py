"""HostGuards: the ValidatingAdmissionPolicies of a host, declared once for all teams."""

from typing import Final, NotRequired, TypedDict

import pulumi

from kai_fleet.argument_check import check
from kai_fleet.guards import policies
from kai_fleet.options import child_of

HOST_GUARDS: Final = "kai-fleet:index:HostGuards"


class HostGuardsArgs(TypedDict):
    """Arguments of HostGuards."""

    host_kai: NotRequired[bool]
    """The host has a KAI: guard its queues and priorities, too. Default: false."""


class HostGuards(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies, once for a whole cluster (Kubernetes 1.30 or newer).

    They apply in each namespace with a team's labels, to every user, with the bounds in its
    annotations. Where an expression fails or the namespace has no bounds, the object is denied.

    Raises:
        TypeError: `host_kai` is an Output.
    """

    ready: pulumi.Output[str]
    """Argument `guards` of each TeamNamespace: `declared`, known once the policies exist."""

    def __init__(
        self, name: str, args: HostGuardsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(HOST_GUARDS, name, None, opts)
        check(f"HostGuards {name}", HostGuardsArgs, args)
        host_kai = args.get("host_kai", False)
        host_policies, bindings = policies.of_host(beside_kai=host_kai)
        declared = policies.declare(name, host_policies, bindings, child_of(self, opts))
        # URNs are known in a preview, too.
        urns = pulumi.Output.all(*(each.urn for each in declared))
        self.ready = urns.apply(lambda _: "declared")
        self.register_outputs({"ready": self.ready})
