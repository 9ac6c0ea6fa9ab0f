"""Why a deleted namespace stays: what its conditions say, and what is left in it.

Kubernetes' namespace controller writes the conditions (`namespace_conditions.go`, v1.27 to v1.36)
within seconds if a deletion does not finish.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import AbsentError, KubeError
from kai_fleet.cluster.kube.objects import KubeObject, well_named
from kai_fleet.wording import listed, short_line
from kai_usage.times import seconds_since

# Reads the objects of an API group, a plural kind and a namespace ("" for the whole cluster). The
# core group is "".
Read = Callable[[str, str, str], Sequence[KubeObject]]
AGGREGATION = "apiregistration.k8s.io"
_DISCOVERY = "NamespaceDeletionDiscoveryFailure"
_CONTENT = "NamespaceDeletionContentFailure"
_REMAINING = "NamespaceContentRemaining"
_FINALIZERS = "NamespaceFinalizersRemaining"
# In _DISCOVERY: `external.metrics.k8s.io/v1beta1: stale GroupVersion discovery: …`
_GROUP = re.compile(r"([a-z0-9.-]+)/(v[a-z0-9]+): ")
# In _REMAINING: `pods. has 1 resource instances, widgets.example.com has 2 resource instances`
_RESOURCE = re.compile(r"([a-z0-9]+)\.([a-z0-9.-]*) has \d+ resource")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.:-]*[a-z0-9])?")
_MOST = 20  # names in a command, and kinds that are read
_MOST_QUOTED = 300  # characters
_PATIENCE_SECONDS = 30.0  # for the controller that removes a finalizer
_NO_FINALIZERS = '{"metadata":{"finalizers":null}}'
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@dataclass(frozen=True)
class Cause:
    """What keeps a namespace, and the arguments for kubectl that end it; "" if none do."""

    words: str
    kubectl: str = ""


def live(api: Api) -> Read:
    """A function that reads objects from an API server; no objects of a kind that does not exist.

    The function raises KubeError, also for a group that does not exist, and one of MALFORMED.
    """

    def read(group: str, plural: str, namespace: str) -> Sequence[KubeObject]:
        """Read the objects in the group's preferred version; `Read` says what the texts are."""
        version = "api/v1"
        if group:
            preferred = api.get(f"/apis/{group}")["preferredVersion"]
            version = f"apis/{preferred['groupVersion']}"
        scope = f"namespaces/{namespace}/" if namespace else ""
        try:
            items = api.list(f"/{version}/{scope}{plural}")
        except AbsentError:
            return ()
        return [KubeObject(item) for item in well_named(items)]

    return read


def causes(space: KubeObject, read: Read, now: datetime | None = None) -> list[Cause]:
    """What keeps a namespace that is being deleted, in the order in which to mend it.

    First silent API groups, then objects inside, then the namespace's own finalizers; if there is
    nothing of these, the condition's message about a failed deletion. Nothing for a namespace that
    is not being deleted. Kinds that cannot be read are left out. `now` is by default the time of
    the call. Raises one of MALFORMED.
    """
    if not space.is_being_deleted:
        return []
    now = now or datetime.now(UTC)
    known_causes = [
        *_silent_groups(space, read),
        *_kept_objects(space, read, now),
        *_kept_by_itself(space, now),
    ]
    message = _message(space, _CONTENT)
    if not known_causes and message:
        return [Cause(short_line(message, _MOST_QUOTED))]
    return known_causes


def sentence(space: KubeObject, known_causes: Sequence[Cause]) -> str:
    """One line about a namespace that is still being deleted, and its causes."""
    words = why(space, known_causes)
    if words:
        return f"namespace {space.name} does not go: {words}"
    return f"namespace {space.name} does not go yet"


def why(space: KubeObject, known_causes: Sequence[Cause]) -> str:
    """The words of causes; without causes, those of Kubernetes about what remains, or ""."""
    if known_causes:
        return "; ".join(cause.words for cause in known_causes)
    messages = [_message(space, condition) for condition in (_REMAINING, _FINALIZERS)]
    return short_line("; ".join(filter(None, messages)), _MOST_QUOTED)


def _message(space: KubeObject, condition: str) -> str:
    """The message of a condition that is True; "" otherwise."""
    if not space.is_true(condition):
        return ""
    return str(space.condition(condition).get("message") or "")


def _silent_groups(space: KubeObject, read: Read) -> Iterator[Cause]:
    """API groups that do not answer: Kubernetes deletes no namespace before all of them do.

    The silent APIServices that the condition names, else all silent ones, at most 20; without any,
    also if they cannot be read, the condition's message.
    """
    message = _message(space, _DISCOVERY)
    if not message:
        return
    names = {f"{version}.{group}" for group, version in _GROUP.findall(message)}
    services = _readable(read, AGGREGATION, "apiservices", "")
    silent = [service for service in services if is_silent(service)]
    named = [service for service in silent if service.name in names] or silent
    for service in named[:_MOST]:
        yield api_service_cause(service)
    if not named:
        yield Cause(short_line(message, _MOST_QUOTED))


def is_silent(item: KubeObject) -> bool:
    """Whether an APIService does not answer; one whose state is unknown counts as answering."""
    return item.condition("Available").get("status") == "False"


def api_service_cause(item: KubeObject) -> Cause:
    """The cause for an APIService that does not answer: its Service is gone, or silent."""
    service = item.spec.get("service") or {}
    name = short_line(f"{service.get('namespace')}/{service.get('name')}", _MOST_QUOTED)
    deletion = f"delete apiservice {item.name}"
    if item.condition("Available").get("reason") == "ServiceNotFound":
        return Cause(f"APIService {item.name} is of Service {name}, which is gone", deletion)
    return Cause(
        f"APIService {item.name} does not answer: see that Service {name} answers, or, if it is"
        f" gone for good, {deletion}"
    )


def _kept_objects(space: KubeObject, read: Read, now: datetime) -> Iterator[Cause]:
    """A cause for each kind with objects that foreign finalizers keep, in the condition's order.

    Before that of pods come the pods on nodes that do not answer, one for each node. At most 20
    kinds are read. An object counts from 30 seconds after its deletion time on, if its name may
    stand in a command.
    """
    message = _message(space, _REMAINING)
    for plural, group in _RESOURCE.findall(message)[:_MOST]:
        objects = _readable(read, group, plural, space.name)
        if (group, plural) == ("", "pods"):
            yield from _pods_on_silent_nodes(objects, read, now)
        names = [
            item.name
            for item in objects
            if has_finalizer(item) and _is_late(item, now) and _NAME.fullmatch(item.name)
        ]
        if names:
            resource = f"{plural}.{group}" if group else plural
            targets = " ".join(f"{resource}/{name}" for name in names[:_MOST])
            yield Cause(
                f"finalizers keep {resource} {listed(names, 'and')}",
                f"patch {targets} -n {space.name} --type merge -p '{_NO_FINALIZERS}'",
            )


def _pods_on_silent_nodes(pods: Sequence[KubeObject], read: Read, now: datetime) -> Iterator[Cause]:
    """A cause for each node that is not Ready and has pods whose deletion time is over."""
    pods_by_node: dict[str, list[str]] = {}
    for pod in pods:
        deletion = pod["metadata"].get("deletionTimestamp")
        if deletion is not None and seconds_since(deletion, now) >= 0:
            node_name = str(pod.spec.get("nodeName") or "")
            pods_by_node.setdefault(node_name, []).append(pod.name)
    if not pods_by_node:
        return
    nodes = {node.name: node for node in _readable(read, "", "nodes", "")}
    for node_name, names in pods_by_node.items():
        node = nodes.get(node_name)
        if node is None or node.is_true("Ready") or not _NAME.fullmatch(node_name):
            continue
        yield Cause(
            f"node {node_name} does not answer, and pods {listed(names, 'and')} are on it. Start"
            " it; if it is gone for good, take its pods off",
            f"taint node {node_name} {_OUT_OF_SERVICE}",
        )


def _is_late(item: KubeObject, now: datetime) -> bool:
    """Whether an object's finalizers should be removed by now.

    That is 30 seconds after its deletion time, which follows the grace period. False for an object
    that is not being deleted.
    """
    return seconds_since(item["metadata"].get("deletionTimestamp"), now) >= _PATIENCE_SECONDS


def _kept_by_itself(space: KubeObject, now: datetime) -> Iterator[Cause]:
    """A cause if the namespace itself has foreign finalizers that should be removed by now."""
    if has_finalizer(space) and _is_late(space, now):
        names = short_line(listed(space.finalizers, "and"), _MOST_QUOTED)
        yield Cause(
            f"finalizer {names} keeps the namespace itself",
            f"patch namespace/{space.name} --type merge -p '{_NO_FINALIZERS}'",
        )


def has_finalizer(item: KubeObject) -> bool:
    """Whether an object has a finalizer that Kubernetes does not remove itself.

    Kubernetes removes those without a domain, and those of `kubernetes.io` and domains below it, or
    of any other domain that ends with this.
    """
    return any("kubernetes.io/" not in name and "/" in name for name in item.finalizers)


def _readable(read: Read, group: str, plural: str, namespace: str) -> Sequence[KubeObject]:
    """The objects; none if they cannot be read. The condition names their kind all the same."""
    try:
        return read(group, plural, namespace)
    except KubeError:
        return ()
