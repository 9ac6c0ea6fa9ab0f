"""What a stack runs now, and which of its teams a run declares anew."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke, invoke_async

from kai_fleet.fleet.chart_stores import ChartStore, store_of

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
COMMAND: Final = "command:local:Command"
POLICY: Final = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
NAMESPACE: Final = "kubernetes:core/v1:Namespace"
# Of a namespace that was there before the stack: what the stack writes onto it.
NAMESPACE_PATCH: Final = "kubernetes:core/v1:NamespacePatch"
TEAM: Final = "kai-fleet:index:Team"  # what moves with a team between stacks
TEAM_NAMESPACE: Final = "kai-fleet:index:TeamNamespace"  # what stays with the platform
KAI_SCHEDULER: Final = "kai-fleet:index:KaiScheduler"
VIRTUAL_CLUSTER: Final = "kai-fleet:index:VirtualCluster"
ACCESS: Final = "kai-fleet:index:TeamStackAccess"
HOST: Final = "host-team-stacks"  # a platform's one
# The end of each part's name, by type. Parts of two teams may have one name, but not one type as
# well: `a-bounds-binding` binds the bounds of team `a`, or the rights of team `a-bounds`.
PARTS: Final = {
    POLICY: "bounds",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding": "bounds-binding",
    "kubernetes:core/v1:ServiceAccount": "account",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole": "role",
    "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding": "binding",
}
STACK: Final = "pulumi:pulumi:Stack"
PROVIDERS: Final = "pulumi:providers:"  # what the types of providers begin with
# The engine's own function for a stack's outputs, which a StackReference calls too.
READ_OUTPUTS: Final = "pulumi:pulumi:readStackOutputs"
# The engine's own function for a stack's resources. It returns the state as the last update left
# it, also one that failed half-way, which a stack's outputs are not.
_READ_STATE: Final = "pulumi:pulumi:readStackResourceOutputs"


@dataclass(frozen=True)
class DeployedState:
    """What a stack's resources have: chart versions and stores of control planes by the Release,
    triggers and what was `printed` by the Command, and the annotations of namespaces, each by
    `named`; what policies of admission want, by their names; the URNs of all resources; and the
    stack's outputs, secrets in clear. Where the state is not `readable`, there may be more.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    policies: Mapping[str, Sequence[str]] = field(default_factory=dict)
    bounds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    urns: frozenset[str] = frozenset()
    readable: bool = True
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)
    stores: Mapping[str, ChartStore] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def teams(self) -> frozenset[str]:
        """The teams that are deployed, whether or not they are declared still."""
        return teams_of(self.urns)

    @property
    def grants(self) -> set[str]:
        """The teams that are granted a stack of their own."""
        return {team for urn in self.urns if (team := granted_to(urn))}

    def output(self, name: str) -> Mapping[str, Any]:
        """An output of the stack that is a mapping; empty where it has none of that name."""
        output = self.outputs.get(name)
        return output if isinstance(output, Mapping) else {}

    def has(self, kind: str, name: str) -> bool:
        """Whether there is a resource of that type and name, wherever it stands."""
        return any(urn.endswith((f"${kind}::{name}", f"::{kind}::{name}")) for urn in self.urns)

    def again(self, component: str, name: str) -> list[str]:
        """What has to be among the triggers of a component's wait besides its release's id.

        A release that was uninstalled by hand is made anew under the same id, which would not
        trigger the wait for it: each such time it gets another number.
        """
        before = self.triggers.get(named(component, f"{name}-ready"))
        number = int(before[1]) if before and len(before) > 1 else 0
        if before is not None and named(component, f"{name}-release") not in self.versions:
            number += 1
        return [str(number)] if number else []


def named(component: str, name: str) -> str:
    """A resource by the type of the component above it and its own name.

    By its name alone it may be another: team `ml-kai` has a release, a wait and a namespace that
    are called as those of team `ml`'s KAI.
    """
    return f"{component}${name}"


def full_name(stack: str) -> str:
    """`organization/project/stack`; a bare name is a stack of this project."""
    if "/" in stack:
        return stack
    return "/".join((pulumi.get_organization(), pulumi.get_project(), stack))


def teams_of(urns: Iterable[str]) -> frozenset[str]:
    """The teams among a stack's resources."""
    return frozenset(urn.rpartition("::")[2] for urn in urns if f"::{TEAM}::" in urn)


def granted_to(urn: str) -> str:
    """The team that a resource was granted to; "" for every resource outside of a grant."""
    kinds, name = urn.split("::", 3)[2:]
    above, _, kind = kinds.rpartition("$")
    if kind not in PARTS or above.rpartition("$")[2] != ACCESS:
        return ""
    first, last = f"{HOST}-", f"-{PARTS[kind]}"
    team = name.removeprefix(first).removesuffix(last)
    return team if name == f"{first}{team}{last}" else ""


def read_deployed_state() -> DeployedState:
    """What the running stack has; empty at its first update and in an offline plan."""
    arguments = {"stackName": full_name(pulumi.get_stack())}
    try:
        try:
            read: Any = invoke(_READ_STATE, arguments).value
        except Exception:  # once more: without the state, what others own looks free
            read = invoke(_READ_STATE, arguments).value
    except Exception as error:
        return _empty(error)
    return _state_of_answer(read)


async def deployed_state() -> DeployedState:
    """The same where other requests are served meanwhile."""
    arguments = {"stackName": full_name(pulumi.get_stack())}
    try:
        try:
            read: Any = await invoke_async(_READ_STATE, arguments)
        except Exception:
            read = await invoke_async(_READ_STATE, arguments)
    except Exception as error:
        return _empty(error)
    return _state_of_answer(read)


def _empty(error: Exception) -> DeployedState:
    """Without it every change of a version replaces its release, which is always right."""
    pulumi.log.debug(f"the stack's state cannot be read: {error}")
    return DeployedState(readable=False)


def _state_of_answer(read: Any) -> DeployedState:
    resources = (read or {}).get("outputs") or {}
    return deployed_state_of((urn, it["type"], it["outputs"]) for urn, it in resources.items())


def expressions(spec: Mapping[str, Any]) -> list[str]:
    """What a policy of admission wants: its validations, and the variables they are made of."""
    parts = ("variables", "validations")
    return [str(each.get("expression")) for part in parts for each in spec.get(part) or []]


def deployed_state_of(resources: Iterable[tuple[str, str, Mapping[str, Any]]]) -> DeployedState:
    """A stack of these resources: URN, type and outputs of each."""
    urns: set[str] = set()
    of: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    policies: dict[str, Sequence[str]] = {}
    for urn, kind, outputs in resources:
        urns.add(urn)
        above, name = urn.split("::", 3)[2].rpartition("$")[0], urn.rpartition("::")[2]
        of[kind][named(above.rpartition("$")[2], name)] = outputs
        if kind == POLICY:
            policies[name] = expressions(outputs.get("spec") or {})
    versions = {name: outputs.get("version") for name, outputs in of[RELEASE].items()}
    return DeployedState(
        versions={name: it for name, it in versions.items() if isinstance(it, str)},
        triggers={name: it.get("triggers") or [] for name, it in of[COMMAND].items()},
        printed={name: str(it.get("stdout") or "") for name, it in of[COMMAND].items()},
        policies=policies,
        bounds={
            name: (it.get("metadata") or {}).get("annotations") or {}
            for name, it in (*of[NAMESPACE].items(), *of[NAMESPACE_PATCH].items())
        },
        stores={name: store_of(it.get("values")) for name, it in of[RELEASE].items()},
        urns=frozenset(urns),
        outputs=next(iter(of[STACK].values()), {}),
    )


@dataclass(frozen=True)
class Targets:
    """What a command is about. `shared_grants`: also what all grants of team stacks share, since
    the first of them comes or the last one goes. `known`: where a team goes, the URNs of the state
    that the command read; the engine would remove what has come into it since. `left_out`: it is
    about all teams but these.
    """

    teams: frozenset[str]
    shared_grants: bool = False
    known: frozenset[str] | None = None
    left_out: bool = False

    def has(self, team: str) -> bool:
        """Whether it is about a team."""
        return (team in self.teams) is not self.left_out


@dataclass(frozen=True)
class DeclaredRun:
    """The teams to declare by name, the grants of those with stacks of their own, and the outputs
    of the teams that are left as they are. `whole`: everything of the stack is declared.
    """

    teams: tuple[str, ...]
    grants: tuple[str, ...] = ()
    summaries: Mapping[str, Any] = field(default_factory=dict)
    kubeconfigs: Mapping[str, pulumi.Output[str]] = field(default_factory=dict, repr=False)
    whole: bool = False


def declared(
    teams: Iterable[str],
    grants: Iterable[str],
    deployed: DeployedState,
    targets: Targets | None,
) -> DeclaredRun:
    """What a run declares of these teams and grants; `targets` None is everything.

    Raises pulumi.RunError where the state cannot be read, and where it has got what the command did
    not know of and would remove: a grant, where what all grants share goes with the last one, or
    anything, where a team goes. The engine holds the stack's lock by now: nothing comes after this.
    """
    if targets is None:
        return DeclaredRun(tuple(teams), tuple(grants), whole=True)
    if not deployed.urns:
        raise pulumi.RunError(
            "the stack's state cannot be read, so its outputs of the other teams are not known;"
            " run the same command again"
        )
    if targets.shared_grants and (new := deployed.grants - targets.teams):
        raise pulumi.RunError(
            f"another update granted team {min(new)} a stack meanwhile, so nothing was done; run"
            " the same command again"
        )
    if targets.known is not None and (late := deployed.urns - targets.known):
        raise pulumi.RunError(
            f"another update made {min(late)} meanwhile, so nothing was done; run the same command"
            " again"
        )
    return DeclaredRun(
        tuple(name for name in teams if targets.has(name)),
        tuple(name for name in grants if targets.has(name)),
        {n: it for n, it in deployed.output("teams").items() if not targets.has(n)},
        {
            n: pulumi.Output.secret(it)
            for n, it in deployed.output("kubeconfigs").items()
            if not targets.has(n)
        },
    )
