"""Teams whose own cluster stops a run: what refused there, and the command that repairs it.

A tenant is administrator of its vCluster, so what is there may refuse whatever is declared in it.
It holds up that team alone.
"""

import re
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, Final

from pulumi import automation

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import MALFORMED
from kai_fleet.cluster.probes.wait import HOST_FAILED
from kai_fleet.cluster.tenant_kubeconfig import TenantKubeconfigError
from kai_fleet.deployed import team_of
from kai_fleet.names import COMMAND, RELEASE, STACK, TEAM, TEAM_NAMESPACE
from kai_fleet.releases.keys import KAI_NAMESPACE
from kai_fleet.settings.files.project import FLEET
from kai_fleet.urns import read_urn
from kai_fleet.wording import listed, plain
from kai_fleet_cli.recovery import failures, state
from kai_fleet_cli.recovery.state import Resource, clusters_of

_OBJECT: Final = re.compile(rf"{failures.NAME}/{failures.NAME}")
_LONGEST: Final = 300  # of the engine's own words
_SECONDS: Final = 10.0  # for all that a vCluster is asked
_NAMED: Final = 20  # objects in a command; the others are in that of the next run
_HOOKS: Final = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
# Of a namespace's conditions: what is left in it, such as `pods. has 1 resource instances`.
_REMAINING: Final = re.compile(r"([a-z0-9]+)\.([a-z0-9.-]*) has \d+ resource")
# Where the cluster cannot be asked, or answers what no Kubernetes does.
_NO_ANSWER: Final = (KubeError, TenantKubeconfigError, automation.errors.CommandError, *MALFORMED)


def by_team(
    errors: Mapping[str, str], parents: Mapping[str, str], resources: Mapping[str, Resource]
) -> dict[str, dict[str, str]]:
    """The errors of each team, by URN; none where something else failed, too, or the host's API.

    Errors of the stack itself do not count: it failed with its parts, or fails again without them.
    """
    found: dict[str, dict[str, str]] = {}
    for urn, message in errors.items():
        kind = read_urn(urn).type
        if urn and kind != STACK:
            resource = resources.get(urn, {})  # a Helm release may speak of its registry
            is_object = _on_host(resource) and resource.get("type") != RELEASE
            of_host = is_object and failures.of_api(message)
            # Only of a wait of ours: a tenant's API server chooses the words of its refusals.
            of_host |= kind == COMMAND and message.startswith(f"exit status {HOST_FAILED}:")
            found.setdefault("" if of_host else team_of(urn, parents), {})[urn] = message
    return {} if "" in found else found


def _on_host(resource: Resource) -> bool:
    """Whether it is in the host cluster, whoever it is for."""
    return str(resource.get("type")).startswith("kubernetes:") and not clusters_of(resource)


def without(teams: Mapping[str, Any]) -> list[str]:
    """The `--exclude` patterns of these teams; --exclude-dependents leaves out their parts, too."""
    return [f"**::{kind}::{team}" for team in sorted(teams) for kind in (TEAM, TEAM_NAMESPACE)]


def explain(
    lead: str,
    stack: automation.Stack,
    again: str,
    teams: Mapping[str, Mapping[str, str]],
    failed: Mapping[str, Resource],
) -> str:
    """A line for each team: what failed of it, why, and what repairs it.

    `teams` are their errors by URN, `failed` the resources whose step failed, `again` is the
    command that refreshes and updates.
    """
    names = listed([f"team {team}" for team in sorted(teams)], "and")
    known = {**failed, **state.exported(stack.workspace, stack.name).resources}
    lines = [
        f"team {team}: {_cause(stack, again, team, urn, message, known.get(urn, {}))}"
        for team, errors in sorted(teams.items())
        for urn, message in errors.items()
    ]
    return "\n".join([f"{lead} {names}", *dict.fromkeys(lines)])


def _cause(
    stack: automation.Stack, again: str, team: str, urn: str, message: str, resource: Resource
) -> str:
    inside = bool(clusters_of(resource))
    on_host = _on_host(resource)
    login = f"{FLEET} team kubeconfig {team} --stack {stack.name} --output {team}.kubeconfig"
    kubectl = f"kubectl --kubeconfig {team}.kubeconfig"
    inputs = resource.get("inputs") or {}
    fill = {
        "team": team,
        "again": again,
        "login": login,
        "kubectl": kubectl,
        "reach": f"{login} && {kubectl}" if inside else "kubectl",
        "give_up": f"{FLEET} team remove {team} --stack {stack.name}",
        "release": str(inputs.get("name")),
        "namespace": str(inputs.get("namespace")),
    }
    for row in failures.table()["team"]:
        found = None if row.inside and on_host else row.match(message.replace('\\"', '"'))
        if found is None:
            continue
        with suppress(*_NO_ANSWER):
            filled, command = fill | found, row.run
            if "hook" in found:
                config, of_kai = _webhook(state.kubeconfig(stack, team), found["hook"])
                filled["config"] = _object(config)
                command = row.run_kai if of_kai and row.run_kai else command
            if "{held}" in command:
                filled["held"] = _held(stack, team, inputs, inside, found["queues"])
            return row.sentence(filled, command)
    if on_host and (sentence := failures.of_stack(message, stack.name, again, {})):
        return sentence
    return (
        f"{read_urn(urn).name}: {plain(message, _LONGEST)}. Put that right, or give the"
        f" team up: {fill['give_up']}, then run the same command again"
    )


def _webhook(kubeconfig: str, hook: str) -> tuple[str, bool]:
    """Kind and name of the object that has a webhook, and whether KAI serves it."""
    with closing(Api.of_kubeconfig(kubeconfig, in_all=_SECONDS)) as api:
        for kind in _HOOKS:
            path = f"/apis/admissionregistration.k8s.io/v1/{kind}s"
            for item in (api.find(path) or {}).get("items", []):
                for each in item.get("webhooks") or []:
                    if each["name"] == hook:
                        service = each["clientConfig"].get("service") or {}
                        of_kai = service.get("namespace") == KAI_NAMESPACE
                        return f"{kind}/{item['metadata']['name']}", of_kai
    raise KeyError(hook)


def _held(
    stack: automation.Stack, team: str, inputs: Mapping[str, Any], inside: bool, queues: str
) -> str:
    """The objects that finalizers keep, as kubectl takes them: of a namespace, what is in it."""
    if queues:
        return " ".join(_object(f"queue/{name}") for name in queues.split(", "))
    kind, name = inputs["kind"], inputs["metadata"]["name"]
    if not (inside and kind == "Namespace"):
        return _object(f"{kind.lower()}/{name}")
    with closing(Api.of_kubeconfig(state.kubeconfig(stack, team), in_all=_SECONDS)) as api:
        space = api.get(f"/api/v1/namespaces/{name}")
        found = [f"namespace/{name}"] if _has_finalizer(space) else []
        for condition in (space.get("status") or {}).get("conditions") or []:
            for plural, group in _REMAINING.findall(str(condition.get("message"))):
                version = "api/v1"
                if group:
                    preferred = api.get(f"/apis/{group}")["preferredVersion"]
                    version = f"apis/{preferred['groupVersion']}"
                found += [
                    f"{plural}{'.' if group else ''}{group}/{item['metadata']['name']}"
                    for item in api.list(f"/{version}/namespaces/{name}/{plural}")
                    if _has_finalizer(item)
                ]
    return f"{' '.join(map(_object, found[:_NAMED] or ['']))} -n {name}"


def _has_finalizer(item: Mapping[str, Any]) -> bool:
    """Whether an object has a finalizer that is not Kubernetes' own."""
    finalizers = map(str, item["metadata"].get("finalizers") or [])
    return any("kubernetes.io/" not in name and "/" in name for name in finalizers)


def _object(name: str) -> str:
    """An object as kubectl names it. Raises KeyError for a name that Kubernetes would not take."""
    if not _OBJECT.fullmatch(name):
        raise KeyError(name)
    return name
