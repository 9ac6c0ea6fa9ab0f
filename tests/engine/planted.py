"""A program of somebody else's, with one mistake of each kind: what each is to be refused for."""

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
ALL_FREE = {"cpu": FREE, "memory": FREE, "gpu": FREE}
IN_TEST = {"kai.scheduler/queue": "test"}
GPU = {"nvidia.com/gpu": "1"}

# Resource name -> the rules that refuse it.
QUEUES: dict[str, set[str]] = {
    "q1-namespaced": {"queue-cluster-scoped"},
    "q2-no-limit": {"queue-quota"},
    "q4-days": {"queue-duration"},
    "q5-absent-parent": {"queue-tree"},
    "q5-own-parent": {"queue-tree"},
    "q5-cycle-a": {"queue-tree"},
    "q5-twice-b": {"queue-tree"},
    "q7-sum": {"queue-quota"},
    "q7-limit-below-quota": {"queue-quota"},
    "q7-above-its-parents-limit": {"queue-quota"},
    "q6-third-level": {"queue-depth"},
    "q6-lone": {"queue-depth"},
}
PODS: dict[str, set[str]] = {
    "w1-no-queue": {"workload-leaf-queue", "workload-scheduler"},
    "w1-absent-queue": {"workload-leaf-queue"},
    "w1-parent": {"workload-leaf-queue"},
    "w1-deployment": {"workload-leaf-queue"},
    "w2-fraction-key": {"workload-known-keys"},
    "w2-queue-key": {"workload-known-keys", "workload-leaf-queue", "workload-scheduler"},
    "w3-fraction-above-1": {"workload-gpu-request"},
    "w3-fraction-nan": {"workload-gpu-request"},
    "w3-memory-in-gib": {"workload-gpu-request"},
    "w3-both": {"workload-gpu-request"},
    "w3-with-whole": {"workload-gpu-request"},
    "w3-devices-alone": {"workload-gpu-request"},
    "w3-mps-alone": {"workload-gpu-request"},
    "w3-container-name": {"workload-gpu-request"},
    "w4-sharing-off": {"workload-gpu-sharing"},
    "w5-number": {"workload-known-keys"},
    "w6-label-alone": {"workload-scheduler"},
    "w8-kube-system": {"namespace-reserved"},
    "w8-kai-scheduler": {"namespace-reserved"},
    "w9-time-slicing": {"gpu-one-sharer"},
}
RELEASES: dict[str, set[str]] = {
    "t17-flag": {"vcluster-values"},
}
REFUSED = QUEUES | PODS | RELEASES
ADVISED = {"q8-zero": "queue-zero-quota"}


def program(charts: str) -> Callable[[], None]:
    """All of it, on one API server behind six providers, which are six clusters to the rules."""

    def run() -> None:
        _trees(_cluster("trees"), charts)
        _two_levels(_cluster("two"), charts)
        _sharing_off(_cluster("off"), charts)
        _sliced(_cluster("sliced"), charts)
        _from_elsewhere(_cluster("elsewhere"), charts)
        _pods(_cluster("main"), charts)

    return run


def _cluster(name: str) -> pulumi.ResourceOptions:
    provider = k8s.Provider(name, context="kai-fleet-sandbox", cluster_identifier=name)
    return pulumi.ResourceOptions(provider=provider)


def _kai(name: str, charts: str, version: str, opts: pulumi.ResourceOptions, **values: Any) -> None:
    k8s.helm.v3.Release(
        name,
        chart=f"{charts}/kai-scheduler-{version}.tgz",
        namespace="kai-scheduler",
        values={"global": {"gpuSharing": True, **values}},
        opts=opts,
    )


def _queue(
    name: str,
    opts: pulumi.ResourceOptions,
    parent: str | None = None,
    called: str | None = None,
    namespace: str | None = None,
    gpu: Mapping[str, float] | None = None,
    **spec: Any,
) -> None:
    metadata = {"name": called or name} | ({"namespace": namespace} if namespace else {})
    resources = ALL_FREE | ({"gpu": dict(gpu)} if gpu else {})
    CustomResource(
        name,
        api_version="scheduling.run.ai/v2",
        kind="Queue",
        metadata=metadata,
        spec={"resources": resources, **({"parentQueue": parent} if parent else {}), **spec},
        opts=opts,
    )


def _trees(opts: pulumi.ResourceOptions, charts: str) -> None:
    _kai("trees-kai", charts, "v0.16.8", opts)
    _queue("q1-namespaced", opts, namespace="kai-scheduler")
    _queue("q2-no-limit", opts, gpu={"quota": 1, "overQuotaWeight": 1})
    _queue("q4-days", opts, preemptMinRuntime="1d")
    _queue("q5-absent-parent", opts, "nowhere")
    _queue("q5-own-parent", opts, "q5-own-parent")
    _queue("q5-cycle-a", opts, "q5-cycle-b")
    _queue("q5-cycle-b", opts, "q5-cycle-a")
    _queue("q5-twice-a", opts, called="q5-twice")
    _queue("q5-twice-b", opts, called="q5-twice")
    _queue("q7-sum", opts, gpu={"quota": 2, "limit": -1, "overQuotaWeight": 1})
    for part in ("a", "b"):
        _queue(f"q7-sum-{part}", opts, "q7-sum", gpu=FREE | {"quota": 1.5})
    _queue("q7-limit-below-quota", opts, gpu=FREE | {"quota": 2, "limit": 1})
    _queue("q7-limited", opts, gpu=FREE | {"quota": 2, "limit": 2})
    _queue("q7-above-its-parents-limit", opts, "q7-limited", gpu=FREE | {"quota": 1, "limit": 3})
    _queue("q8-zero", opts, gpu=FREE | {"quota": 0})


def _two_levels(opts: pulumi.ResourceOptions, charts: str) -> None:
    _kai("two-kai", charts, "v0.9.3", opts)
    _queue("q6-top", opts)
    _queue("q6-second", opts, "q6-top")
    _queue("q6-third-level", opts, "q6-second")
    _queue("q6-lone", opts)


def _sharing_off(opts: pulumi.ResourceOptions, charts: str) -> None:
    _kai("off-kai", charts, "v0.16.8", opts, gpuSharing=False)
    _queue("off-test", opts, called="test")
    _pod("w4-sharing-off", opts, annotations={"gpu-fraction": "0.5"})


def _sliced(opts: pulumi.ResourceOptions, charts: str) -> None:
    _kai("sliced-kai", charts, "v0.16.8", opts)
    slicing = {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
    k8s.helm.v3.Release(
        "w9-time-slicing",
        chart=f"{charts}/nvidia-device-plugin-0.20.1.tgz",
        namespace="nvidia-device-plugin",
        values={"config": {"map": {"default": {"version": "v1", "sharing": slicing}}}},
        opts=opts,
    )


def _from_elsewhere(opts: pulumi.ResourceOptions, charts: str) -> None:
    flags = {"extraArgs": ["--v=2", "--authorization_mode", "AlwaysAllow"]}
    k8s.helm.v3.Release(
        "t17-flag",
        chart=f"{charts}/vcluster-0.36.1.tgz",
        namespace="team-t17",
        values={"controlPlane": {"distro": {"k8s": {"apiServer": flags}}}},
        opts=opts,
    )


def _pod(
    name: str,
    opts: pulumi.ResourceOptions,
    labels: Mapping[str, str] = IN_TEST,
    annotations: Mapping[str, Any] | None = None,
    scheduler: str | None = "kai-scheduler",
    namespace: str = "team-a",
    limits: Mapping[str, str] | None = None,
) -> None:
    container = {"name": "main", "image": "ubuntu", "resources": {"limits": dict(limits or {})}}
    spec = {"containers": [container]} | ({"schedulerName": scheduler} if scheduler else {})
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels),
        "annotations": dict(annotations or {}),
    }
    k8s.core.v1.Pod(name, metadata=metadata, spec=spec, opts=opts)


def _deployment(
    name: str, opts: pulumi.ResourceOptions, queue: str, fraction: str, command: str
) -> None:
    labels = {"kai.scheduler/queue": queue, "app": name}
    container = {"name": "vllm", "image": "vllm/vllm-openai:latest", "command": ["sh", "-c"]}
    k8s.apps.v1.Deployment(
        name,
        metadata={"name": name, "namespace": "team-a"},
        spec={
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels, "annotations": {"gpu-fraction": fraction}},
                "spec": {
                    "schedulerName": "kai-scheduler",
                    "containers": [container | {"args": [command]}],
                },
            },
        },
        opts=opts,
    )


def _pods(opts: pulumi.ResourceOptions, charts: str) -> None:
    _kai("main-kai", charts, "v0.9.3", opts)
    _queue("main-default", opts, called="default")
    _queue("main-test", opts, "default", called="test")
    _pod("right-cpu", opts)
    _pod("right-gpu", opts, limits=GPU)
    _pod("right-fraction", opts, annotations={"gpu-fraction": "0.5"})
    _pod("w1-no-queue", opts, {})
    _pod("w1-absent-queue", opts, {"kai.scheduler/queue": "nowhere"})
    _pod("w1-parent", opts, {"kai.scheduler/queue": "default"})
    half = "vllm serve a --gpu-memory-utilization=0.5"
    _deployment("w1-deployment", opts, "tset", "0.5", half)
    _pod("w2-fraction-key", opts, annotations={"kai.scheduler/gpu-fraction": "0.5"})
    _pod("w2-queue-key", opts, {"runai/queue": "test"})
    _pod("w3-fraction-above-1", opts, annotations={"gpu-fraction": "1.5"})
    _pod("w3-fraction-nan", opts, annotations={"gpu-fraction": "NaN"})
    _pod("w3-memory-in-gib", opts, annotations={"gpu-memory": "2Gi"})
    _pod("w3-both", opts, annotations={"gpu-fraction": "0.5", "gpu-memory": "2000"})
    _pod("w3-with-whole", opts, annotations={"gpu-fraction": "0.5"}, limits=GPU)
    _pod("w3-devices-alone", opts, annotations={"gpu-fraction-num-devices": "2"})
    _pod("w3-mps-alone", opts, annotations={"mps": "true"})
    first = {"gpu-fraction": "0.5", "gpu-fraction-container-name": "main"}
    _pod("w3-container-name", opts, annotations=first)
    _number_in_a_kind_that_the_server_does_not_know("w5-number", opts)
    _pod("w6-label-alone", opts, scheduler=None)
    _pod("w8-kube-system", opts, namespace="kube-system")
    _pod("w8-kai-scheduler", opts, namespace="kai-scheduler")


def _number_in_a_kind_that_the_server_does_not_know(
    name: str, opts: pulumi.ResourceOptions
) -> None:
    """In a Pod the API server refuses a number at preview too, and the stack is not analyzed."""
    pod = {"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]}
    meta = {"labels": IN_TEST, "annotations": {"gpu-fraction": 0.5}}
    CustomResource(
        name,
        api_version="kubeflow.org/v1",
        kind="PyTorchJob",
        metadata={"name": name, "namespace": "team-a"},
        spec={"pytorchReplicaSpecs": {"Master": {"template": {"metadata": meta, "spec": pod}}}},
        opts=opts,
    )
