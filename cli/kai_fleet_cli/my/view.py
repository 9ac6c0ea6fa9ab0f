"""One look at the cluster of a kubeconfig, and what of it this user may not see."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import UnreachableError
from kai_fleet.kube.kubeconfig import namespace_of
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.gpu_usage.counting import Usage, usage
from kai_fleet_cli.gpu_usage.pods import PodUse
from kai_fleet_cli.gpu_usage.reading import KINDS, Answers, read

SECONDS: Final = 10.0  # for each answer
# What only `my pending` needs.
WHY: Final[Mapping[str, str]] = {
    "events": "/api/v1/events",
    "runtimeclasses": "/apis/node.k8s.io/v1/runtimeclasses",
}
_WITHOUT: Final[Mapping[str, str]] = {
    "nodes": "how many GPUs there are is not known, and a share of memory counts as a whole GPU",
    "pods": "who holds what is not known",
    "queues": "quotas and limits are not known",
    "podgroups": "the queue of a pod is the one of its label",
    "events": "why a pod waits may be known to them only",
}
_ASK: Final = "ask the platform's engineers: `fleet usage --stack STACK --team TEAM`"


@dataclass(frozen=True)
class Source:
    """Where to look: a kubeconfig file and one of its contexts, the usual ones where None.

    `namespace` narrows what is shown.
    """

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None

    @property
    def kubectl(self) -> str:
        """How this cluster is asked by hand."""
        flags = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        words = [word for flag, value in flags.items() if value for word in (flag, value)]
        return shlex.join(["kubectl", *words])


@dataclass(frozen=True)
class View:
    """What was seen. `notes` are sentences about what was not."""

    answers: Answers
    usage: Usage
    namespace: str | None = None
    notes: tuple[str, ...] = ()
    now: datetime = datetime.min
    kubectl: str = "kubectl"

    @property
    def pods(self) -> list[PodUse]:
        """The pods that are shown."""
        return [pod for pod in self.usage.pods if self.namespace in (None, pod.namespace)]

    @property
    def blind(self) -> bool:
        """Whether no pod may be listed."""
        return "pods" in self.answers.forbidden

    @property
    def schedules_here(self) -> bool:
        """Whether the KAI of its pods is in this cluster, as far as one sees."""
        return "queues" not in self.answers.not_served

    def record(self) -> dict[str, Any]:
        """What every JSON begins with."""
        return {
            "namespace": self.namespace,
            "kai": self.usage.release.version if self.usage.release else None,
            "countedFrom": self.usage.counted_from,
            "notes": list(self.notes),
        }


class Eye:
    """Looks at one cluster, again and again. Raises UserError for a kubeconfig that is no use."""

    def __init__(self, source: Source) -> None:
        self._source = source
        file, context = source.kubeconfig, source.context
        try:
            self._where = source.namespace or namespace_of(file, context) or "default"
            self._api = Api.of_context(file, context, seconds=SECONDS)
        except UnreachableError as why:
            said = str(why).rstrip(".")
            raise UserError(f"{said}; name one with --kubeconfig, or in KUBECONFIG") from None

    def look(self, more: Mapping[str, str] | None = None) -> View:
        """What is there now. Raises UserError where the cluster does not answer."""
        try:
            answers = read(self._api, {**KINDS, **(more or {})}, self._where)
        except UnreachableError as why:
            raise UserError(f"the cluster at {self._api.host} cannot be asked: {why}") from None
        counted = usage(answers)
        namespace = self._source.namespace or answers.namespace
        notes = _notes(answers, counted)
        return View(answers, counted, namespace, notes, datetime.now(UTC), self._source.kubectl)


def command(name: str) -> str:
    """How whoever runs this types another of these commands."""
    plugin = Path(sys.argv[0]).name.startswith("kubectl-")
    return f"kubectl fleet {name}" if plugin else f"fleet my {name}"


def _notes(answers: Answers, counted: Usage) -> tuple[str, ...]:
    found = [
        f"you may not list {kind}: {_WITHOUT[kind]}"
        for kind in answers.forbidden
        if kind in _WITHOUT
    ]
    if answers.namespace is not None:
        told = "; what queues hold is what KAI says of them" if counted.queues else ""
        found.append(f"you may list pods of namespace {answers.namespace} only{told}")
    if "queues" in answers.not_served:
        if any(pod.scheduled_by_kai for pod in counted.pods):
            found.append(
                "KAI runs on the host and not here, and so do its queues: what they may hold, and"
                f" who else is on a GPU, is not to be seen from here; {_ASK}"
            )
        else:
            found.append("no KAI runs here: there are no queues")
    return tuple(found)
