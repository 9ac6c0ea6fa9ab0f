"""Look at the pods of a vCluster that may not answer: asked once and briefly."""

from contextlib import closing
from typing import Final

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import KubeError
from kai_fleet.kube.objects import MALFORMED, KubeObject
from kai_fleet.kube.pods import pods_of

_LIMITS: Final = {"connect": 3.0, "in_all": 10.0}  # in seconds
_LONGEST: Final = 300  # of a reason: it ends a sentence


class NoAnswerError(Exception):
    """The cluster cannot be asked; the message completes "… did not answer"."""


def gpus_held(kubeconfig: str) -> float:
    """The GPUs that pods with a node hold, without Kubernetes' and KAI's. Raises NoAnswerError.

    A pod with a share of GPU memory counts with a whole device: which part that is, the node
    decides.
    """
    try:
        with closing(Api.of_kubeconfig(kubeconfig, **_LIMITS)) as api:
            pods = pods_of(map(KubeObject, api.list("/api/v1/pods")), (), {})
    except KubeError as error:
        raise NoAnswerError(str(error)[:_LONGEST]) from None
    except MALFORMED as error:  # a vCluster's API server is its tenant's
        raise NoAnswerError(f"it answers no pods ({type(error).__name__})") from None
    return sum(pod.amounts.gpu for pod in pods if not pod.waits)
