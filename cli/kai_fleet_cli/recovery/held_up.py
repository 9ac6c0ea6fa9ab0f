"""Teams whose own cluster stops a run: what refused there, and the command that repairs it.

A tenant is administrator of its vCluster, so what is there may refuse whatever is declared in it.
It holds up that team alone.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import psutil
from pulumi import automation

from kai_fleet.cluster.kube.objects import KubeObject, moment
from kai_fleet.cluster.probes.wait import HOST_FAILED
from kai_fleet.cluster.terminating import causes, live, sentence
from kai_fleet.deployed import team_of
from kai_fleet.names import COMMAND, RELEASE, STACK
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.settings.files.project import FLEET
from kai_fleet.urns import read_urn
from kai_fleet.vcluster_values import store_of
from kai_fleet.wording import ending, listed
from kai_fleet_cli.hosts import NO_ANSWER, cluster_of_stack
from kai_fleet_cli.recovery import failures, full_store, state
from kai_fleet_cli.recovery.state import Resource, clusters_of

_OBJECT: Final = re.compile(rf"{failures.NAME}/{failures.NAME}")
_LONGEST: Final = 300  # of the engine's own words
_HOOKS: Final = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
_GOING: Final = re.compile("is being deleted|being terminated")


def by_team(
    errors: Mapping[str, str], parents: Mapping[str, str], resources: Mapping[str, Resource]
) -> dict[str, dict[str, str]]:
    """The errors of each team, by URN; none where something else failed, too, or the host's API.

    Errors of the stack itself do not count: it failed with its parts, or fails again without them.
    """
    found: dict[str, dict[str, str]] = {}
    for urn, message in errors.items():
        kind = read_urn(urn).type
        if is_of_one(urn):
            resource = resources.get(urn, {})  # a Helm release may speak of its registry
            is_object = _on_host(resource) and resource.get("type") != RELEASE
            of_host = is_object and failures.of_api(message)
            # Only of a wait of ours: a tenant's API server chooses the words of its refusals.
            of_host |= kind == COMMAND and message.startswith(f"exit status {HOST_FAILED}:")
            found.setdefault("" if of_host else team_of(urn, parents), {})[urn] = message
    return {} if "" in found else found


def is_of_one(urn: str) -> bool:
    """Whether an error is a resource's own: not the engine's, nor the stack's."""
    return bool(urn) and read_urn(urn).type != STACK


def _on_host(resource: Resource) -> bool:
    """Whether it is in the host cluster, whoever it is for."""
    return str(resource.get("type")).startswith("kubernetes:") and not clusters_of(resource)


def beside(urns: Iterable[str], resources: Mapping[str, Resource]) -> set[str]:
    """These resources, and all that the state has in the same vClusters."""
    shared = {each for urn in urns for each in clusters_of(resources.get(urn, {}))}
    return {*urns} | {
        urn for urn, item in resources.items() if not shared.isdisjoint(clusters_of(item))
    }


@dataclass(frozen=True)
class _Error:
    """An error of a team's resource in a run; `known` are the resources of the stack by URN."""

    stack: automation.Stack
    again: str
    team: str
    urn: str
    message: str
    known: Mapping[str, Resource]
    refreshed: bool

    @property
    def resource(self) -> Resource:
        """What failed."""
        return self.known.get(self.urn, {})

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs of what failed."""
        return self.resource.get("inputs") or {}

    @property
    def inside(self) -> bool:
        """Whether it is in the team's vCluster."""
        return bool(clusters_of(self.resource))

    @property
    def is_namespace(self) -> bool:
        """Whether what failed is a namespace."""
        return self.inputs.get("kind") == "Namespace"

    @property
    def login(self) -> str:
        """The command that writes the kubeconfig of the vCluster."""
        name = self.stack.name
        return f"{FLEET} team kubeconfig {self.team} --stack {name} --output {self.team}.kubeconfig"

    @property
    def kubectl(self) -> str:
        """The kubectl for the vCluster, after `login`."""
        return f"kubectl --kubeconfig {self.team}.kubeconfig"

    def fill(self) -> dict[str, str]:
        """What every row may name."""
        there = (self.login, self.kubectl) if self.inside else ()
        own = {"team": self.team, "again": self.again}
        own |= {"login": self.login, "kubectl": self.kubectl}
        return own | failures.of_release(self.inputs, *there)

    def of_release(self, name: str) -> Resource:
        """The team's Helm release of that name in the state; empty where it has none."""
        releases = (item for item in self.known.values() if item.get("type") == RELEASE)
        named = (item for item in releases if read_urn(item["urn"]).name == name)
        return next(named, {})

    @property
    def made_kai(self) -> bool:
        """Whether this run made the team's KAI: made anew once more it would be the same."""
        created = moment(self.of_release(f"{self.team}-kai-release").get("created"))
        begun = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
        return created is not None and created >= begun


def explain(
    lead: str,
    stack: automation.Stack,
    again: str,
    teams: Mapping[str, Mapping[str, str]],
    failed: Mapping[str, Resource],
    *,
    refreshed: bool = False,
) -> str:
    """A line for each team: what failed of it, why, and what repairs it.

    `teams` are their errors by URN, `failed` the resources whose step failed, `again` is the
    command that refreshes and updates; `refreshed`: the run refreshed the state before.
    """
    names = listed([f"team {team}" for team in sorted(teams)], "and")
    known = {**failed, **state.exported(stack.workspace, stack.name).resources}
    lines = [
        f"team {team}: {_cause(_Error(stack, again, team, urn, message, known, refreshed))}"
        for team, errors in sorted(teams.items())
        for urn, message in errors.items()
    ]
    return "\n".join([f"{lead} {names}", *dict.fromkeys(lines)])


def _cause(error: _Error) -> str:
    on_host = _on_host(error.resource)
    for row in failures.table()["team"]:
        message = error.message.replace(f"\\{failures.QUOTE}", failures.QUOTE)
        found = None if row.inside and on_host else row.match(message)
        if found is None:
            continue
        if row.finds:
            with suppress(*NO_ANSWER):
                cause, command = _FINDS[row.finds](error)
                return failures.repaired(cause, command)
        with suppress(*NO_ANSWER):
            return _sentence(row, error, found)
    if on_host:
        release = error.inputs if error.resource.get("type") == RELEASE else {}
        if of_stack := failures.of_stack(
            error.message, error.stack.name, error.again, {}, release, refreshed=error.refreshed
        ):
            return of_stack
    name, words = read_urn(error.urn).name, ending(error.message, _LONGEST)
    return f"{name}: {words}. Put that right, then run the same command again"


def _sentence(row: failures.Failure, error: _Error, found: Mapping[str, str]) -> str:
    """Cause and repair of a row. Raises one of NO_ANSWER where its cluster is of no help."""
    filled, command = error.fill() | failures.with_object(found), row.run
    if "hook" in found:
        config, of_kai = _webhook(error, found["hook"])
        filled["config"] = _object(config)
        command = row.run_kai if of_kai and row.run_kai else command
    if "{held}" in command:
        filled["held"] = _held(error, found.get("queues", ""))
    if row.anew and "namespace kai-scheduler" in command and error.made_kai:
        cause = row.cause.format(**filled)
        return f"{cause}: {row.anew.format(**filled)}, then run the same command again"
    return row.sentence(filled, command, refreshed=error.refreshed)


def _store(error: _Error) -> tuple[str, str]:
    """Of a full store of a vCluster: cause and command."""
    values = (error.of_release(f"{error.team}-release").get("inputs") or {}).get("values")
    with closing(cluster_of_stack(error.stack)) as api:
        return full_store.repair(api, error.team, store_of(values), error.message)


def _held(error: _Error, queues: str) -> str:
    """The objects that finalizers keep, as kubectl takes them. Raises KeyError for a namespace."""
    if queues:
        return " ".join(_object(f"queue/{name}") for name in queues.split(", "))
    if error.is_namespace:
        raise KeyError("Namespace")
    kind, metadata = error.inputs["kind"].lower(), error.inputs["metadata"]
    name = _object(f"{kind}/{metadata['name']}")
    return f"{name} -n {metadata['namespace']}" if "namespace" in metadata else name


def _namespace(error: _Error) -> tuple[str, str]:
    """Of a namespace that does not go, or of what was to be made in one: what keeps it, and the
    command. Raises KeyError for everything else.
    """
    metadata = error.inputs["metadata"]
    name = metadata["name"] if error.is_namespace else metadata["namespace"]
    if not error.is_namespace and not _GOING.search(error.message):
        raise KeyError(name)
    with closing(cluster_of_stack(error.stack, error.team if error.inside else "")) as api:
        space = KubeObject(api.get(f"/api/v1/namespaces/{name}"))
        found = causes(space, live(api))
    if not space.is_being_deleted:
        return f"namespace {name} is there, and is not being deleted any more", ""
    kubectl = error.kubectl if error.inside else "kubectl"
    commands = [error.login] if error.inside and any(each.kubectl for each in found) else []
    commands += [f"{kubectl} {each.kubectl}" for each in found if each.kubectl]
    return sentence(space, found), " && ".join(commands)


def _release(error: _Error) -> tuple[str, str]:
    """Of a Helm release that is gone with its namespace: cause and command. Raises KeyError where
    the namespace is there.
    """
    name = error.inputs["namespace"]
    with closing(cluster_of_stack(error.stack, error.team if error.inside else "")) as api:
        if api.find(f"/api/v1/namespaces/{name}") is not None:
            raise KeyError(name)
    if error.refreshed:
        return f"somebody deleted namespace {name} while this ran. See who deletes it", ""
    return f"somebody deleted namespace {name}, and the state still has it", error.again


_FINDS: Final = {"store": _store, "namespace": _namespace, "release": _release}


def _webhook(error: _Error, hook: str) -> tuple[str, bool]:
    """Kind and name of the object that has a webhook, and whether KAI serves it."""
    with closing(cluster_of_stack(error.stack, error.team)) as api:
        for kind in _HOOKS:
            path = f"/apis/admissionregistration.k8s.io/v1/{kind}s"
            for item in (api.find(path) or {}).get("items", []):
                for each in item.get("webhooks") or []:
                    if each["name"] == hook:
                        service = each["clientConfig"].get("service") or {}
                        of_kai = service.get("namespace") == KAI_NAMESPACE
                        return f"{kind}/{item['metadata']['name']}", of_kai
    raise KeyError(hook)


def _object(name: str) -> str:
    """An object as kubectl names it. Raises KeyError for a name that Kubernetes would not take."""
    if not _OBJECT.fullmatch(name):
        raise KeyError(name)
    return name
