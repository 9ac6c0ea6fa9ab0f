"""What goes wrong with pods, and what the doctor says of it."""

from __future__ import annotations

from tests.unit.doctor_samples import (
    GROUP,
    event,
    meta,
    pod,
    reservation,
    sharing,
)
from tests.unit.doctor_spoils import (
    Case,
    add,
    both,
    edit,
    gone,
    scheduling,
    waiting,
)

PODS: dict[str, Case] = {
    "W1 an absent queue": (
        waiting(queue="nosuch"),
        "workload-leaf-queue",
        "pod w in namespace default",
        "names queue nosuch, which is not declared in ml",
        "write ",
    ),
    "W1 a parent queue": (
        waiting(queue="default"),
        "workload-leaf-queue",
        "pod w in namespace default",
        "which has children and so takes no pods",
        "write serve or train",
    ),
    "W1 no queue": (
        waiting(queue=None),
        "workload-leaf-queue",
        "pod w in namespace default",
        "names no queue",
        "write the label kai.scheduler/queue",
    ),
    "W2 a look-alike key on a pod that runs": (
        both(
            add(podgroups=[{"metadata": meta("pg-w", "default")}]),
            add(pods=[pod("w", node="ml-0", annotations={"kai.scheduler/gpu-fraction": "0.5"})]),
        ),
        "workload-known-keys",
        "pod w in namespace default",
        "has the annotation kai.scheduler/gpu-fraction",
        "write the annotation gpu-fraction",
    ),
    "W6 a queue and no scheduler": (
        waiting(spec={"schedulerName": "default-scheduler"}),
        "workload-scheduler",
        "pod w in namespace default",
        "no schedulerName, so KAI never sees it",
        "write schedulerName: kai-scheduler",
    ),
    "a full queue": (
        both(
            add(podgroups=[{"metadata": meta("pg-big", "default")}]),
            add(pods=[pod("big", "serve", node="ml-0", limits={"nvidia.com/gpu": "2"})]),
            waiting(queue="serve", limits={"nvidia.com/gpu": "1"}),
        ),
        "pending",
        "pod w in namespace default",
        "asks for 1 GPU, and queue serve holds 2 of at most 2",
        "raise gpu.limit of serve at kai-fleet:teams.ml.queues",
    ),
    "a full queue above": (
        both(
            add(podgroups=[{"metadata": meta("pg-big", "default")}]),
            add(pods=[pod("big", "train", node="ml-0", limits={"nvidia.com/gpu": "4"})]),
            waiting(queue="serve", limits={"nvidia.com/gpu": "1"}),
        ),
        "pending",
        "pod w in namespace default",
        "queue default holds 4.75 of at most 4",
        "raise kai-fleet:teams.ml.gpus",
    ),
    "more GPUs than a node has": (
        both(
            lambda lab: lab.host["resourcequotas"][0]["spec"].update(
                hard={"requests.nvidia.com/gpu": "8"}
            ),
            lambda lab: lab.settings["teams"]["ml"].update(gpus=8),
            edit("queues", "train", "spec", "resources", "gpu", "limit", value=-1),
            edit("queues", "default", "spec", "resources", "gpu", "limit", value=-1),
            waiting(limits={"nvidia.com/gpu": "6"}),
        ),
        "pending",
        "pod w in namespace default",
        "asks for 6 GPUs, and no Ready node has more than 4: it never runs",
        "ask for at most 4 in one pod, or add larger nodes",
    ),
    "a RuntimeClass of a pod": (
        waiting(spec={"runtimeClassName": "gvisor"}),
        "pending",
        "pod w in namespace default",
        "its RuntimeClass gvisor is not there",
        "drop runtimeClassName",
    ),
    "nobody schedules": (
        both(
            edit("deployments", "kai-scheduler-default", "spec", "replicas", value=0),
            waiting(),
        ),
        "pending",
        "pod w in namespace default",
        "no scheduler of KAI serves here",
        "mend KAI first: kai-parts of ml",
    ),
    "waiting, and nothing says why": (
        waiting(),
        "pending",
        "pod w in namespace default",
        "nothing known says why",
        "describe pod w",
    ),
    "no PodGroup": (
        add(pods=[pod("w", node="ml-0", annotations={"pod-group-name": ""})]),
        "pod-groups",
        "pod w in namespace default",
        "pod-grouper has made no PodGroup",
        "logs deployment/pod-grouper",
    ),
    "a PodGroup that is gone": (
        gone("podgroups", "pg-infer-a"),
        "pod-groups",
        "pod infer-a in namespace default",
        "its PodGroup is gone",
        "`kubectl --kubeconfig ml -n default delete pod infer-a`",
    ),
    "7 bound in name only, by condition": (
        waiting(status={"conditions": [{"type": "PodBound", "status": "True"}]}),
        "false-success",
        "pod w in namespace default",
        "it has no node: binding failed",
        "logs deployment/binder",
    ),
    "7 bound in name only, by event": (
        both(
            waiting(),
            add(bound=[event(pod("w"), "Pod bound successfully to node ml-0", "Bound")]),
        ),
        "false-success",
        "pod w in namespace default",
        "KAI's binder says that it bound it",
        "`kubectl --kubeconfig ml -n default delete pod w`",
    ),
    "sharing is off that the stack has on": (
        edit("configs", "kai-config", "spec", "admission", "gpuSharing", value=False),
        "gpu-sharing",
        "GPU sharing",
        "it is off, and 2 pods ask for a share",
        "get manifest kai-scheduler | kubectl --kubeconfig ml -n kai-scheduler apply -f -`",
    ),
    "the mode of sharing that v0.18 has is off": (
        edit("configs", "kai-config", "spec", "global", "gpuSharingMode", value="Disabled"),
        "gpu-sharing",
        "GPU sharing",
        "it is off, and 2 pods ask for a share",
        "get manifest kai-scheduler | kubectl --kubeconfig ml -n kai-scheduler apply -f -`",
    ),
    "another mode of sharing than the declared one": (
        edit("configs", "kai-config", "spec", "global", "gpuSharingMode", value="HamiCore"),
        "gpu-sharing",
        "GPU sharing",
        "its mode is HamiCore, and NonMemoryEnforced is declared",
        "get manifest kai-scheduler | kubectl --kubeconfig ml -n kai-scheduler apply -f -`",
    ),
    "sharing is off": (
        both(
            scheduling(gpuSharing=False),
            edit("configs", "kai-config", "spec", "admission", "gpuSharing", value=False),
        ),
        "gpu-sharing",
        "GPU sharing",
        "it is off, and 2 pods ask for a share",
        "write gpuSharing: true at kai-fleet:teams.ml.scheduler",
    ),
    "a share without a group": (
        edit("pods", "infer-a", "metadata", "labels", value={"kai.scheduler/queue": "train"}),
        "gpu-sharing",
        "pod infer-a in namespace default",
        "has no label runai-gpu-group",
        "`kubectl --kubeconfig ml -n default delete pod infer-a`",
    ),
    "too much on one GPU": (
        add(
            pods=[sharing("infer-c", "0.5")],
            podgroups=[{"metadata": meta("pg-infer-c", "default")}],
        ),
        "gpu-sharing",
        f"GPU group {GROUP}",
        "add up to 1.25 GPUs: infer-a, infer-b, infer-c",
        "delete one of them",
    ),
    "no reservation pod": (
        gone("pods", "gpu-reservation-ml-0-x7"),
        "reservation",
        f"GPU group {GROUP}",
        "no reservation pod holds its GPU",
        "`kubectl --kubeconfig ml -n default delete pod infer-a infer-b`",
    ),
    "a reservation pod that waits": (
        edit("pods", "gpu-reservation-ml-0-x7", "status", "phase", value="Pending"),
        "reservation",
        "reservation pod gpu-reservation-ml-0-x7",
        "it is Pending",
        "-n kai-resource-reservation delete pod gpu-reservation-ml-0-x7",
    ),
    "a reservation pod that finds no GPU": (
        both(
            gone("pods", "gpu-reservation-ml-0-x7"),
            lambda lab: lab.ml["pods"].append(reservation(index=None)),
        ),
        "reservation",
        "reservation pod gpu-reservation-ml-0-x7",
        "it runs and has not found its GPU",
        "it must see exactly one GPU",
    ),
    "a reservation pod that nobody needs": (
        both(gone("pods", "infer-a"), gone("pods", "infer-b")),
        "reservation",
        "reservation pod gpu-reservation-ml-0-x7",
        "holds a whole GPU that no pod shares",
        "delete pod gpu-reservation-ml-0-x7",
    ),
}
