"""Why pods do not start: the cause in words, and the key of the stack file to edit."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from kai_fleet.cluster.kube.api import Api, Object
from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.cluster.kube.objects import KubeObject, Labels
from kai_fleet.cluster.probes.wait import NotReadyError, variable
from kai_fleet.taints import closing_taint, toleration_to_write
from kai_fleet.wording import listed, plural, short_line
from kai_usage.messages import Row
from kai_usage.objects import spec_of, takes_pods
from kai_usage.scheduling import (
    PodSurroundings,
    claims_of,
    names_objects,
    row_of_scheduler,
    surroundings_of,
)
from kai_usage.times import seconds_since

# ErrImagePull, ImagePullBackOff
_UNPULLED = re.compile(r'\w*Image\w* .*?image "([^"]+)')
_PULL = "see that it is there; write its account at kai-fleet:registries or the team's own"
_CRASHES = re.compile(r"CrashLoopBackOff .*?container=(\S+)")
# A release creates a pod's ConfigMaps before the pod, or soon after.
_MOUNT_SECONDS = 30.0
_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]*\w)")
_REFUSAL = re.compile("error: |creating: ")
_MOST_OF_CAUSE = 800  # characters
_MOST_OF_REFUSAL = 400  # characters


class Keys(NamedTuple):
    """Keys of the stack file that messages name: tolerations, node labels and requests of pods."""

    tolerations: str
    pool: str
    requests: str


def key(team: str, at: str = "") -> str:
    """The key of a team's setting in a stack file; `at` is the path below the team.

    PROBE_PLACE is the team's own key. In a program without a stack file it is the component's name,
    which is returned as it is. In a team's own stack file only keys of vcluster and scheduler
    exist; all other keys are in the platform's stack file, at teamStacks. Raises NotReadyError
    without PROBE_PLACE.
    """
    place = variable("PROBE_PLACE")
    if ":" not in place:
        return place
    if place == "kai-fleet:team" and not at.startswith(("vcluster", "scheduler")):
        place = f"kai-fleet:teamStacks.{team}"
    return f"{place}.{at}".removesuffix(".")


def pool_key(team: str, at: str = "") -> str:
    """The key of the labels of nodes, as `key` writes it: the team's, or that of a section.

    `at` is the section with a dot: `vcluster.`; "" for the team. Raises NotReadyError as `key`
    does.
    """
    return key(team, f"{at}nodePool")


def reasons(
    api: Api,
    pods: Iterable[KubeObject],
    keys: Keys,
    memory_key: Callable[[KubeObject], str] | None = None,
) -> list[str]:
    """Why pods have no node or no image, or end: a sentence for each cause, with its pods.

    Args:
        api: The cluster of the pods.
        pods: The pods to look at. A Ready one has a cause only if it was killed for memory.
        keys: The keys of the pods' tolerations, the labels of their nodes, and their requests.
        memory_key: The key of a pod's memory limit; by default that of the requests.

    Raises:
        NotReadyError: A ConfigMap that a pod mounts is gone.
        KubeError: The cluster does not answer, or does not let a ConfigMap be read.
        One of MALFORMED: A pod or node is malformed.
        Exception: What `memory_key` raises.
    """
    pods_by_cause: dict[str, list[str]] = {}
    for pod in pods:
        if "ContainerCreating" in pod.waiting:
            _require_mounts(api, pod)
        if pod.unscheduled:
            causes = [_no_node(api, pod, keys)]
        else:
            causes = _not_started(pod, memory_key(pod) if memory_key else keys.requests)
        for cause in causes:
            pods_by_cause.setdefault(short_line(cause, _MOST_OF_CAUSE), []).append(pod.name)
    return [
        f"{plural(len(names), 'pod')} {listed(names, 'and')}: {cause}"
        for cause, names in pods_by_cause.items()
    ]


def selector(labels: Labels) -> str:
    """A label selector as kubectl writes it, in the order of the labels: `a=b,c=d`; "" for none."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def _not_started(pod: KubeObject, memory_key: str) -> list[str]:
    """Why containers of a pod with a node do not start, or end.

    Images that cannot be pulled, then containers that were killed for memory, then other containers
    that crash.
    """
    waiting = list(pod.waiting)
    images = _first_groups(_UNPULLED, waiting)
    causes = [f"image {image} cannot be pulled: {_PULL}" for image in sorted(set(images))]
    killed = {container.container: container for container in pod.killed_for_memory}
    for container in killed.values():
        causes.append(f"{container.sentence}: raise limits.memory at {memory_key}")
    logs = f"kubectl -n {pod.namespace} logs --previous {pod.name} -c"
    for name in _first_groups(_CRASHES, waiting):
        if name not in killed:
            causes.append(f"container {name} crashes, look with: {logs} {name}")
    return causes


def _first_groups(pattern: re.Pattern[str], texts: Iterable[str]) -> list[str]:
    """The first group of each text that begins with the pattern."""
    return [match[1] for match in map(pattern.match, texts) if match]


def refusals(api: Api, namespace: str) -> list[str]:
    """Why pods of a namespace are not created, each reason once; empty if no event says why.

    The words of a quota or an admission webhook, from the events. Raises KubeError.
    """
    events = api.list(f"/api/v1/namespaces/{namespace}/events", fieldSelector="reason=FailedCreate")
    words = []
    for event in events:
        message = str(event.get("message") or "")
        refusal = _REFUSAL.split(message, maxsplit=1)[-1]
        words.append(short_line(refusal, _MOST_OF_REFUSAL))
    return list(dict.fromkeys(filter(None, words)))


def _require_mounts(api: Api, pod: KubeObject) -> None:
    """Raise NotReadyError if a ConfigMap that a pod mounts is gone: its release created it.

    Optional ConfigMaps are left out, those of projected volumes and variables, and pods that began
    less than 30 seconds ago or at an unknown time. Raises KubeError.
    """
    if seconds_since(pod.status.get("startTime"), datetime.now(UTC)) < _MOUNT_SECONDS:
        return
    for volume in pod.spec.get("volumes") or ():
        source = volume.get("configMap")
        if not source or source.get("optional"):
            continue
        name = source["name"]
        if api.find(f"/api/v1/namespaces/{pod.namespace}/configmaps/{name}") is None:
            raise NotReadyError(
                f"ConfigMap {name} of namespace {pod.namespace} is gone. Uninstall what mounts it,"
                " and run the update again"
            )


def _no_node(api: Api, pod: KubeObject, keys: Keys) -> str:
    """Why a pod has no node. The first that applies; 2 to 4 need the right to list nodes:

    1. nodes or volumes explain it by their names: cordoned nodes, or a volume on a lost node;
    2. no node that the pod's nodeSelector selects is Ready and uncordoned;
    3. each of these nodes has a taint that the pod does not tolerate;
    4. they lack CPU, memory or GPUs;
    5. the meaning of the scheduler's message; 6. the message itself. Raises UnreachableError.
    """
    surroundings = _surroundings(api, pod)
    known = row_of_scheduler(pod.unscheduled, surroundings)
    if known is not None and names_objects(known[0]):
        return _sentence(*known)
    labels = pod.spec.get("nodeSelector") or {}
    with_labels = f" with the labels {selector(labels)}" if labels else ""
    usable = [node for node in surroundings.candidates if takes_pods(node)]
    if surroundings.all_nodes and not usable:
        return (
            f"no Ready node{with_labels} takes pods: add or label one, or write others at"
            f" {keys.pool}"
        )
    taints = [spec_of(node).get("taints") or () for node in usable]
    taint = closing_taint(pod.spec.get("tolerations") or (), taints)
    if taint is not None:
        return (
            f"each node{with_labels} has a taint that it does not tolerate: write tolerations:"
            f" [{toleration_to_write(taint)}] at {keys.tolerations}"
        )
    insufficient = sorted(set(_INSUFFICIENT.findall(pod.unscheduled)))
    if insufficient and usable:
        return (
            f"no node{with_labels} has enough {listed(insufficient, 'and')} left: add one, or ask"
            f" for less at {keys.requests}"
        )
    if known is None:
        return pod.unscheduled
    return _sentence(*known)


def _sentence(row: Row, values: Mapping[str, object]) -> str:
    """Cause and fix of a row, for an operator of the cluster."""
    placeholders = {**values, "kubectl": "kubectl", "host": "kubectl"}
    cause = row.cause.format_map(placeholders)
    commands = [command.format_map(placeholders) for command in row.commands]
    fix = row.fix.format(*commands, **placeholders)
    return f"{cause}: {fix}"


def _surroundings(api: Api, pod: KubeObject) -> PodSurroundings:
    """The nodes, claims and volumes around a pod, as far as this account may read them.

    The account of a team's own stack may not list nodes. Raises UnreachableError.
    """
    nodes: list[Object] = []
    claims: list[Object] = []
    volumes: list[Object] = []
    with suppress(RefusedError):
        nodes = api.list("/api/v1/nodes")
    with suppress(RefusedError):
        space = f"/api/v1/namespaces/{pod.namespace}/persistentvolumeclaims"
        claims += _found(api, [f"{space}/{name}" for name in claims_of(pod)])
        bound = [spec_of(claim).get("volumeName") for claim in claims]
        volumes += _found(api, [f"/api/v1/persistentvolumes/{name}" for name in bound if name])
    return surroundings_of(pod, nodes, {}, claims, volumes)


def _found(api: Api, paths: Iterable[str]) -> Iterator[Object]:
    """The objects at these paths that exist. Raises KubeError."""
    for path in paths:
        item = api.find(path)
        if item is not None:
            yield item
