"""Why pods do not start: the cause in words, and the key of the stack file to edit."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.cluster.kube.objects import KubeObject, closed_pool, seconds_since
from kai_fleet.cluster.probes.wait import NotReadyError
from kai_fleet.cluster.scheduling import Around, Row, around, claims_of, meaning
from kai_fleet.wording import listed, plain, plural

_UNPULLED: Final = re.compile(r'\w*Image\w* .*?image "([^"]+)')  # ErrImagePull, ImagePullBackOff
_PULL: Final = "see that it is there; write its account at kai-fleet:registries or the team's own"
_CRASHES: Final = re.compile(r"CrashLoopBackOff .*?container=(\S+)")
_MOUNT_SECONDS: Final = 30.0  # what a pod mounts was made before it, or soon after
_SHORT: Final = re.compile(r"Insufficient ([\w./-]*\w)")


def key(team: str, at: str = "") -> str:
    """The key of a team's setting in a stack file; in a program without one, the component.

    Of a team's own stack, the platform's file has what it grants, at teamStacks.
    """
    place = os.environ["PROBE_PLACE"]
    if place == "kai-fleet:team" and not at.startswith(("vcluster", "scheduler")):
        place = f"kai-fleet:teamStacks.{team}"
    return f"{place}.{at}".removesuffix(".") if ":" in place else place


def reasons(
    api: Api,
    pods: Iterable[KubeObject],
    path: str,
    pool: str,
    part: str,
    memory: Callable[[KubeObject], str] | None = None,
) -> list[str]:
    """Why pods have no node or no image, or end.

    The keys are `path` of their tolerations, `pool` of the labels of their nodes, `part` of their
    requests; `memory` gives that of a pod's memory, `part` where it is None. Raises NotReadyError
    where what one mounts is gone.
    """
    found: dict[str, list[str]] = {}
    for pod in pods:
        if "ContainerCreating" in pod.waiting:
            _require_mounts(api, pod)
        causes = _not_started(pod, part if memory is None else memory(pod))
        for cause in [_no_node(api, pod, path, pool, part)] if pod.unscheduled else causes:
            found.setdefault(plain(cause, 800), []).append(pod.name)
    return [f"{plural(len(of), 'pod')} {listed(of, 'and')}: {cause}" for cause, of in found.items()]


def _not_started(pod: KubeObject, memory: str) -> list[str]:
    """Why containers of a pod with a node do not start, or end; `memory` is the key of theirs."""
    images = {match[1] for match in map(_UNPULLED.match, pod.waiting) if match}
    causes = [f"image {image} cannot be pulled: {_PULL}" for image in sorted(images)]
    killed = {each.container: each for each in pod.killed_for_memory}
    for each in killed.values():
        causes.append(f"{each.sentence}: raise limits.memory at {memory}")
    crashed = [match[1] for match in map(_CRASHES.match, pod.waiting) if match]
    logs = f"kubectl -n {pod.namespace} logs --previous {pod.name} -c"
    for name in crashed:
        if name not in killed:
            causes.append(f"container {name} crashes, look with: {logs} {name}")
    return causes


def refusals(api: Api, namespace: str) -> list[str]:
    """Why pods of a namespace are not created: a quota or an admission webhook refuses them."""
    events = api.list(f"/api/v1/namespaces/{namespace}/events", fieldSelector="reason=FailedCreate")
    words = (str(each.get("message")) for each in events)
    refused = (re.split("error: |creating: ", message, maxsplit=1)[-1] for message in words)
    return list(dict.fromkeys(plain(each, 400) for each in refused))


def _require_mounts(api: Api, pod: KubeObject) -> None:
    """Raise NotReadyError where a ConfigMap that a pod mounts is gone: its release made it."""
    if seconds_since(pod.status.get("startTime"), datetime.now(UTC)) < _MOUNT_SECONDS:
        return
    sources = (
        volume.get("configMap") or {"optional": True} for volume in pod.spec.get("volumes") or ()
    )
    for name in (source["name"] for source in sources if not source.get("optional")):
        if api.find(f"/api/v1/namespaces/{pod.namespace}/configmaps/{name}") is None:
            raise NotReadyError(
                f"ConfigMap {name} of namespace {pod.namespace} is gone. Uninstall what mounts it,"
                " and run the update again"
            )


def _no_node(api: Api, pod: KubeObject, path: str, pool: str, part: str) -> str:
    """The scheduler's own words, which change whenever it counts, only where nothing else fits."""
    labels = pod.spec.get("nodeSelector") or {}
    about = _around(api, pod)
    usable = [node for node in about.nodes if node.takes_pods]
    known = meaning(pod.unscheduled, about)
    if known is not None and known[0].is_by_objects:  # it says more than keys do
        return _sentence(*known)
    having = " with the labels " + ",".join(map("=".join, labels.items())) if labels else ""
    if about.every and not usable:
        return f"no Ready node{having} takes pods: add or label one, or write others at {pool}"
    taints = [node.spec.get("taints") or () for node in usable]
    if closed := closed_pool(pod.spec.get("tolerations") or (), taints, path):
        return f"each node{having} has a taint that it does not tolerate: {closed[1]}"
    short = listed(sorted({*_SHORT.findall(pod.unscheduled)}), "and")
    if short and usable:
        return f"no node{having} has enough {short} left: add one, or ask for less at {part}"
    return _sentence(*known) if known is not None else pod.unscheduled


def _sentence(row: Row, values: Mapping[str, str]) -> str:
    places = {**values, "kubectl": "kubectl", "host": "kubectl"}
    cause, fix = (part.format_map(places) for part in (row.cause, row.fix))
    return f"{cause}: {fix}".replace("`", "")


def _around(api: Api, pod: KubeObject) -> Around:
    """The nodes, claims and volumes around a pod, as far as this account may read them."""
    nodes, claims, volumes = list[KubeObject](), list[KubeObject](), list[KubeObject]()
    with suppress(RefusedError):  # the account of a team's own stack may not list nodes
        nodes = [KubeObject(item) for item in api.list("/api/v1/nodes")]
    with suppress(RefusedError):
        for name in claims_of(pod):
            path = f"/api/v1/namespaces/{pod.namespace}/persistentvolumeclaims/{name}"
            claims += [KubeObject(item) for item in [api.find(path)] if item is not None]
        bound = [claim for claim in claims if claim.spec.get("volumeName")]
        found = (api.find(f"/api/v1/persistentvolumes/{each.spec['volumeName']}") for each in bound)
        volumes = [KubeObject(item) for item in found if item is not None]
    return around(pod, nodes, {}, claims, volumes)
