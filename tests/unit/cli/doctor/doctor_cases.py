"""Each thing that goes wrong, made on a healthy stack, and what the doctor says of it."""

from datetime import timedelta
from typing import Any

from kai_fleet.cluster.store_use import EtcdUse, StoreUse
from tests.unit.cli.doctor.doctor_samples import (
    GROUP,
    NOW,
    by_hand,
    daemon_set,
    deployment,
    endpoints,
    node,
    pod,
    reservation,
    sharing,
    space,
)
from tests.unit.cli.doctor.doctor_spoils import (
    Case,
    add,
    both,
    crash,
    edit,
    gone,
    grouped,
    host,
    inside_runs,
    scheduling,
    set_to,
    volume,
    waiting,
    without,
)

READY = ("nodes", "ml-0", "status", "conditions")
ALLOCATABLE = ("nodes", "ml-0", "status", "allocatable")
CHART = ("statefulsets", "ml", "metadata", "labels", "chart")
MUTATING = ("mutatingwebhookconfigurations", "mutating-kai-admission")
GONE = "2026-11-01T11:00:00Z"
USED = {"kai-fleet/team": "old", "kai-fleet/namespace": "used"}
GOLD = {"kai.scheduler/node-pool": "gold"}
GPU = "nvidia.com/gpu"
BY_NAME = {"type": "Ingress", "host": "ml.example.com", "class": "traefik"}
CLAIM = {
    "metadata": {"name": "data-ml-0", "namespace": "team-ml"},
    "spec": {"resources": {"requests": {"storage": "5Gi"}}},
    "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}},
}
LIMIT = ("spec", "resources", "gpu", "limit")


def device_plugin(name: str) -> Any:
    containers = [{"name": "nvidia-device-plugin-ctr", "image": "nvidia/k8s-device-plugin"}]
    return pod(name, None, "ml-0", spec={"containers": containers, "schedulerName": "x"})


CLUSTERS: dict[str, Case] = {
    "a node is not Ready": (
        host(*READY, value=[]),
        "nodes | node ml-0 | not Ready | describe node ml-0",
    ),
    "no GPUs on the host": (
        host(*ALLOCATABLE, value={"cpu": "8"}),
        "nodes | cluster host | none of 1 nodes advertises nvidia.com/gpu | kai-fleet:gpu.provider",
    ),
    "fewer GPUs than granted": (
        host(*ALLOCATABLE, GPU, value="2"),
        "nodes | node pool kai-fleet/pool=ml | "
        "advertise 2 nvidia.com/gpu, and team ml is granted 4 | add nodes",
    ),
    "GPUs that are cut into slices": (
        host(*ALLOCATABLE, value={"nvidia.com/mig-1g.10gb": "14"}),
        "nodes | node pool kai-fleet/pool=ml | "
        "slices are called nvidia.com/mig-1g.10gb | how many of which at kai-fleet:teams.ml.gpus",
    ),
    "no node of the pool": (
        host("nodes", "ml-0", "metadata", "labels", value={}),
        "nodes | node pool kai-fleet/pool=ml | no node with these | "
        "kubectl label node <node> kai-fleet/pool=ml",
    ),
    "a node without the label of its memory": (
        host("nodes", "ml-0", "metadata", "labels", value={"kai-fleet/pool": "ml"}),
        "nodes | node ml-0 | no label nvidia.com/gpu.memory | "
        "label node ml-0 nvidia.com/gpu.memory=<MiB>",
    ),
    "a pool that the team does not tolerate": (
        host("nodes", "ml-0", "spec", "taints", value=[{"key": "a", "effect": "NoSchedule"}]),
        "nodes | node pool kai-fleet/pool=ml | has a taint (a) | write tolerations: [{key:",
    ),
    "nodes of other pools inside": (
        add(nodes=[node("research-0")]),
        "nodes | node research-0 | is of another pool | kai-fleet:teams.ml.vcluster.values",
    ),
    "a node that is not inside": (
        add("host", nodes=[node("ml-1")]),
        "nodes | node ml-1 | not there | delete pod -l app=vcluster,release=ml",
    ),
    "no RuntimeClass inside": (
        gone("runtimeclasses", "nvidia"),
        "runtime-class | RuntimeClass nvidia | reservation pods | sync.fromHost.runtimeClasses",
    ),
    "no RuntimeClass on the host": (
        gone("runtimeclasses", "nvidia", "host"),
        "runtime-class | RuntimeClass nvidia | is not there | kai-fleet:gpu.provider",
    ),
    "a StorageClass that is not there": (
        both(
            add("host", storageclasses=[space("gp3")]),
            lambda lab: lab.settings.update(vcluster={"storageClass": "fast"}),
        ),
        "classes | StorageClass fast | does not become ready | "
        "write one that is there (standard and gp3) at kai-fleet:vcluster.storageClass",
    ),
    "an Ingress class that is not there": (
        lambda lab: lab.settings["teams"]["ml"].update(vcluster={"access": BY_NAME}),
        "classes | IngressClass traefik | does not become ready | "
        "write one that is there (none) at kai-fleet:teams.ml.vcluster.access.class",
    ),
    "a priority class that is not there": (
        lambda lab: lab.settings.update(isolation={"priorityClasses": ["urgent"]}),
        "classes | PriorityClass urgent | pods that name it are refused | "
        "at kai-fleet:isolation.priorityClasses",
    ),
    "a runtime class that is not there": (
        lambda lab: lab.settings.update(isolation={"runtimeClasses": ["gvisor", "wasm"]}),
        "classes | RuntimeClass wasm | pods that name it are refused | "
        "at kai-fleet:isolation.runtimeClasses",
    ),
    "a Kubernetes that is too old": (
        lambda lab: lab.unserved.add("validatingadmissionpolicies"),
        "kubernetes | Kubernetes | older than 1.30 | upgrade it",
    ),
    "more GPUs than all nodes have": (
        both(
            lambda lab: lab.settings["teams"]["ml"].update(gpus=6),
            lambda lab: lab.settings["teams"]["ml"].pop("nodePool"),
        ),
        "nodes | node pool of all nodes | advertise 4 nvidia.com/gpu, and team ml is granted 6 | "
        "lower kai-fleet:teams.ml.gpus",
    ),
    "a device plugin without its pods": (
        add("host", daemonsets=[daemon_set("nvidia-driver")]),
        "gpu-stack | DaemonSet gpu-operator/nvidia-driver | 0 of 1 pods are Ready | "
        "get pods,events",
    ),
    "two device plugins on a node": (
        add("host", pods=[device_plugin("ours"), device_plugin("theirs")]),
        "gpu-stack | node ml-0 | several device plugins (default/ours, default/theirs) | keep one",
    ),
    "a device plugin that shares GPUs behind KAI's back": (
        host("nodes", "ml-0", "metadata", "labels", "nvidia.com/gpu.replicas", value="4"),
        "gpu-stack | node ml-0 | shares GPUs by itself (nvidia.com/gpu.replicas=4) | "
        "gpuSharing: false at kai-fleet:teams.ml.scheduler",
    ),
    "no namespace of a team with a stack of its own": (
        lambda lab: lab.settings.update(teamStacks={"nlp": {"nodePool": {"p": "nlp"}, "gpus": 2}}),
        "vcluster | namespace team-nlp | is not there | make up STACK=lab",
    ),
    "no StatefulSet, and the chart's Service": (
        both(
            gone("statefulsets", "ml", "host"),
            add("host", services=[space("ml", namespace="team-ml")]),
        ),
        "vcluster | vCluster ml | is not there | `helm -n team-ml get manifest ml",
    ),
    "a vCluster that is scaled to 0": (
        host("statefulsets", "ml", "spec", "replicas", value=0),
        "vcluster | vCluster ml | scaled to 0 | "
        "`kubectl -n team-ml scale statefulset ml --replicas=1`",
    ),
    "a vCluster that crash-loops": (
        crash("sync.fromHost.nodes.enabled is false, but required if using virtual scheduler"),
        "vcluster | vCluster ml | a virtual scheduler needs the host's nodes | make up STACK=lab",
    ),
    "no StorageClass": (
        volume('storageclass.storage.k8s.io "fast" not found'),
        "vcluster | vCluster ml | StorageClass that is not there | make that StorageClass",
    ),
    "an API that does not answer": (
        set_to("unreached", "it does not answer in time"),
        "vcluster | vCluster ml | its API: it does not answer in time | "
        "-n team-ml get pods,services,secrets",
    ),
    "an API that only the host reaches": (
        both(
            lambda lab: lab.settings["teams"]["ml"].update(
                vcluster={"access": {"type": "ClusterIP"}}
            ),
            set_to("unreached", "it cannot be connected to"),
        ),
        "vcluster | vCluster ml | is reached from inside the host only | logs ml-0",
    ),
    "a certificate that expired": (
        set_to("certificate_ends", NOW - timedelta(days=1)),
        "vcluster | vCluster ml | expired on 2026-10-31 | rollout restart statefulset ml",
    ),
    "a volume of a store that is nearly full": (
        both(
            set_to("store", StoreUse({"data-ml-0": 0.91})),
            add("host", persistentvolumeclaims=[CLAIM]),
        ),
        "vcluster | store of vCluster ml | its volume data-ml-0 is 91% full | patch pvc data-ml-0",
    ),
    "an etcd of a store that is nearly full": (
        set_to("store", StoreUse({}, {"ml-etcd-0": EtcdUse(190, 20, 200)})),
        "vcluster | store of vCluster ml | its etcd ml-etcd-0 is 95% full | defrag --cluster",
    ),
    "an etcd that holds its quota": (
        set_to("store", StoreUse({}, {"ml-etcd-0": EtcdUse(190, 180, 200)})),
        "vcluster | store of vCluster ml | its etcd ml-etcd-0 is 95% full"
        " | --quota-backend-bytes=400",
    ),
    "a namespace that does not go": (
        add(namespaces=[space("old", deletionTimestamp=GONE)]),
        "leftovers | namespace old | is being deleted and does not go | get namespace old -o yaml",
    ),
    "a shard that a newer version left": (
        inside_runs("v0.9.3"),
        "leftovers | SchedulingShard default | the operator of v0.9.3 makes a second scheduler | "
        "delete schedulingshard default",
    ),
    "a scheduler whose shard is gone": (
        gone("schedulingshards", "default"),
        "leftovers | Deployment kai-scheduler-default | its SchedulingShard is gone | "
        "delete deployment kai-scheduler-default",
    ),
    "a cluster role of a removed team": (
        add("host", clusterroles=[space("vc-old-v-team-old")]),
        "leftovers | ClusterRole vc-old-v-team-old | whose namespace is gone | "
        "delete clusterrole,clusterrolebinding vc-old-v-team-old",
    ),
    "the namespace of a team that the file does not have": (
        add("host", namespaces=[space("team-old", labels={"kai-fleet/team": "old"})]),
        "leftovers | namespace team-old | another program has the team | leave it to",
    ),
    "such a namespace that others made": (
        add("host", namespaces=[space("theirs", labels=USED)]),
        "leftovers | namespace theirs | another program has the team | leave it to",
    ),
    "a KAI that nobody declared": (
        add("host", deployments=[deployment("kai-operator")]),
        "leftovers | KAI v0.16.8 | the stack declares none there | leave it to whoever has it",
    ),
    "an absent part of KAI": (
        gone("deployments", "binder"),
        "kai-parts | Deployment binder | is not there | get manifest kai-scheduler",
    ),
    "no KAI": (
        set_to("ml.deployments", []),
        "kai-parts | KAI v0.16.8 | not installed | make up STACK=lab",
    ),
    "a scheduler that is scaled to 0": (
        edit("deployments", "kai-scheduler-default", "spec", "replicas", value=0),
        "kai-parts | Deployment kai-scheduler-default | is scaled to 0 | "
        "-n kai-scheduler scale deployment kai-scheduler-default --replicas=1`",
    ),
    "kai-config is not Ready": (
        edit("configs", "kai-config", "status", value={}),
        "kai-parts | configs.kai.scheduler/kai-config | its operator has not said Ready | "
        "get pods,jobs,events",
    ),
    "a hook job without a node": (
        add(pods=[pod("x", None, namespace="kai-scheduler", labels={"job-name": "crd-upgrader"})]),
        "kai-parts | Job crd-upgrader | Helm waits for it | free some cpu",
    ),
    "a webhook without its Service": (
        gone("services", "admission"),
        "webhooks | webhook validating-kai-admission | so pods are refused | "
        "delete validatingwebhookconfiguration validating-kai-admission",
    ),
    "a webhook that does not answer": (
        set_to("ml.endpointslices", [endpoints("admission")]),
        "webhooks | webhook kai-queue-validation-v2 | nothing answers for its Service | "
        "deployments,endpoints",
    ),
    "a webhook without an authority": (
        edit(*MUTATING, "webhooks", 0, "clientConfig", "caBundle", value=""),
        "webhooks | webhook mutating-kai-admission | no certificate authority | make up STACK=lab",
    ),
    "a missing queue": (
        gone("queues", "train"),
        "queues | queue train | is not there | make up STACK=lab",
    ),
    "a parent that is not there": (
        edit("queues", "train", "spec", "parentQueue", value="nosuch"),
        "queues | queue train | its parent nosuch is not there | kai-fleet:teams.ml.queues",
    ),
    "the chart's own queues": (
        add(queues=[by_hand("default-queue")]),
        "queues | queue default-queue | KAI's chart made it | createDefaultQueue",
    ),
    "a queue made by hand": (
        add(queues=[by_hand("mine")]),
        "queues | queue mine | the stack does not declare it | delete queue mine",
    ),
    "a shard without nodes": (
        scheduling(shards={"gold": {}}),
        "shards | SchedulingShard gold | no node has the label kai.scheduler/node-pool=gold | "
        "kubectl label node",
    ),
    "a topology by labels that no node has": (
        scheduling(topologies={"racks": ["rack"]}),
        "shards | Topology racks | no node has the label rack | label the nodes",
    ),
    "no guard inside": (
        without("kai-fleet-queues-ml"),
        "guard | ValidatingAdmissionPolicyBinding kai-fleet-queues-ml | "
        "a wrong one, are admitted | make up STACK=lab",
    ),
}

PODS: dict[str, Case] = {
    "an absent queue": (
        waiting(queue="nosuch"),
        "workload-leaf-queue | pod default/w | names queue nosuch, which is not | serve or train",
    ),
    "no queue": (
        waiting(queue=None),
        "workload-leaf-queue | pod default/w | names no queue | "
        "write the label kai.scheduler/queue",
    ),
    "a look-alike key on a pod that runs": (
        grouped(pod("w", node="ml-0", annotations={"kai.scheduler/gpu-fraction": "0.5"})),
        "workload-known-keys | pod default/w | has the annotation kai.scheduler/gpu-fraction | "
        "write the annotation gpu-fraction",
    ),
    "a queue and no scheduler": (
        waiting(spec={"schedulerName": "default-scheduler"}),
        "workload-scheduler | pod default/w | and another scheduler: KAI never sees it | "
        "write schedulerName: kai-scheduler",
    ),
    "a full queue": (
        both(
            grouped(pod("big", "serve", node="ml-0", limits={GPU: "2"})),
            waiting(queue="serve", limits={GPU: "1"}),
        ),
        "pending | pod default/w | asks for 1 GPU, and queue serve holds 2 of at most 2 | "
        "raise gpu.limit of serve at kai-fleet:teams.ml.queues",
    ),
    "a full queue above": (
        both(
            grouped(pod("big", "train", node="ml-0", limits={GPU: "4"})),
            waiting(queue="serve", limits={GPU: "1"}),
        ),
        "pending | pod default/w | queue default holds 4.75 of at most 4 | "
        "raise kai-fleet:teams.ml.gpus",
    ),
    "more than a queue may hold": (
        waiting(queue="serve", limits={GPU: "9"}),
        "pending | pod default/w | "
        "it asks for 9 GPUs, and queue serve may hold at most 2: it never runs | "
        "ask for at most 2, or raise gpu.limit of serve at kai-fleet:teams.ml.queues",
    ),
    "more GPUs than a node has": (
        both(
            lambda lab: lab.settings["teams"]["ml"].update(gpus=8),
            edit("queues", "train", *LIMIT, value=-1),
            edit("queues", "default", *LIMIT, value=-1),
            waiting(limits={GPU: "6"}),
        ),
        "pending | pod default/w | "
        "asks for 6 GPUs, and no Ready node has more than 4: it never | "
        "ask for at most 4 in one pod, or add larger nodes",
    ),
    "a RuntimeClass of a pod": (
        waiting(spec={"runtimeClassName": "gvisor"}),
        "pending | pod default/w | RuntimeClass gvisor is not there | drop runtimeClassName",
    ),
    "nobody schedules": (
        both(edit("deployments", "kai-scheduler-default", "spec", "replicas", value=0), waiting()),
        "pending | pod default/w | no scheduler of KAI serves here | kai-parts of ml",
    ),
    "a queue that is gone": (
        both(gone("queues", "train"), waiting()),
        "pending | pod default/w | its queue train is declared, and is not there | "
        "make up STACK=lab",
    ),
    "another shard than its queue's": (
        both(edit("queues", "train", "metadata", "labels", value=GOLD), waiting()),
        "pending | pod default/w | its queue train is of shard gold, and the pod of default | "
        "write the label kai.scheduler/node-pool: gold",
    ),
    "another shard than that of the queue of its PodGroup": (
        both(
            edit("queues", "train", "metadata", "labels", value=GOLD),
            waiting(queue="serve"),
            edit("podgroups", "pg-w", "spec", value={"queue": "train"}),
        ),
        "pending | pod default/w | its queue train is of shard gold, and the pod of default | "
        "write the label kai.scheduler/node-pool: gold",
    ),
    "a label with the name of the default shard": (
        waiting(labels={"kai.scheduler/node-pool": "default"}),
        "pending | pod default/w | has the label kai.scheduler/node-pool: default, and only pods "
        "without the label are of the default shard | drop the label kai.scheduler/node-pool",
    ),
    "a queue that is labelled with the name of the default shard": (
        both(
            edit(
                "queues",
                "train",
                "metadata",
                "labels",
                value={"kai.scheduler/node-pool": "default"},
            ),
            waiting(),
        ),
        "pending | pod default/w | its queue train has the label kai.scheduler/node-pool: default, "
        "and only queues without | take the label kai.scheduler/node-pool off the queue",
    ),
    "waiting, and nothing gives a reason": (
        waiting(),
        "pending | pod default/w | nothing known gives a reason | describe pod w",
    ),
    "no PodGroup": (
        waiting(annotations={"pod-group-name": ""}),
        "pod-groups | pod default/w | pod-grouper has made no PodGroup | "
        "logs deployment/pod-grouper",
    ),
    "a PodGroup that is gone": (
        gone("podgroups", "pg-infer-a"),
        "pod-groups | pod default/infer-a | its PodGroup is gone | "
        "`kubectl --kubeconfig ml -n default delete pod infer-a`",
    ),
    "bound in name only, by condition": (
        waiting(status={"conditions": [{"type": "PodBound", "status": "True"}]}),
        "false-success | pod default/w | it has no node: binding failed | logs deployment/binder",
    ),
    "an image that is not there": (
        waiting(
            spec={"nodeName": "ml-0"},
            status={"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
        ),
        "pending | pod default/w | its container does not start: ErrImagePull | describe pod w",
    ),
    "sharing that somebody switched off": (
        edit("configs", "kai-config", "spec", "global", "gpuSharingMode", value="Disabled"),
        "gpu-sharing | GPU sharing | somebody switched it off (2 pods ask for a share) | "
        "get manifest kai-scheduler",
    ),
    "sharing is off": (
        both(
            scheduling(gpuSharing=False),
            edit("configs", "kai-config", "spec", "admission", "gpuSharing", value=False),
        ),
        "gpu-sharing | GPU sharing | 2 pods ask for a share | "
        "write gpuSharing: true at kai-fleet:teams.ml.scheduler",
    ),
    "a share without a group": (
        edit("pods", "infer-a", "metadata", "labels", value={"kai.scheduler/queue": "train"}),
        "gpu-sharing | pod default/infer-a | has no label runai-gpu-group | "
        "`kubectl --kubeconfig ml -n default delete pod infer-a`",
    ),
    "too much on one GPU": (
        grouped(sharing("c", "0.5")),
        "gpu-sharing | pod default/infer-a, default/infer-b and default/c | "
        "whose pods hold 1.25 GPUs together | "
        "delete one of them",
    ),
    "too much memory on one GPU": (
        grouped(
            pod(
                "c",
                node="ml-0",
                labels={"runai-gpu-group": GROUP},
                annotations={"gpu-memory": "40960"},
            )
        ),
        "gpu-sharing | pod default/infer-a, default/infer-b and default/c | "
        "whose pods hold 1.26 GPUs together | "
        "delete one of them",
    ),
    "no reservation pod": (
        gone("pods", "gpu-reservation-ml-0-x7"),
        "reservation | pod default/infer-a and default/infer-b | "
        "shares GPU group 407623a2-216d-4c06-b5b8-f8345bf28b5a, which no reservation pod holds | "
        "`kubectl --kubeconfig ml -n default delete pod infer-a infer-b`",
    ),
    "a reservation pod that finds no GPU": (
        both(gone("pods", "gpu-reservation-ml-0-x7"), add(pods=[reservation(index=None)])),
        "reservation | gpu-reservation-ml-0-x7 | has not found its GPU | must see exactly one GPU",
    ),
    "a reservation pod that nobody needs": (
        both(gone("pods", "infer-a"), gone("pods", "infer-b")),
        "reservation | gpu-reservation-ml-0-x7 | holds a whole GPU that no pod shares | "
        "delete pod gpu-reservation",
    ),
}

CASES = {**CLUSTERS, **PODS}
