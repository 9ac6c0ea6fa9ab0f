"""Look at the pods of clusters that may not answer: asked once and briefly."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kai_fleet.kube.api import OF_OPERATORS, Api
from kai_fleet.kube.errors import KubeError
from kai_fleet.kube.objects import MALFORMED, KubeObject
from kai_fleet.kube.pods import PodUse, pods_of

_LIMITS: Final = {"connect": 3.0, "in_all": 10.0}  # in seconds
_LONGEST: Final = 300  # of a reason: it ends a sentence


class NoAnswerError(Exception):
    """The cluster cannot be asked; the message completes "… did not answer"."""


@dataclass(frozen=True)
class PodsHeld:
    """How many pods there are, and the GPUs that those with a node hold."""

    pods: int
    gpus: float


@dataclass(frozen=True)
class ClusterReader:
    """A cluster by a context of a kubeconfig file, or by a kubeconfig's content."""

    context: str | None = None
    file: Path | None = None
    content: str | None = None

    def pods(self) -> list[PodUse]:
        """The pods that are not over, without Kubernetes' and KAI's. Raises NoAnswerError.

        A pod with a share of GPU memory counts with a whole device: which part that is, the node
        decides.
        """
        try:
            return pods_of(map(KubeObject, self._items("/api/v1/pods")), (), {})
        except MALFORMED as error:  # a vCluster's API server is its tenant's
            raise NoAnswerError(f"it answers no pods ({type(error).__name__})") from None

    def held(self) -> PodsHeld:
        """These pods, counted. Raises NoAnswerError."""
        pods = self.pods()
        return PodsHeld(len(pods), sum(pod.amounts.gpu for pod in pods if not pod.waits))

    def _items(self, path: str) -> list[Mapping[str, Any]]:
        try:
            if self.content is not None:
                api = Api.of_kubeconfig(self.content, **_LIMITS)
            else:
                file = str(self.file) if self.file else None
                api = Api.of_context(file, self.context, **_LIMITS, most=OF_OPERATORS)
            with closing(api):
                return [*api.list(path)]
        except KubeError as error:
            raise NoAnswerError(str(error)[:_LONGEST]) from None
