"""Labels, annotations, resources and names that KAI reads or uses."""

SCHEDULER = "kai-scheduler"  # the schedulerName of pods that KAI schedules
KAI_NAMESPACE = "kai-scheduler"
RESERVATIONS = "kai-resource-reservation"  # the namespace of reservation pods
# Namespaces of KAI, the GPU operator and Kubernetes: their pods are no user's. In kai-scale-adjust
# are pods by which an autoscaler notices a pending pod that asks for a share of a GPU.
RESERVED = frozenset(
    {
        KAI_NAMESPACE,
        RESERVATIONS,
        "kai-scale-adjust",
        "gpu-operator",
        "kube-system",
    }
)
QUEUE_LABEL = "kai.scheduler/queue"
GPU_GROUP = "runai-gpu-group"  # a label of a pod that shares a GPU, and of its reservation
# An annotation of a reservation pod. In spite of its name its value is the UUID of the GPU.
GPU_UUID_ANNOTATION = "run.ai/reserve_for_gpu_index"
POD_GROUP = "pod-group-name"  # an annotation: the PodGroup of that name has the queue
# Annotations of a pod that asks for a share of GPUs: the fraction of each GPU, or MiB of each, and
# the number of GPUs.
FRACTION = "gpu-fraction"
MEMORY = "gpu-memory"
DEVICES = "gpu-fraction-num-devices"
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")  # entire GPUs
MEMORY_LABEL = "nvidia.com/gpu.memory"  # of a node: MiB of each of its GPUs
PRODUCT_LABEL = "nvidia.com/gpu.product"
