"""Labels, annotations, resources and names that KAI reads or uses."""

from typing import Final

SCHEDULER: Final = "kai-scheduler"  # the schedulerName of pods that KAI schedules
KAI_NAMESPACE: Final = "kai-scheduler"
RESERVATIONS: Final = "kai-resource-reservation"  # the namespace of reservation pods
# Namespaces of KAI, the GPU operator and Kubernetes: their pods are no user's. In kai-scale-adjust
# are pods by which an autoscaler notices a pending pod that asks for a share of a GPU.
RESERVED: Final = frozenset(
    {
        KAI_NAMESPACE,
        RESERVATIONS,
        "kai-scale-adjust",
        "gpu-operator",
        "kube-system",
    }
)
QUEUE_LABEL: Final = "kai.scheduler/queue"
GPU_GROUP: Final = "runai-gpu-group"  # a label of a pod that shares a GPU, and of its reservation
# An annotation of a reservation pod. In spite of its name its value is the UUID of the GPU.
GPU_UUID_ANNOTATION: Final = "run.ai/reserve_for_gpu_index"
POD_GROUP: Final = "pod-group-name"  # an annotation: the PodGroup of that name has the queue
# Annotations of a pod that asks for a share of GPUs: the fraction of each GPU, or MiB of each, and
# the number of GPUs.
FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
DEVICES: Final = "gpu-fraction-num-devices"
GPU_RESOURCES: Final = ("nvidia.com/gpu", "amd.com/gpu")  # entire GPUs
MEMORY_LABEL: Final = "nvidia.com/gpu.memory"  # of a node: MiB of each of its GPUs
PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
