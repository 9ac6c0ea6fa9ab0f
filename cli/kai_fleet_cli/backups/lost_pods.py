"""Pods that a restore brought back inside a vCluster, and that are gone on the host."""

from collections.abc import Collection

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import AbsentError
from kai_fleet.cluster.kube.objects import KubeObject, well_named

_BIND_REQUESTS = "/apis/scheduling.run.ai/v1alpha2/namespaces/{}/bindrequests/{}"


def schedule_again(inside: Api, on_host: Collection[str]) -> list[str]:
    """Have KAI place pods whose host pods are gone; return them, as NAMESPACE/NAME.

    A restore leaves pods without node and phase. KAI looks at Pending pods only, and keeps the
    BindRequest of a pod that it placed before: seen with v0.16.8.

    Args:
        inside: The API server of the vCluster.
        on_host: Pods that the host has, as NAMESPACE/NAME: their state comes from there.
    """
    pods = map(KubeObject, well_named(inside.list("/api/v1/pods")))
    lost = [pod for pod in pods if not pod.phase and pod.namespaced_name not in on_host]
    for pod in lost:
        inside.delete(_BIND_REQUESTS.format(pod.namespace, pod.name))
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        try:
            inside.patch(path, {"status": {"phase": "Pending"}})
        except AbsentError:
            continue  # its owner was quicker
    return [pod.namespaced_name for pod in lost]
