"""HostGuards: the ValidatingAdmissionPolicies of a host, declared once for all teams."""

from typing import TypedDict

from pulumi import ComponentResource, Output, Resource, ResourceOptions

from kai_fleet.declaring.argument_check import check
from kai_fleet.declaring.options import child_options, component_options
from kai_fleet.isolation import policies
from kai_fleet.names import POLICY
from kai_fleet.ownership.owners import HostObject, refuse_others, require

READY = "declared"
_PATH = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/"
_INSTEAD = (
    "Guards are once on a host, for the teams of every program: write use_existing: true, and give"
    " its ready to the TeamNamespaces. If this stack made them in an update that was cut off, or"
    " nobody has them any more, write use_existing: false"
)


class HostGuardsArgs(TypedDict, total=False):
    """Arguments of HostGuards."""

    host_kai: bool
    """The host has a KAI: guard its queues and priority classes, too. Default: false."""
    use_existing: bool
    """true: another program has declared the guards; declare none, but require that they are there.
    false: declare them, and take over those that are there. Default: declare them, and refuse if
    they are there already.
    """


class HostGuards(ComponentResource):
    """ValidatingAdmissionPolicies, once for a cluster (Kubernetes 1.30 or newer).

    They apply in each namespace with a team's labels, to all users, with the bounds in the
    namespace's annotations. If an expression fails or the namespace has no bounds, the object is
    denied.

    Raises:
        pulumi.RunError: an argument is not one that it takes; another program's guards are there,
            or with `use_existing` are not; or, in an update, the host cannot be read.
    """

    ready: Output[str]
    """Argument `guards` of each TeamNamespace: `declared`, known once the policies exist."""

    def __init__(
        self, name: str, args: HostGuardsArgs, opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kai-fleet:index:HostGuards", name, None, component_options(opts))
        title = f"HostGuards {name}"
        check(title, HostGuardsArgs, args)
        host_policies, bindings = policies.host_policies(beside_kai=args.get("host_kai", False))
        objects = [
            HostObject(POLICY, f"{name}-{guard}", f"{_PATH}{policies.policy_name(guard)}")
            for guard in host_policies
        ]
        declared = list[Resource]()
        if args.get("use_existing"):
            require(self, title, objects, "Drop use_existing, or run that program first")
        else:
            if "use_existing" not in args:
                refuse_others(self, title, objects, _INSTEAD, together=True)
            declared = policies.declare(name, host_policies, bindings, child_options(self, opts))
        # URNs are known in a preview, too.
        self.ready = Output.all(*(resource.urn for resource in declared)).apply(lambda _: READY)
        self.register_outputs({"ready": self.ready})
