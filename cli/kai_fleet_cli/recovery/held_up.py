"""Teams whose own cluster stopped a run: what refused there, and the command that repairs it.

A tenant is administrator of its vCluster, so what is there may refuse what is declared in it. That
stops the tenant's team alone.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psutil
from pulumi import automation

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import KubeError
from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes.wait import HOST_FAILED
from kai_fleet.cluster.terminating import causes, live, sentence
from kai_fleet.names import COMMAND, FLEET, RELEASE, STACK
from kai_fleet.ownership.deployed import team_of
from kai_fleet.releases.chart_stores import store_of
from kai_fleet.releases.charts import chart_in
from kai_fleet.urns import read_urn
from kai_fleet.values import get
from kai_fleet.wording import beginning_and_end, listed
from kai_fleet_cli.hosts import CLUSTER_ERRORS, cluster_of_stack
from kai_fleet_cli.recovery import failures, full_store, helm_record
from kai_fleet_cli.recovery.failures import repaired
from kai_fleet_cli.recovery.state import (
    Errors,
    Resource,
    Resources,
    clusters_of,
    urns_within,
)
from kai_usage.keys import KAI_NAMESPACE
from kai_usage.times import moment

_OBJECT = re.compile(rf"{failures.NAME}/{failures.NAME}")
_LONGEST = 300  # characters of the engine's own words
_WEBHOOK_KINDS = ("validatingwebhookconfiguration", "mutatingwebhookconfiguration")
_TERMINATING = re.compile("is being deleted|being terminated")


def by_team(
    errors: Errors,
    parents: Mapping[str, str],
    resources: Resources,
) -> Mapping[str, Errors]:
    """Errors grouped by team, each group by URN.

    Empty if anything outside a team, or the host's API server, failed as well. Errors of the stack
    itself and of the engine do not count: the stack fails with its resources.

    Args:
        errors: Errors by the URN of their resource.
        parents: The URN of each resource's parent, by URN.
        resources: The resources by URN.
    """
    teams: dict[str, dict[str, str]] = {}
    for urn, message in errors.items():
        if not is_of_resource(urn):
            continue
        if _is_of_host_api(urn, message, resources.get(urn, {})):
            return {}
        team = team_of(urn, parents)
        if not team:
            return {}
        teams.setdefault(team, {})[urn] = message
    return teams


def _is_of_host_api(urn: str, message: str, resource: Resource) -> bool:
    """Whether the host's API server failed, and not only for this resource.

    `resource` is empty if it is not known; then only the error of a wait can tell.
    """
    # The error of a Helm release may be about its registry.
    is_object = _is_on_host(resource) and resource.get("type") != RELEASE
    if is_object and failures.is_of_api(message):
        return True
    # Believe the words of our own waits only: a tenant's API server words its refusals as it likes.
    is_wait = read_urn(urn).type == COMMAND
    return is_wait and message.startswith(f"exit status {HOST_FAILED}:")


def is_of_resource(urn: str) -> bool:
    """Whether an error with this URN is a single resource's, not the engine's or the stack's."""
    return bool(urn) and read_urn(urn).type != STACK


def _is_on_host(resource: Resource) -> bool:
    """Whether a resource is an object or a release in the host cluster.

    False for a queue tree, a command, and a resource that is not known.
    """
    is_of_kubernetes = str(resource.get("type")).startswith("kubernetes:")
    return is_of_kubernetes and not clusters_of(resource)


def with_same_vclusters(urns: Iterable[str], resources: Resources) -> set[str]:
    """These URNs, and those of all resources in the same vClusters.

    A URN that `resources` lack is in the result alone: its vCluster is not known.
    """
    excluded = set(urns)
    clusters = set[str]()
    for urn in excluded:
        clusters |= clusters_of(resources.get(urn, {}))
    return excluded.union(urns_within(clusters, resources))


@dataclass(frozen=True)
class _Error:
    """An error of a team's resource in a run.

    Attributes:
        stack: The stack.
        run: The run.
        team: The team.
        urn: The URN of the resource.
        message: The error.
        resources: The resources of the stack by URN.
    """

    stack: automation.Stack
    run: failures.Run
    team: str
    urn: str
    message: str
    resources: Resources

    @property
    def resource(self) -> Resource:
        """The resource; empty if it is not known."""
        return self.resources.get(self.urn, {})

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The resource's inputs; empty if they are not known."""
        return self.resource.get("inputs") or {}

    @property
    def is_inside(self) -> bool:
        """Whether the resource is in the team's vCluster or deleted with it; False if it is not
        known.
        """
        return bool(clusters_of(self.resource))

    @property
    def is_namespace(self) -> bool:
        """Whether the resource is a namespace; False if it is not known."""
        return self.inputs.get("kind") == "Namespace"

    @property
    def login(self) -> str:
        """The command that writes the vCluster's kubeconfig."""
        name = self.stack.name
        return f"{FLEET} team kubeconfig {self.team} --stack {name} --output {self.team}.kubeconfig"

    @property
    def vcluster_kubectl(self) -> str:
        """The kubectl for the vCluster, after `login`."""
        return f"kubectl --kubeconfig {self.team}.kubeconfig"

    def open_cluster(self) -> Api:
        """The API server of the cluster that has the resource; the caller closes it.

        Raises one of CLUSTER_ERRORS.
        """
        return cluster_of_stack(self.stack, self.team if self.is_inside else "")

    def fields(self) -> dict[str, str]:
        """The fields that every row's template may name.

        `login` and `kubectl` are for the team's vCluster, `reach` and `there` for the cluster that
        has the resource.
        """
        fields = {
            "team": self.team,
            "again": self.run.resume_command,
            "login": self.login,
            "kubectl": self.vcluster_kubectl,
        }
        if self.is_inside:
            return fields | failures.release_fields(self.inputs, self.login, self.vcluster_kubectl)
        return fields | failures.release_fields(self.inputs)

    def release(self, name: str) -> Resource:
        """The Helm release with this resource name; empty if the state has none."""
        for resource in self.resources.values():
            is_release = resource.get("type") == RELEASE
            if is_release and read_urn(resource["urn"]).name == name:
                return resource
        return {}

    @property
    def created_kai(self) -> bool:
        """Whether this run created the team's KAI, so that creating it once more is of no use.

        The state's time stamp of its release is not before the start of this process. False
        without a release or a time stamp.
        """
        created = moment(self.release(f"{self.team}-kai-release").get("created"))
        started = datetime.fromtimestamp(psutil.Process().create_time(), UTC)
        return created is not None and created >= started


def named(teams: Iterable[str]) -> str:
    """Teams, as messages name them: `team ml and team nlp`."""
    return listed([f"team {team}" for team in sorted(teams)], "and")


def explain(
    lead: str,
    stack: automation.Stack,
    run: failures.Run,
    teams: Mapping[str, Errors],
    resources: Resources,
) -> str:
    """The lead with the teams' names, and a line for each error: team, cause and repair.

    Equal lines are there once.

    Args:
        lead: The words before the names of the teams, on the first line.
        stack: The stack.
        run: The run.
        teams: The errors of each team.
        resources: The resources of the stack by URN.
    """
    lines = [f"{lead} {named(teams)}"]
    for team, errors in sorted(teams.items()):
        for urn, message in errors.items():
            error = _Error(stack, run, team, urn, message, resources)
            line = f"team {team}: {_cause_and_repair(error)}"
            if line not in lines:
                lines.append(line)
    return "\n".join(lines)


def _cause_and_repair(error: _Error) -> str:
    """Cause and repair by the first row about teams that matches.

    A row with `inside` is not for a resource that is known to be on the host. A row with `finds`
    reads the cluster. If that raises one of CLUSTER_ERRORS, the row's own texts count; if they
    raise one, too, the next row counts. Without any, cause and repair are those of a row about
    whole runs if the resource is on the host, else the engine's words, of at most 300 characters
    and without control characters.
    """
    is_on_host = _is_on_host(error.resource)
    message = error.message.replace(f"\\{failures.QUOTE}", failures.QUOTE)
    for row in failures.table()[failures.Section.TEAM]:
        if row.inside and is_on_host:
            continue
        groups = row.match(message)
        if groups is None:
            continue
        if row.finds:
            with suppress(*CLUSTER_ERRORS):
                return _FINDS[row.finds](error)
        with suppress(*CLUSTER_ERRORS):
            return _row_sentence(row, error, groups)
    if is_on_host:
        release = error.inputs if error.resource.get("type") == RELEASE else {}
        of_run = failures.cause_and_repair(error.message, error.run, release)
        if of_run:
            return of_run
    name = read_urn(error.urn).name
    words = beginning_and_end(error.message, _LONGEST)
    return f"{name}: {words}. Put that right, then run the same command again"


def _row_sentence(
    row: failures.Failure,
    error: _Error,
    groups: Mapping[str, str],
) -> str:
    """Cause and repair of a row; `groups` are those of its match.

    Raises one of CLUSTER_ERRORS if the cluster does not have what the row names, or does not
    answer.
    """
    fields = error.fields() | failures.with_object(groups)
    command = row.run
    if "hook" in groups:
        configuration, is_of_kai = _webhook(error, groups["hook"])
        fields["config"] = _safe_object(configuration)
        if is_of_kai and row.run_kai:
            command = row.run_kai
    if "{held}" in command:
        fields["held"] = _held_objects(error, groups.get("queues", ""))
    creates_kai = "namespace kai-scheduler" in command
    if row.anew and creates_kai and error.created_kai:
        cause = row.cause.format(**fields)
        return f"{cause}: {row.text(row.anew, fields)}, then run the same command again"
    return row.sentence(fields, command, refreshed=error.run.refreshed)


def _held_objects(error: _Error, queues: str) -> str:
    """The objects that finalizers keep, as kubectl takes them: `queues` (names with ", " between)
    or, if that is "", the resource.

    Raises KeyError for a namespace, for a name that Kubernetes would not take, and for inputs
    without a kind, `metadata` or a name.
    """
    if queues:
        return " ".join(_safe_object(f"queue/{name}") for name in queues.split(", "))
    if error.is_namespace:
        raise KeyError("Namespace")
    kind = error.inputs["kind"].lower()
    metadata = error.inputs["metadata"]
    name = _safe_object(f"{kind}/{metadata['name']}")
    return f"{name} -n {metadata['namespace']}" if "namespace" in metadata else name


def _find_store(error: _Error) -> str:
    """Cause and repair of a full store of a vCluster, by what the host has now.

    If the state has no release of the vCluster, the store counts as embedded. Raises one of
    CLUSTER_ERRORS.
    """
    store = store_of(get(error.release(f"{error.team}-release"), "inputs", "values"))
    with closing(cluster_of_stack(error.stack)) as api:
        return repaired(*full_store.repair(api, error.team, store, error.message))


def _find_namespace(error: _Error) -> str:
    """Cause and repair of a namespace that is not deleted: the resource itself, or the namespace in
    which it is to be created.

    No command if nothing that keeps the namespace can be ended by one. Raises KeyError if the error
    is about something else, or another of CLUSTER_ERRORS: AbsentError if the namespace is gone.
    """
    metadata = error.inputs["metadata"]
    if error.is_namespace:
        name = metadata["name"]
    else:
        name = metadata["namespace"]
        if not _TERMINATING.search(error.message):
            raise KeyError(name)
    with closing(error.open_cluster()) as api:
        namespace = KubeObject(api.get(f"/api/v1/namespaces/{name}"))
        reasons = causes(namespace, live(api))
    if not namespace.is_being_deleted:
        return repaired(f"namespace {name} is there, and is not being deleted any more")
    kubectl = error.vcluster_kubectl if error.is_inside else "kubectl"
    commands = [f"{kubectl} {cause.kubectl}" for cause in reasons if cause.kubectl]
    if commands and error.is_inside:
        commands.insert(0, error.login)
    return repaired(sentence(namespace, reasons), " && ".join(commands))


def _find_release(error: _Error) -> str:
    """Cause and repair of a Helm release that was deleted with its namespace.

    Raises KeyError if the namespace is there or the inputs name none, or another of CLUSTER_ERRORS.
    """
    name = error.inputs["namespace"]
    with closing(error.open_cluster()) as api:
        if api.find(f"/api/v1/namespaces/{name}") is not None:
            raise KeyError(name)
    if error.run.refreshed:
        return repaired(f"somebody deleted namespace {name} while this ran. See who deletes it")
    cause = f"somebody deleted namespace {name}, and the state still has it"
    return repaired(cause, error.run.resume_command)


def _find_record(error: _Error) -> str:
    """Cause and repair of a Helm release that has our name and another chart: somebody else's.

    No command repairs it. If its records cannot be read, as when the cluster does not answer or has
    no usable kubeconfig, the cause says so. Raises KeyError if the chart is ours, or if there is no
    record; or CommandError, or another of MALFORMED than ValueError.
    """
    release = error.inputs["name"]
    namespace = error.inputs["namespace"]
    chart = chart_in(error.inputs["chart"]).name
    there = f"Helm release {release} of namespace {namespace} is there already"
    try:
        with closing(error.open_cluster()) as api:
            charts = helm_record.charts_of(api, release, namespace)
    except (KubeError, ValueError) as problem:
        return repaired(f"{there}, and its record cannot be read: {problem}")
    if charts <= {chart}:
        raise KeyError(release)
    return repaired(
        f"{there}, and this stack did not make it: it is of chart {listed(sorted(charts), 'and')}."
        " Leave it to its owner, and give the team another name, or have its owner uninstall it"
    )


_FINDS = {
    "store": _find_store,
    "namespace": _find_namespace,
    "release": _find_release,
    "record": _find_record,
}


def _webhook(error: _Error, name: str) -> tuple[str, bool]:
    """The first object that has the vCluster's webhook of that name, as `kind/name`, and whether
    KAI serves the webhook. Validating webhooks are before mutating ones.

    The name is the tenant's: `_safe_object` checks it for a command. Raises KeyError if there is no
    such webhook, or another of CLUSTER_ERRORS.
    """
    with closing(cluster_of_stack(error.stack, error.team)) as api:
        for kind in _WEBHOOK_KINDS:
            answer = api.find(f"/apis/admissionregistration.k8s.io/v1/{kind}s") or {}
            for configuration in answer.get("items", []):
                for webhook in configuration.get("webhooks") or []:
                    if webhook["name"] == name:
                        service = webhook["clientConfig"].get("service") or {}
                        is_of_kai = service.get("namespace") == KAI_NAMESPACE
                        return f"{kind}/{configuration['metadata']['name']}", is_of_kai
    raise KeyError(name)


def _safe_object(name: str) -> str:
    """`kind/name` for a command, as given. Raises KeyError for one that Kubernetes would not take:
    it could contain more commands.
    """
    if not _OBJECT.fullmatch(name):
        raise KeyError(name)
    return name
