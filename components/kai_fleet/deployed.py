"""What the running stack has, as its last update left it, also one that failed half-way."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

import pulumi
from pulumi.runtime import invoke
from pulumi.runtime.settings import get_monitor

from kai_fleet.vcluster_stores import ChartStore, store_of

RELEASE: Final = "kubernetes:helm.sh/v3:Release"
COMMAND: Final = "command:local:Command"
NAMESPACE: Final = "kubernetes:core/v1:Namespace"
# Of a namespace that was there before the stack: what the stack writes onto it.
NAMESPACE_PATCH: Final = "kubernetes:core/v1:NamespacePatch"
POLICY: Final = "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy"
STACK: Final = "pulumi:pulumi:Stack"
PROVIDERS: Final = "pulumi:providers:"  # what the types of providers begin with
TEAM: Final = "kai-fleet:index:Team"
TEAM_NAMESPACE: Final = "kai-fleet:index:TeamNamespace"
KAI_SCHEDULER: Final = "kai-fleet:index:KaiScheduler"
VIRTUAL_CLUSTER: Final = "kai-fleet:index:VirtualCluster"
# Of the product's own provider: its package, its resource, and its functions.
PACKAGE: Final = "kai-fleet"
QUEUES: Final = "kai-fleet:index:Queues"
SECRET: Final = "kai-fleet:index:secret"
EXISTING: Final = "kai-fleet:index:existing"
# The engine's own functions: for a stack's outputs, which a StackReference calls too; and for its
# resources, as the last update left them, also one that failed half-way.
READ_OUTPUTS: Final = "pulumi:pulumi:readStackOutputs"
_READ_STATE: Final = "pulumi:pulumi:readStackResourceOutputs"


@dataclass(frozen=True)
class Deployed:
    """Chart versions and stores by release, `triggers` and what was `printed` by command, each by
    `named`, the URNs of all resources, and the stack's outputs, secrets in clear. Where the state
    is not `readable`, there may be more.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    stores: Mapping[str, ChartStore] = field(default_factory=dict)
    triggers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict, repr=False)
    urns: frozenset[str] = frozenset()
    readable: bool = True
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def teams(self) -> frozenset[str]:
        """The teams that are deployed, whether or not they are declared still."""
        return teams_of(self.urns)

    @property
    def granted(self) -> frozenset[str]:
        """The teams with a stack of their own whose namespaces are deployed."""
        return granted_of(self.urns)

    def output(self, name: str, team: str) -> Any:
        """What an output of the stack, one by team, had of a team; None where it had nothing."""
        by_team = self.outputs.get(name)
        return by_team.get(team) if isinstance(by_team, Mapping) else None

    def has(self, kind: str, name: str) -> bool:
        """Whether there is a resource of that type and name, wherever it stands."""
        return any(urn.endswith((f"${kind}::{name}", f"::{kind}::{name}")) for urn in self.urns)

    def waited(self, component: str, name: str) -> int | None:
        """How often a component waited anew for the same release; None where it never did."""
        triggers = self.triggers.get(named(component, f"{name}-ready"))
        return None if triggers is None else int([*triggers, 0, 0][1])

    def again(self, component: str, name: str) -> int:
        """The number that has to be among the triggers of a component's wait, beside its release's
        id: a release that was uninstalled by hand is made anew under the same id.
        """
        before = self.waited(component, name)
        gone = before is not None and named(component, f"{name}-release") not in self.versions
        return (before or 0) + gone


def full_name(stack: str) -> str:
    """`organization/project/stack`; a bare name is a stack of this project."""
    if "/" in stack:
        return stack
    return "/".join((pulumi.get_organization(), pulumi.get_project(), stack))


def teams_of(urns: Iterable[str]) -> frozenset[str]:
    """The teams among a stack's resources."""
    return frozenset(urn.rpartition("::")[2] for urn in urns if f"::{TEAM}::" in urn)


def granted_of(urns: Iterable[str]) -> frozenset[str]:
    """The teams with a stack of their own: their namespaces are below no team."""
    return frozenset(urn.rpartition("::")[2] for urn in urns if f"::{TEAM_NAMESPACE}::" in urn)


def team_of(urn: str, parents: Mapping[str, str]) -> str:
    """The team that a resource is a part of, by the parents' URNs; "" for the host's."""
    while urn:
        types, _, name = urn.rpartition("::")
        if types.rpartition("::")[2].rpartition("$")[2] in (TEAM, TEAM_NAMESPACE):
            return name
        urn = parents.get(urn, "")
    return ""


def named(component: str, name: str) -> str:
    """A resource by the type of the component above it and its own name.

    By its name alone it may be another: team `ml-kai` has a release, a wait and a namespace that
    are called as those of team `ml`'s KAI.
    """
    return f"{component}${name}"


_BY_RUN: Final[WeakKeyDictionary[Any, Deployed]] = WeakKeyDictionary()


def read() -> Deployed:
    """What the stack has; empty at its first update and in an offline plan. It is asked for once in
    a run, whoever asks.
    """
    run = get_monitor()
    if run is None:
        return Deployed(readable=False)
    if run not in _BY_RUN:
        _BY_RUN[run] = _read()
    return _BY_RUN[run]


def _read() -> Deployed:
    stack = {"stackName": full_name(pulumi.get_stack())}
    try:
        try:
            answer: Any = invoke(_READ_STATE, stack).value
        except Exception:  # once more: without the state, what others own looks free
            answer = invoke(_READ_STATE, stack).value
    except Exception as error:
        # Without it every change of a version replaces its release, which is always right.
        pulumi.log.debug(f"the stack's state cannot be read: {error}")
        return Deployed(readable=False)
    resources = (answer or {}).get("outputs") or {}
    return of_resources((urn, one["type"], one["outputs"]) for urn, one in resources.items())


def of_resources(resources: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Deployed:
    """A stack of these resources: URN, type and outputs of each."""
    urns: set[str] = set()
    of: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for urn, kind, outputs in resources:
        urns.add(urn)
        above, name = urn.split("::", 3)[2].rpartition("$")[0], urn.rpartition("::")[2]
        of[kind][named(above.rpartition("$")[2], name)] = outputs
    versions = {name: outputs.get("version") for name, outputs in of[RELEASE].items()}
    return Deployed(
        {name: version for name, version in versions.items() if isinstance(version, str)},
        {name: store_of(outputs.get("values")) for name, outputs in of[RELEASE].items()},
        {name: outputs.get("triggers") or [] for name, outputs in of[COMMAND].items()},
        {name: str(outputs.get("stdout") or "") for name, outputs in of[COMMAND].items()},
        frozenset(urns),
        outputs=next(iter(of[STACK].values()), {}),
    )
