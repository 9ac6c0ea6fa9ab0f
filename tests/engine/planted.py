"""A program of somebody else's, with one mistake of each kind: what each is to be refused for."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pulumi
import pulumi_kubernetes as k8s
from pulumi_kubernetes.apiextensions import CustomResource

from tests.engine.guarded_pods import HALF, IN_TEST, WHOLE, pod

FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
ALL_FREE = {"cpu": FREE, "memory": FREE, "gpu": FREE}
GPU = "workload-gpu-request"


class Planted(NamedTuple):
    """The rules that refuse it, none where it is right, and what it is made with."""

    rules: set[str]
    created: dict[str, Any]


def queue(*rules: str, gpu: dict[str, float] | None = None, **created: Any) -> Planted:
    """A Queue: `parent`, `called`, `namespace`, and other fields of its spec."""
    return Planted(set(rules), {**created, "gpu": gpu or FREE})


def of(labels: dict[str, str] = IN_TEST, **notes: str) -> dict[str, Any]:
    """A pod's labels, and its annotations in Python's spelling."""
    return {"labels": labels, "annotations": {k.replace("_", "-"): v for k, v in notes.items()}}


def a_pod(*rules: str, namespace: str = "team-a", **created: Any) -> Planted:
    """A pod as `guarded_pods.pod` makes it."""
    return Planted(set(rules), {"namespace": namespace, **created})


TREES = {
    "q1-namespaced": queue("queue-cluster-scoped", namespace="kai-scheduler"),
    "q2-no-limit": queue("queue-quota", gpu={"quota": 1, "overQuotaWeight": 1}),
    "q4-days": queue("queue-duration", preemptMinRuntime="1d"),
    "q5-absent-parent": queue("queue-tree", parent="nowhere"),
    "q5-twice-a": queue(called="q5-twice"),
    "q5-twice-b": queue("queue-tree", called="q5-twice"),
    "q7-sum": queue("queue-quota", gpu=FREE | {"quota": 2}),
    "q7-sum-a": queue(parent="q7-sum", gpu=FREE | {"quota": 1.5}),
    "q7-sum-b": queue(parent="q7-sum", gpu=FREE | {"quota": 1.5}),
    "q7-limited": queue(gpu=FREE | {"quota": 2, "limit": 2}),
    "q7-above-its-parents-limit": queue(
        "queue-quota", parent="q7-limited", gpu=FREE | {"quota": 1, "limit": 3}
    ),
    "q8-zero": queue(gpu=FREE | {"quota": 0}),
}
TWO_LEVELS = {
    "q6-top": queue(),
    "q6-second": queue(parent="q6-top"),
    "q6-third-level": queue("queue-depth", parent="q6-second"),
    "q6-lone": queue("queue-depth"),
}
LEAF, SCHEDULER, KEYS = "workload-leaf-queue", "workload-scheduler", "workload-known-keys"
PODS = {
    "right-cpu": a_pod(**of()),
    "right-gpu": a_pod(**of(), limits=WHOLE),
    "right-fraction": a_pod(**of(gpu_fraction="0.5")),
    "w1-no-queue": a_pod(LEAF),
    "w1-absent-queue": a_pod(LEAF, **of({"kai.scheduler/queue": "nowhere"})),
    "w1-parent": a_pod(LEAF, **of({"kai.scheduler/queue": "default"})),
    "w2-fraction-key": a_pod(
        KEYS, labels=IN_TEST, annotations={"kai.scheduler/gpu-fraction": "0.5"}
    ),
    "w3-fraction-above-1": a_pod(GPU, **of(gpu_fraction="1.5")),
    "w3-container-name": a_pod(GPU, **of(gpu_fraction="0.5", gpu_fraction_container_name="main")),
    "w6-label-alone": a_pod(SCHEDULER, labels=IN_TEST, scheduler=None),
    "w8-kube-system": a_pod("namespace-reserved", namespace="kube-system", labels=IN_TEST),
}
SHARING_OFF = {"w4-sharing-off": a_pod("workload-gpu-sharing", labels=IN_TEST, annotations=HALF)}
OTHERS = {
    "w1-deployment": {LEAF},
    "w5-number": {KEYS},
    "w9-time-slicing": {"gpu-one-sharer"},
    "t17-flag": {"vcluster-values"},
}
# Resource name -> the rules that refuse it.
REFUSED = OTHERS | {
    name: planted.rules
    for name, planted in (TREES | TWO_LEVELS | PODS | SHARING_OFF).items()
    if planted.rules
}
ADVISED = {"q8-zero": "queue-zero-quota"}


def program(charts: str) -> Callable[[], None]:
    """All of it, on one API server behind six providers, which are six clusters to the rules."""

    def run() -> None:
        kai = release("trees", "kai-scheduler", "v0.16.8", charts)
        declare(TREES, kai)
        declare(TWO_LEVELS, release("two", "kai-scheduler", "v0.9.3", charts))
        off = release("off", "kai-scheduler", "v0.16.8", charts, {"global": {"gpuSharing": False}})
        declare({"off-test": queue(called="test")} | SHARING_OFF, off)
        sliced = release("sliced", "kai-scheduler", "v0.16.8", charts)
        slicing = {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
        config = {"config": {"map": {"default": {"version": "v1", "sharing": slicing}}}}
        release("w9-time-slicing", "nvidia-device-plugin", "0.20.1", charts, config, sliced)
        flags = {"extraArgs": ["--v=2", "--authorization_mode", "AlwaysAllow"]}
        server = {"controlPlane": {"distro": {"k8s": {"apiServer": flags}}}}
        release("t17-flag", "vcluster", "0.36.1", charts, server, cluster("elsewhere"))
        main = release("main", "kai-scheduler", "v0.9.3", charts)
        declare({"main-default": queue(called="default")}, main)
        declare({"main-test": queue(parent="default", called="test")} | PODS, main)
        deployment("w1-deployment", main)
        number_in_a_kind_that_the_server_does_not_know("w5-number", main)

    return run


def cluster(name: str) -> pulumi.ResourceOptions:
    provider = k8s.Provider(name, context="kai-fleet-sandbox", cluster_identifier=name)
    return pulumi.ResourceOptions(provider=provider)


def release(
    name: str,
    chart: str,
    version: str,
    charts: str,
    values: dict[str, Any] | None = None,
    opts: pulumi.ResourceOptions | None = None,
) -> pulumi.ResourceOptions:
    """A release of a chart, on a cluster of that name unless one is given."""
    found = opts or cluster(name)
    k8s.helm.v3.Release(
        name if opts else f"{name}-kai",
        chart=f"{charts}/{chart}-{version}.tgz",
        namespace="team-t17" if chart == "vcluster" else chart,
        values=values or {"global": {"gpuSharing": True}},
        opts=found,
    )
    return found


def declare(all_of: dict[str, Planted], opts: pulumi.ResourceOptions) -> None:
    """The queues and pods of a table."""
    for name, planted in all_of.items():
        created = dict(planted.created)
        if "gpu" in created:
            _queue(name, opts, **created)
        else:
            namespace = created.pop("namespace")
            body = pod(name, **created)
            metadata = {**body["metadata"], "namespace": namespace}
            k8s.core.v1.Pod(name, metadata=metadata, spec=body["spec"], opts=opts)


def _queue(
    name: str,
    opts: pulumi.ResourceOptions,
    gpu: dict[str, float],
    parent: str | None = None,
    called: str | None = None,
    namespace: str | None = None,
    **spec: Any,
) -> None:
    metadata = {"name": called or name} | ({"namespace": namespace} if namespace else {})
    below = {"parentQueue": parent} if parent else {}
    CustomResource(
        name,
        api_version="scheduling.run.ai/v2",
        kind="Queue",
        metadata=metadata,
        spec={"resources": ALL_FREE | {"gpu": dict(gpu)}, **below, **spec},
        opts=opts,
    )


def deployment(name: str, opts: pulumi.ResourceOptions) -> None:
    """Its pods name a queue with a slip of the pen."""
    labels = {"kai.scheduler/queue": "tset", "app": name}
    template = pod(name, labels, HALF)
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "team-a"}
    k8s.apps.v1.Deployment(name, metadata=metadata, spec=spec, opts=opts)


def number_in_a_kind_that_the_server_does_not_know(name: str, opts: pulumi.ResourceOptions) -> None:
    """In a Pod the API server refuses a number at preview too, and the stack is not analyzed."""
    body = pod(name, IN_TEST, {"gpu-fraction": 0.5})  # type: ignore[dict-item]
    CustomResource(
        name,
        api_version="kubeflow.org/v1",
        kind="PyTorchJob",
        metadata={"name": name, "namespace": "team-a"},
        spec={"pytorchReplicaSpecs": {"Master": {"template": body}}},
        opts=opts,
    )
