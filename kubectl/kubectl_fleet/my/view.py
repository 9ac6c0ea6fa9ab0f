"""One look at the cluster of a kubeconfig, and what of it this user may not see."""

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kubectl_fleet.errors import UserError
from kubectl_fleet.kube.api import Api
from kubectl_fleet.kube.errors import UnreachableError
from kubectl_fleet.kube.kubeconfig import connection
from kubectl_fleet.objects import seconds_since
from kubectl_fleet.releases.keys import KAI_NAMESPACE
from kubectl_fleet.usage.counting import ClusterUsage
from kubectl_fleet.usage.pods import PodUse
from kubectl_fleet.waiting.read_cluster import ReadCluster
from kubectl_fleet.waiting.refused import Refusal

SECONDS: Final = 10.0  # for each answer
# `{}` is where the namespace goes for a user who may list pods in one only.
KINDS: Final[Mapping[str, str]] = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/{}pods",
    "queues": "/apis/scheduling.run.ai/v2/queues",
    "podgroups": "/apis/scheduling.run.ai/v2alpha2/{}podgroups",
    # Which KAI runs here, by the images of its deployments.
    "deployments": f"/apis/apps/v1/namespaces/{KAI_NAMESPACE}/deployments",
}
# What only `my pending` needs.
WHY: Final[Mapping[str, str]] = {
    "events": "/api/v1/{}events",
    "runtimeclasses": "/apis/node.k8s.io/v1/runtimeclasses",
    "replicasets": "/apis/apps/v1/{}replicasets",
    "statefulsets": "/apis/apps/v1/{}statefulsets",
    "jobs": "/apis/batch/v1/{}jobs",
}
_WITHOUT: Final[Mapping[str, str]] = {
    "nodes": "how many GPUs there are is not known, and a share of memory counts as a whole GPU",
    "pods": "who holds what is not known",
    "queues": "quotas and limits are not known",
    "podgroups": "the queue of a pod is the one of its label",
    "events": "why a pod waits may be known to them only",
}
_PLATFORM: Final = "ask the platform's engineers: `fleet usage --stack STACK --team TEAM`"


@dataclass(frozen=True)
class View:
    """What was seen. `namespace` is the only one whose pods are shown, None for all."""

    cluster: ReadCluster
    namespace: str | None = None

    @property
    def usage(self) -> ClusterUsage:
        """Who holds what, and who waits."""
        return self.cluster.usage

    @property
    def pods(self) -> list[PodUse]:
        """The pods that are shown."""
        return [pod for pod in self.usage.pods if self.shows(pod)]

    @property
    def blind(self) -> bool:
        """Whether no pod may be listed."""
        return "pods" in self.cluster.unreadable

    @property
    def schedules_here(self) -> bool:
        """Whether the KAI of its pods is in this cluster, as far as one sees."""
        return "queues" in self.cluster.objects or "queues" in self.cluster.unreadable

    @cached_property
    def notes(self) -> list[str]:
        """Sentences about what was not seen."""
        usage = self.usage
        notes = [
            f"you may not list {kind}: {_WITHOUT[kind]}"
            for kind in self.cluster.unreadable
            if kind in _WITHOUT
        ]
        if self.cluster.partly and "pods" in self.cluster.objects:
            source = "; what queues hold is what KAI says of them" if usage.queues else ""
            notes.append(f"you may list pods of namespace {self.namespace} only{source}")
        if not self.schedules_here:
            notes.append(
                "KAI runs on the host and not here, and so do its queues: what they may hold, and"
                f" who else is on a GPU, is not to be seen from here; {_PLATFORM}"
                if any(pod.scheduled_by_kai for pod in usage.pods)
                else "no KAI runs here: there are no queues"
            )
        return notes

    def shows(self, it: PodUse | Refusal) -> bool:
        """Whether something is in the namespace that is shown."""
        return self.namespace in (None, it.namespace)

    def name(self, name: str, namespace: str) -> str:
        """A name, with its namespace where that is not the usual one."""
        usual = namespace == (self.namespace or "default")
        return name if usual else f"{namespace}/{name}"

    def age(self, since: str) -> str:
        """How long that is, as kubectl says it: `45s`, `12m`, `3h`, `9d`; "" if it is unknown."""
        if not since:
            return ""
        seconds = seconds_since(since, self.cluster.now)
        for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
            if seconds >= 2 * length:
                return f"{seconds // length:.0f}{unit}"
        return f"{max(0.0, seconds):.0f}s"

    def record(self) -> dict[str, Any]:
        """What every JSON begins with."""
        return {
            "namespace": self.namespace,
            "kai": self.usage.release.version if self.usage.release else None,
            "countedFrom": "status" if self.cluster.partly else "pods",
            "notes": self.notes,
        }


def viewer(
    file: str | None, context: str | None, namespace: str | None, more: Mapping[str, str]
) -> Callable[[], View]:
    """What looks at one cluster, again and again: by a kubeconfig file and a context, or the usual
    ones.

    `namespace` narrows what is shown, `more` are kinds that are read beside `KINDS`. Raises
    UserError for a kubeconfig that is no use; and each look, where the cluster does not answer.
    """
    flags = {"--kubeconfig": file, "--context": context}
    words = [word for flag, value in flags.items() if value for word in (flag, value)]
    blank = ReadCluster(
        "this cluster",
        update="ask the platform's engineers for an update of the stack",
        kubectl=shlex.join(["kubectl", *words]),
    )
    try:
        way = connection(file=file, context=context)
    except UnreachableError as error:
        text = str(error).rstrip(".")
        raise UserError(f"{text}; for another one write --kubeconfig, or set KUBECONFIG") from None
    api, where = Api(way, seconds=SECONDS), namespace or way.namespace or "default"

    def look() -> View:
        try:
            cluster = read(api, blank, {**KINDS, **more}, where)
        except UnreachableError as error:
            raise UserError(f"the cluster at {api.host} cannot be asked: {error}") from None
        only = cluster.partly and "pods" in cluster.objects
        return View(cluster, where if only else namespace or None)

    return look


def read(api: Api, blank: ReadCluster, kinds: Mapping[str, str], namespace: str) -> ReadCluster:
    """Ask for everything at once. Where pods may not be listed in all, `namespace` is asked for
    them and the like.

    Raises UnreachableError where the cluster does not answer, or does not accept the credentials.
    """
    objects, refused = api.lists(kinds, len(kinds))
    partly = "pods" in refused and refused["pods"].status == HTTPStatus.FORBIDDEN
    if partly:
        inside = {kind: path for kind, path in kinds.items() if "{}" in path}
        own, still = api.lists(inside, len(inside), namespace)
        refused = {kind: it for kind, it in refused.items() if kind not in inside} | still
        objects |= own
    for error in refused.values():
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise UnreachableError(f"it answers {error}")
    forbidden = {
        kind: it.message or str(it)
        for kind, it in refused.items()
        if it.status != HTTPStatus.NOT_FOUND
    }
    now = datetime.now(UTC)
    return replace(blank, objects=objects, unreadable=forbidden, now=now, partly=partly)


def command(name: str) -> str:
    """How whoever runs this types another of these commands."""
    plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    return f"kubectl fleet {name}" if plugin else f"fleet my {name}"
