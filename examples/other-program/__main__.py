"""A team's training job and vLLM server on a cluster that somebody else set KAI up on.

Nothing here comes from kai-fleet. Preview it with the rules:

    pulumi preview --policy-pack ../../.venv/bin/kai-fleet-policy-pack \\
        --policy-pack-config rules.json
"""

import pulumi
import pulumi_kubernetes as kubernetes

fraction = pulumi.Config().get("fraction") or "0.5"


def queue(name: str, gpus: int, parent: str | None = None) -> None:
    """A KAI queue: cpu and memory unlimited, whole GPUs guaranteed."""
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec = {"resources": {"cpu": free, "memory": free, "gpu": {**free, "quota": gpus}}}
    kubernetes.apiextensions.CustomResource(
        name,
        api_version="scheduling.run.ai/v2",
        kind="Queue",
        metadata={"name": name},
        spec={**spec, "parentQueue": parent} if parent else spec,
    )


def labels(app: str) -> dict[str, str]:
    """The labels of a pod of an app: KAI reads the queue from them."""
    return {"app": app, "kai.scheduler/queue": app}


queue("web", gpus=4)
queue("train", gpus=3, parent="web")
queue("serve", gpus=1, parent="web")

kubernetes.batch.v1.Job(
    "train",
    metadata={"name": "train", "namespace": "web"},
    spec={
        "template": {
            "metadata": {"labels": labels("train")},
            "spec": {
                "scheduler_name": "kai-scheduler",
                "restart_policy": "Never",
                "containers": [
                    {
                        "name": "train",
                        "image": "pytorch/pytorch:latest",
                        "resources": {"limits": {"nvidia.com/gpu": "2"}},
                    }
                ],
            },
        }
    },
)

kubernetes.apps.v1.Deployment(
    "serve",
    metadata={"name": "serve", "namespace": "web"},
    spec={
        "selector": {"match_labels": {"app": "serve"}},
        "template": {
            "metadata": {"labels": labels("serve"), "annotations": {"gpu-fraction": fraction}},
            "spec": {
                "scheduler_name": "kai-scheduler",
                "containers": [
                    {
                        "name": "vllm",
                        "image": "vllm/vllm-openai:latest",
                        "args": [
                            "--model=Qwen/Qwen2.5-1.5B-Instruct",
                            f"--gpu-memory-utilization={fraction}",
                        ],
                    }
                ],
            },
        },
    },
)
