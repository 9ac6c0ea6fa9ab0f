"""Why pods do not start: the cause in words, and the key of the stack file to edit."""

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import RefusedError
from kai_fleet.cluster.kube.objects import KubeObject, closed_pool, in_pool, seconds_since
from kai_fleet.cluster.probes.wait import NotReadyError
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


def reasons(api: Api, pods: Iterable[KubeObject], path: str, pool: str, part: str) -> list[str]:
    """Why pods have no node or no image, or end.

    The keys are `path` of their tolerations, `pool` of the labels of their nodes, `part` of their
    requests. Raises NotReadyError where what one mounts is gone.
    """
    found: dict[str, list[str]] = {}
    for pod in pods:
        if "ContainerCreating" in pod.waiting:
            _require_mounts(api, pod)
        images = {match[1] for match in map(_UNPULLED.match, pod.waiting) if match}
        causes = [f"image {image} cannot be pulled: {_PULL}" for image in sorted(images)]
        crashed = [match[1] for match in map(_CRASHES.match, pod.waiting) if match]
        logs = f"kubectl -n {pod.namespace} logs --previous {pod.name} -c"
        causes += [f"container {name} crashes, look with: {logs} {name}" for name in crashed]
        for cause in [_no_node(api, pod, path, pool, part)] if pod.unscheduled else causes:
            found.setdefault(plain(cause, 400), []).append(pod.name)
    return [f"{plural(len(of), 'pod')} {listed(of, 'and')}: {cause}" for cause, of in found.items()]


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
    try:
        every = map(KubeObject, api.list("/api/v1/nodes"))
    except RefusedError:  # the account of a team's own stack may not list them
        return pod.unscheduled
    nodes = [node for node in every if node.takes_pods and in_pool(node.labels, labels)]
    having = " with the labels " + ",".join(map("=".join, labels.items())) if labels else ""
    if not nodes:
        return f"no Ready node{having} takes pods: add or label one, or write others at {pool}"
    taints = [node.spec.get("taints") or () for node in nodes]
    if closed := closed_pool(pod.spec.get("tolerations") or (), taints, path):
        return f"each node{having} has a taint that it does not tolerate: {closed[1]}"
    if short := listed(sorted({*_SHORT.findall(pod.unscheduled)}), "and"):
        return f"no node{having} has enough {short} left: add one, or ask for less at {part}"
    return pod.unscheduled
