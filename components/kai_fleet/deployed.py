"""The deployed state of the running stack, after its last update, complete or failed."""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pulumi
from pulumi.runtime import invoke
from pulumi.runtime.settings import get_monitor

from kai_fleet.names import COMMAND, RELEASE, STACK, TEAM, TEAM_NAMESPACE, VIRTUAL_CLUSTER
from kai_fleet.releases import VCLUSTER
from kai_fleet.urns import read_urn
from kai_fleet.vcluster_values import ChartStore, kubernetes_of, store_of

# Functions of the engine: the outputs of a stack, which StackReference calls, too; and the
# resources in the last checkpoint of a stack.
READ_OUTPUTS: Final = "pulumi:pulumi:readStackOutputs"
_READ_STATE: Final = "pulumi:pulumi:readStackResourceOutputs"
# A file backend moves the state away for a moment while the engine writes it.
_ATTEMPTS: Final = 5
_PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Deployed:
    """State of a stack: chart versions and stores of releases, the Kubernetes that their values
    name, `triggers` and stdout (`printed`) of commands, with keys as `named` makes them; all URNs;
    outputs, secrets in clear text. If it is not `readable`, the stack may have resources that are
    not here.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    stores: Mapping[str, ChartStore] = field(default_factory=dict)
    kubernetes: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    printed: Mapping[str, str] = field(default_factory=dict, repr=False)
    urns: frozenset[str] = frozenset()
    readable: bool = True
    outputs: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def output(self, name: str, team: str) -> Any:
        """A team's value in a stack output that is a mapping by team; None where it has none."""
        by_team = self.outputs.get(name)
        return by_team.get(team) if isinstance(by_team, Mapping) else None

    def has(self, kind: str, name: str) -> bool:
        """Whether a resource of that type and name exists, below any parent."""
        read = map(read_urn, self.urns)
        return any(urn.type == kind and urn.name == name for urn in read)

    def kubernetes_in(self, team: str) -> str | None:
        """The Kubernetes of a team's vCluster when it was last up; None where that is not known.

        A failed update leaves the values that it tried. The wait that follows has printed what ran
        when it last ended well; one of before this version of the program printed no Kubernetes.
        """
        printed = self.printed.get(named(VIRTUAL_CLUSTER, f"{team}-ready"))
        ran = json.loads(printed).get("kubernetes") if printed else None
        release = named(VIRTUAL_CLUSTER, f"{team}-release")
        of_chart = VCLUSTER.get(f"v{self.versions.get(release)}")
        default = of_chart.kubernetes if of_chart else None
        return ran or self.kubernetes.get(release) or default

    def waited(self, component: str, name: str) -> int | None:
        """The number in the triggers of a component's wait; None if it never ran."""
        triggers = self.triggers.get(named(component, f"{name}-ready"))
        return None if triggers is None else int([*triggers, 0, 0][1])

    def again(self, component: str, name: str) -> int:
        """The number for the triggers of a component's wait, beside its release's id: it grows if
        the release was uninstalled by hand, because that is created again with the same id.
        """
        before = self.waited(component, name)
        gone = before is not None and named(component, f"{name}-release") not in self.versions
        return (before or 0) + gone


def full_name(stack: str) -> str:
    """`organization/project/stack`; a bare name is a stack of this project."""
    if "/" in stack:
        return stack
    return "/".join((pulumi.get_organization(), pulumi.get_project(), stack))


def names_of(urns: Iterable[str], kind: str) -> set[str]:
    """Names of the components of a type among these URNs, without those in another component."""
    return {urn.name for urn in map(read_urn, urns) if urn.types == (kind,)}


def team_of(urn: str, parents: Mapping[str, str]) -> str:
    """The team that a resource belongs to, by its parents' URNs; "" for the host."""
    while urn:
        found = read_urn(urn)
        if found.type in (TEAM, TEAM_NAMESPACE):
            return found.name
        urn = parents.get(urn, "")
    return ""


def named(component: str, name: str) -> str:
    """Key of a resource: the type of its parent component and its name.

    Names alone are ambiguous: release, wait and namespace of team `ml-kai` have the same names as
    those of team `ml`'s KAI.
    """
    return f"{component}${name}"


def read() -> Deployed:
    """The state of the running stack; empty at its first update and in an offline plan. Read once
    per run.
    """
    run = get_monitor()
    return Deployed(readable=False) if run is None else _of_run(run)


@lru_cache(maxsize=1)
def _of_run(run: Any) -> Deployed:
    stack = {"stackName": full_name(pulumi.get_stack())}
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            answer: Any = invoke(_READ_STATE, stack).value
            break
        except Exception as error:
            # Without it every new version replaces its release, which is slower but safe.
            pulumi.log.debug(f"the stack's state cannot be read: {error}")
        if not attempts_left:
            return Deployed(readable=False)
        time.sleep(_PAUSE_SECONDS)
    resources = (answer or {}).get("outputs") or {}
    return of_resources((urn, item["type"], item["outputs"]) for urn, item in resources.items())


def of_resources(resources: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Deployed:
    """State from the URN, type and outputs of each resource."""
    urns: set[str] = set()
    by_type: dict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for urn, kind, outputs in resources:
        urns.add(urn)
        read = read_urn(urn)
        component = read.above[-1] if read.above else ""
        by_type[kind][named(component, read.name)] = outputs
    releases, commands = by_type[RELEASE].items(), by_type[COMMAND].items()
    return Deployed(
        {name: str(outputs["version"]) for name, outputs in releases if outputs.get("version")},
        {name: store_of(outputs.get("values")) for name, outputs in releases},
        {name: str(kubernetes_of(outputs.get("values")) or "") for name, outputs in releases},
        {name: outputs.get("triggers") or [] for name, outputs in commands},
        {name: str(outputs.get("stdout") or "") for name, outputs in commands},
        frozenset(urns),
        outputs=next(iter(by_type[STACK].values()), {}),
    )
