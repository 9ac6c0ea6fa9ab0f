"""The state of the running stack after its last update, whether that succeeded or failed."""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pulumi
from pulumi.runtime import invoke
from pulumi.runtime.settings import get_monitor

from kai_fleet.names import COMMAND, RELEASE, STACK, TEAM, TEAM_NAMESPACE, VIRTUAL_CLUSTER
from kai_fleet.releases import VCLUSTER
from kai_fleet.releases.chart_stores import ChartStore, kubernetes_of, store_of
from kai_fleet.urns import read_urn
from kai_fleet.values import get

# Functions of the engine. The first reads the outputs of a stack, as StackReference does; the
# second the resources in the last checkpoint of a stack.
READ_OUTPUTS = "pulumi:pulumi:readStackOutputs"
_READ_STATE = "pulumi:pulumi:readStackResourceOutputs"
# A file backend moves the state away for a moment while the engine writes it.
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.2
Outputs = Mapping[str, Any]


@dataclass(frozen=True)
class Deployed:
    """The state of a stack. The keys of `versions`, `values` and `commands` are `resource_key`s.

    Args:
        versions: chart versions of Helm releases.
        values: chart values of Helm releases.
        commands: outputs of Commands.
        urns: URNs of all resources.
        readable: False if the state could not be read, so that all fields are empty although the
            stack may have resources.
        outputs: the stack's outputs, secrets in clear text.
    """

    versions: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, object] = field(default_factory=dict, repr=False)
    commands: Mapping[str, Outputs] = field(default_factory=dict, repr=False)
    urns: frozenset[str] = frozenset()
    readable: bool = True
    outputs: Outputs = field(default_factory=dict, repr=False)

    def output(self, name: str, team: str) -> Any:
        """A team's value in a stack output that maps teams to values; None if it is absent."""
        return get(self.outputs, name, team)

    @property
    def declared(self) -> set[str]:
        """URNs of what the program declared, but for the stack itself and providers."""
        return {urn for urn in self.urns if not read_urn(urn).type.startswith("pulumi:")}

    def has(self, kind: str, name: str) -> bool:
        """Whether the stack has a resource of this type and name, below any parent."""
        resources = map(read_urn, self.urns)
        return any(resource.type == kind and resource.name == name for resource in resources)

    def store_in(self, team: str) -> ChartStore | None:
        """The store of a team's vCluster; None if the stack has no release of it in this state."""
        release = resource_key(VIRTUAL_CLUSTER, f"{team}-release")
        return store_of(self.values[release]) if release in self.values else None

    def last_printed(self, team: str) -> Mapping[str, str]:
        """What the wait for a team's vCluster printed when it last succeeded.

        `server`, `uid`, and `kubernetes` if it was known. Empty if the wait never succeeded, or if
        the state is not `readable`. Raises ValueError if that is no JSON.
        """
        wait = self.commands.get(resource_key(VIRTUAL_CLUSTER, f"{team}-ready"), {})
        printed: dict[str, str] = json.loads(wait.get("stdout") or "{}")
        return printed

    def kubernetes_in(self, team: str) -> str | None:
        """The Kubernetes version of a team's vCluster; None if it is unknown.

        What the wait printed when it last succeeded is the version that ran. A failed update leaves
        values in the state that never ran, so they count only if the wait printed no version, as
        it did in earlier versions of the program. The default of the chart's version comes last,
        and only for a version of the release table. Raises as `last_printed` does.
        """
        release = resource_key(VIRTUAL_CLUSTER, f"{team}-release")
        asked_for = kubernetes_of(self.values.get(release))
        version = self.last_printed(team).get("kubernetes") or asked_for
        if version:
            return str(version)
        chart = VCLUSTER.get(f"v{self.versions.get(release)}")
        return chart.kubernetes if chart else None

    def last_wait_number(self, component: str, name: str) -> int | None:
        """The number in the triggers of a component's wait when it last succeeded.

        It is the second trigger, and 0 without one. None if the wait never succeeded, or if the
        state is not `readable`.

        Args:
            component: type of the component.
            name: what comes before `-ready` and `-release` in the names of its wait and its
                release; not always the component's name.
        """
        wait = self.commands.get(resource_key(component, f"{name}-ready"))
        if wait is None:
            return None
        triggers = wait.get("triggers") or []
        return int(triggers[1]) if len(triggers) > 1 else 0

    def next_wait_number(self, component: str, name: str) -> int:
        """The number for the triggers of a component's wait in this run.

        The arguments are those of `last_wait_number`. It is 0 if the wait never succeeded, or if
        the state is not `readable`. It rises by one if the release was uninstalled by hand: the
        new release has the id of the old one, so the id alone would not run the wait again.
        """
        last = self.last_wait_number(component, name)
        if last is None:
            return 0
        was_uninstalled = resource_key(component, f"{name}-release") not in self.versions
        return last + 1 if was_uninstalled else last


def full_name(stack: str) -> str:
    """The stack as `organization/project/stack`; a bare name is a stack of this project.

    A name with a slash is returned as it is.
    """
    if "/" in stack:
        return stack
    organization = pulumi.get_organization()
    project = pulumi.get_project()
    return f"{organization}/{project}/{stack}"


def names_of(urns: Iterable[str], kind: str) -> set[str]:
    """Names of the components of a type that have no parent but the stack."""
    return {urn.name for urn in map(read_urn, urns) if urn.types == (kind,)}


def team_of(urn: str, parents: Mapping[str, str]) -> str:
    """The team that a resource belongs to: the nearest of itself and its parents that is a Team or
    a TeamNamespace; "" if none is, so that it is the host's.

    Args:
        parents: the parent's URN of each resource, by the resource's URN.
    """
    while urn:
        resource = read_urn(urn)
        if resource.type in (TEAM, TEAM_NAMESPACE):
            return resource.name
        urn = parents.get(urn, "")
    return ""


def resource_key(component: str, name: str) -> str:
    """Key of a resource in Deployed: the type of its parent, "" without one, and its name.

    Names alone are ambiguous: release, wait and namespace of team `ml-kai` have the same names as
    those of team `ml`'s KAI.
    """
    return f"{component}${name}"


def read() -> Deployed:
    """The state of the running stack, read once in a run.

    Empty at the stack's first update and in an offline plan. Not `readable` if there is no engine,
    or if the engine does not give the state.
    """
    monitor = get_monitor()
    if monitor is None:
        return Deployed(readable=False)
    return _of_run(monitor)


@lru_cache(maxsize=1)
def _of_run(monitor: object) -> Deployed:
    """The state; the monitor is new in each run, so the cache keeps the state for one run."""
    answer = _read_state()
    if answer is None:
        # Without the state every new version replaces its release, which is slower but safe.
        return Deployed(readable=False)
    resources = answer.get("outputs") or {}
    return of_resources(
        (urn, resource["type"], resource["outputs"]) for urn, resource in resources.items()
    )


def _read_state() -> Outputs | None:
    """The engine's answer; None if all attempts failed, a moment after each other."""
    stack = {"stackName": full_name(pulumi.get_stack())}
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        try:
            return invoke(_READ_STATE, stack).value or {}
        except Exception as error:
            pulumi.log.debug(f"the stack's state cannot be read: {error}")
    return None


def of_resources(resources: Iterable[tuple[str, str, Outputs]]) -> Deployed:
    """The state from URN, type and outputs of each resource, in any order.

    Of releases only those with a version are in `versions`.
    """
    urns = set[str]()
    by_type = defaultdict[str, dict[str, Outputs]](dict)
    for text, kind, outputs in resources:
        urns.add(text)
        urn = read_urn(text)
        component = urn.above[-1] if urn.above else ""
        by_type[kind][resource_key(component, urn.name)] = outputs
    releases = by_type[RELEASE]
    return Deployed(
        versions={
            key: str(outputs["version"])
            for key, outputs in releases.items()
            if outputs.get("version")
        },
        values={key: outputs.get("values") for key, outputs in releases.items()},
        commands=by_type[COMMAND],
        urns=frozenset(urns),
        outputs=next(iter(by_type[STACK].values()), {}),
    )
