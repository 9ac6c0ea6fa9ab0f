"""Why a namespace that is deleted does not go: its conditions, and what is left in it.

Kubernetes' namespace controller writes the conditions (`namespace_conditions.go`, v1.27 to v1.36)
within seconds of a deletion that does not end.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import AbsentError, KubeError
from kai_fleet.cluster.kube.objects import KubeObject, seconds_since, well_named
from kai_fleet.wording import listed, plain

# Group, plural and namespace ("" for objects of the whole cluster) to objects.
Read = Callable[[str, str, str], Sequence[KubeObject]]
AGGREGATION: Final = "apiregistration.k8s.io"
_DISCOVERY: Final = "NamespaceDeletionDiscoveryFailure"
_CONTENT: Final = "NamespaceDeletionContentFailure"
_REMAINING: Final = "NamespaceContentRemaining"
_FINALIZERS: Final = "NamespaceFinalizersRemaining"  # their names
# Of discovery: `external.metrics.k8s.io/v1beta1: stale GroupVersion discovery: …`
_GROUP: Final = re.compile(r"([a-z0-9.-]+)/(v[a-z0-9]+): ")
# Of what remains: `pods. has 1 resource instances, widgets.example.com has 2 resource instances`
_KIND: Final = re.compile(r"([a-z0-9]+)\.([a-z0-9.-]*) has \d+ resource")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9.:-]*[a-z0-9])?")
_MOST: Final = 20  # names in a command, and kinds that are looked at
_QUOTED: Final = 300
_PATIENCE_SECONDS: Final = 30.0
_NONE: Final = '{"metadata":{"finalizers":null}}'


@dataclass(frozen=True)
class Cause:
    """What keeps a namespace: words, and the arguments of kubectl that end it; "" where none do."""

    words: str
    kubectl: str = ""


def live(api: Api) -> Read:
    """Read what is asked for from an API server. Raises KubeError."""

    def read(group: str, plural: str, namespace: str) -> Sequence[KubeObject]:
        version = "api/v1"
        if group:
            preferred = api.get(f"/apis/{group}")["preferredVersion"]
            version = f"apis/{preferred['groupVersion']}"
        within = f"namespaces/{namespace}/" if namespace else ""
        try:
            items = api.list(f"/{version}/{within}{plural}")
        except AbsentError:
            return ()
        return [KubeObject(item) for item in well_named(items)]

    return read


def causes(space: KubeObject, read: Read, now: datetime | None = None) -> list[Cause]:
    """What keeps a namespace that is being deleted, the first thing to mend first; nothing of one
    that is not.

    Whoever may not read a kind is told of it as the condition does.
    """
    if not space.is_going:
        return []
    now = now or datetime.now(UTC)
    found = [*_discovery(space, read), *_content(space, read, now), *_own_finalizers(space, now)]
    if not found and (message := _message(space, _CONTENT)):
        found = [Cause(plain(message, _QUOTED))]
    return found


def sentence(space: KubeObject, found: Sequence[Cause]) -> str:
    """One line about a namespace that does not go, and what keeps it."""
    words = why(space, found)
    return f"namespace {space.name} does not go{f': {words}' if words else ' yet'}"


def why(space: KubeObject, found: Sequence[Cause]) -> str:
    """The words of causes; of none, those of Kubernetes about what remains."""
    if found:
        return "; ".join(each.words for each in found)
    left = [_message(space, kind) for kind in (_REMAINING, _FINALIZERS)]
    return plain("; ".join(filter(None, left)), _QUOTED)


def _message(space: KubeObject, kind: str) -> str:
    condition = space.condition(kind)
    return str(condition.get("message") or "") if condition.get("status") == "True" else ""


def _discovery(space: KubeObject, read: Read) -> Iterator[Cause]:
    """API groups that do not answer: Kubernetes deletes no namespace before all of them do."""
    message = _message(space, _DISCOVERY)
    if not message:
        return
    groups = {f"{version}.{group}" for group, version in _GROUP.findall(message)}
    silent = [item for item in _read(read, AGGREGATION, "apiservices", "") if is_silent(item)]
    named = [item for item in silent if item.name in groups] or silent
    for item in named[:_MOST]:
        yield api_service_cause(item)
    if not named:
        yield Cause(plain(message, _QUOTED))


def is_silent(item: KubeObject) -> bool:
    """Whether an APIService does not answer."""
    return item.condition("Available").get("status") == "False"


def api_service_cause(item: KubeObject) -> Cause:
    """What an APIService that does not answer means, and what ends it."""
    condition, service = item.condition("Available"), item.spec.get("service") or {}
    name = plain(f"{service.get('namespace')}/{service.get('name')}", _QUOTED)
    if condition.get("reason") == "ServiceNotFound":
        words = f"APIService {item.name} is of Service {name}, which is gone"
        return Cause(words, f"delete apiservice {item.name}")
    look = f"see that Service {name} answers"
    gone = f"or, if it is gone for good, delete apiservice {item.name}"
    return Cause(f"APIService {item.name} does not answer: {look}, {gone}")


def _content(space: KubeObject, read: Read, now: datetime) -> Iterator[Cause]:
    """Objects that finalizers keep, and pods of nodes that do not answer."""
    message = _message(space, _REMAINING)
    for plural, group in _KIND.findall(message)[:_MOST]:
        items = _read(read, group, plural, space.name)
        if (group, plural) == ("", "pods"):
            yield from _pods(items, read, now)
        kept = [item.name for item in items if has_finalizer(item) and _is_late(item, now)]
        if names := [name for name in kept if _NAME.fullmatch(name)]:
            kind = f"{plural}.{group}" if group else plural
            objects = " ".join(f"{kind}/{name}" for name in names[:_MOST])
            patch = f"patch {objects} -n {space.name} --type merge -p '{_NONE}'"
            yield Cause(f"finalizers keep {kind} {listed(names, 'and')}", patch)


def _pods(pods: Sequence[KubeObject], read: Read, now: datetime) -> Iterator[Cause]:
    """Pods that were to end, on nodes whose kubelet does not answer."""
    by_node: dict[str, list[str]] = {}
    for pod in pods:
        ends = pod["metadata"].get("deletionTimestamp")
        if ends is not None and seconds_since(ends, now) >= 0:
            by_node.setdefault(str(pod.spec.get("nodeName") or ""), []).append(pod.name)
    nodes = {node.name: node for node in _read(read, "", "nodes", "")} if by_node else {}
    for name, names in by_node.items():
        node = nodes.get(name)
        if node is None or node.is_true("Ready") or not _NAME.fullmatch(name):
            continue
        taint = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
        words = f"node {name} does not answer, and pods {listed(names, 'and')} are on it. Start it"
        yield Cause(
            f"{words}; if it is gone for good, take its pods off", f"taint node {name} {taint}"
        )


def _is_late(item: KubeObject, now: datetime) -> bool:
    """Whether whoever is to take a finalizer off has had the time."""
    return seconds_since(item["metadata"].get("deletionTimestamp"), now) >= _PATIENCE_SECONDS


def _own_finalizers(space: KubeObject, now: datetime) -> Iterator[Cause]:
    """Finalizers of the namespace itself that are not Kubernetes' own."""
    if has_finalizer(space) and _is_late(space, now):
        names = listed([str(each) for each in space["metadata"]["finalizers"]], "and")
        patch = f"patch namespace/{space.name} --type merge -p '{_NONE}'"
        yield Cause(f"finalizer {plain(names, _QUOTED)} keeps the namespace itself", patch)


def has_finalizer(item: Mapping[str, Any]) -> bool:
    """Whether an object has a finalizer that is not Kubernetes' own."""
    finalizers = map(str, item["metadata"].get("finalizers") or [])
    return any("kubernetes.io/" not in name and "/" in name for name in finalizers)


def _read(read: Read, group: str, plural: str, namespace: str) -> Sequence[KubeObject]:
    """What is read; nothing of what cannot be read: the condition names it all the same."""
    try:
        return read(group, plural, namespace)
    except KubeError:
        return ()
