"""What KAI's own documentation and examples have people apply, by what of it matters here.

Read from `docs/` and `examples/` of each line's tag, and written anew: labels, annotations,
schedulerName, resources and kinds are as there; images, commands and names of jobs are not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kai_fleet.releases import version_key

QUEUE = "kai.scheduler/queue"
ONE = {"limits": {"nvidia.com/gpu": "1"}}
FOUR = {"requests": {"nvidia.com/gpu": "4"}, "limits": {"nvidia.com/gpu": "4"}}
SKIP = {"kai.scheduler/skip-podgrouper": "true"}
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """`since` is the first line whose sources show it.

    `refused` are the rules that stop it where a team's guard is on, `denied` what the guard says of
    its pods; "" where it takes them.
    """

    name: str
    documents: tuple[Document, ...]
    since: str = "v0.7.11"
    refused: frozenset[str] = frozenset()
    denied: str = ""

    def shown_in(self, version: str) -> bool:
        """Whether that version's sources have it."""
        return version_key(version) >= version_key(self.since)

    @property
    def pods(self) -> list[dict[str, Any]]:
        """Its pods, and those of its Jobs as the Job's controller makes them."""
        found = []
        for document in self.documents:
            if document["kind"] == "Pod":
                found.append(dict(document))
            for template in _templates(document):
                metadata = {**template.get("metadata", {}), "name": document["metadata"]["name"]}
                found.append(
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "metadata": metadata,
                        "spec": template["spec"],
                    }
                )
        return found


def _templates(document: Document) -> list[dict[str, Any]]:
    spec = document.get("spec", {})
    if "template" in spec:
        return [spec["template"]]
    parts = [*spec.get("pytorchReplicaSpecs", {}).values()]
    cluster = spec.get("rayClusterSpec", {})
    parts += [
        *([cluster["headGroupSpec"]] if cluster else []),
        *cluster.get("workerGroupSpecs", []),
    ]
    return [part["template"] for part in parts]


def spec(*containers: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    listed = [{"image": "i", **container} for container in containers]
    return {"schedulerName": "kai-scheduler", "containers": listed, **more}


def pod(queue: str, *containers: Mapping[str, Any], labels: Any = None, annotations: Any = None,
        **more: Any) -> Document:  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "labels": {QUEUE: queue, **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": spec(*(containers or ({"name": "main"},)), **more),
    }


def job(name: str, resources: Any = ONE, *, on_job: Any = None, on_pods: Any = None,
        labels: Any = None) -> Document:  # fmt: skip
    template = {
        "metadata": {"labels": labels or {}, "annotations": on_pods or {}},
        "spec": spec({"name": "main", "resources": resources}, restartPolicy="Never"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": on_job or {}},
        "spec": {"parallelism": 2, "completions": 2, "template": template},
    }


def group(name: str, queue: str, **more: Any) -> Document:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"queue": queue, "minMember": 2, **more},
    }


def pytorch(queue: str, **resources: Any) -> Document:
    template = {"spec": spec({"name": "pytorch", "resources": resources})}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "distributed", "labels": {QUEUE: queue}},
        "spec": {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "template": template},
                "Worker": {"replicas": 2, "template": template},
            }
        },
    }


def ray(queue: str) -> Document:
    template = {"spec": spec({"name": "ray", "resources": ONE})}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "sample", "labels": {QUEUE: queue}},
        "spec": {
            "rayClusterSpec": {
                "headGroupSpec": {"template": template},
                "workerGroupSpecs": [{"replicas": 2, "template": template}],
            }
        },
    }


ON_THE_OWNER = frozenset({"workload-leaf-queue"})
NO_QUEUE = "names no queue on the pod itself"


def shown(name: str, *documents: Document, **more: Any) -> Example:
    return Example(name, documents, **more)


def examples(queue: str) -> list[Example]:
    """All of them, for a leaf of that name: theirs is `test`, later `default-queue`."""
    labels = {QUEUE: queue}
    half = {"gpu-fraction": "0.5"}
    mps = [{"name": "mps", "hostPath": {"path": "/tmp/nvidia-mps", "type": "DirectoryOrCreate"}}]
    cpu = {"requests": {"cpu": "100m", "memory": "250M"}}
    return [
        shown("cpu-only pod", pod(queue, {"name": "main", "resources": cpu})),
        shown("gpu pod", pod(queue, {"name": "main", "resources": ONE})),
        shown("half a GPU", pod(queue, annotations=half)),
        shown("MPS by a hostPath", pod(queue, annotations=half, volumes=mps)),
        shown(
            "DRA",
            pod(
                queue,
                {"name": "main", "resources": {**ONE, "claims": [{"name": "imex-channel-0"}]}},
                resourceClaims=[
                    {"name": "imex-channel-0", "resourceClaimTemplateName": "imex-channel-0"}
                ],
            ),
        ),
        shown("PyTorch", pytorch(queue, **ONE), refused=ON_THE_OWNER, denied=NO_QUEUE),
        shown(
            "half a GPU for an init container",
            pod(
                queue,
                {"name": "main"},
                annotations={**half, "gpu-fraction-container-name": "gpu-init"},
                initContainers=[{"name": "gpu-init", "image": "i"}],
            ),
            since="v0.12",
        ),
        shown("Ray", ray(queue), since="v0.13", refused=ON_THE_OWNER, denied=NO_QUEUE),
        shown(
            "batch job with a minimum",
            job("batch", labels=labels, on_job={"kai.scheduler/batch-min-member": "2"}),
            since="v0.14",
        ),
        shown(
            "job in an external PodGroup that has the queue",
            group("batch", queue, subGroups=[{"name": "workers", "minMember": 2}]),
            job(
                "batch",
                on_job=SKIP,
                on_pods={"pod-group-name": "batch"},
                labels={"kai.scheduler/subgroup-name": "workers"},
            ),
            since="v0.15.1",
        ),
        shown(
            "a pod that waits before it preempts",
            pod(
                queue,
                annotations={"kai.scheduler/preemption-delay": "2m"},
                priorityClassName="build-preemptible",
            ),
            since="v0.17",
        ),
        shown(
            "a pod of a gang that goes stale",
            pod(queue, annotations={"kai.scheduler/staleness-grace-period": "5s"}),
            since="v0.17",
        ),
    ]


def _queue(name: str, parent: str | None = None, **shares: tuple[float, float]) -> Document:
    resources = {
        resource: {"quota": quota, "limit": limit, "overQuotaWeight": 1}
        for resource, (quota, limit) in shares.items()
    }
    above = {"parentQueue": parent} if parent else {}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {**above, "resources": resources},
    }


FREE = dict.fromkeys(("cpu", "gpu", "memory"), (-1, -1))
NONE = dict.fromkeys(("cpu", "gpu", "memory"), (0, -1))
DELAY = NONE | {"cpu": (500, 500)}
# That of docs/ml-engineers.md.
OWN_TREE = (
    _queue("default", **FREE),
    _queue("train", "default", **FREE),
    _queue("serve", "default", **FREE),
)
# Their trees: of the quick start before v0.12 and after, with a limit, and of one CPU's half.
TREES = {
    "free": (_queue("default", **FREE), _queue("test", "default", **FREE)),
    "none guaranteed": (_queue("top", **NONE), _queue("test", "top", **NONE)),
    "one GPU": (_queue("default", **FREE), _queue("test", "default", **FREE | {"gpu": (1, 1)})),
    "half a CPU": (_queue("top", **DELAY), _queue("test", "top", **DELAY)),
}
