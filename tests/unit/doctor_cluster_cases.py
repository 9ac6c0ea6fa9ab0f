"""What goes wrong with nodes, vClusters, KAI and its queues, and what the doctor says of it."""

from datetime import timedelta

from tests.unit.doctor_samples import (
    NOW,
    Lab,
    deployment,
    endpoints,
    meta,
    node,
    pod,
    release_secret,
)
from tests.unit.doctor_spoils import (
    OF_ML,
    Case,
    add,
    both,
    by_hand,
    edit,
    gone,
    inside_runs,
    of_version,
    scheduling,
    waiting,
)


def old_vcluster(lab: Lab) -> None:
    """v0.34 wanted and running, when it is past its end of life."""
    lab.settings["vcluster"] = {**lab.settings.get("vcluster", {}), "version": "v0.34.7"}
    lab.named("statefulsets", "ml", "host")["metadata"]["labels"]["chart"] = "vcluster-0.34.7"


CLUSTERS: dict[str, Case] = {
    "no GPUs in the pool": (
        edit("nodes", "ml-0", "status", "allocatable", value={"cpu": "8"}, where="host"),
        "nodes",
        "node pool kai-fleet/pool=ml of team ml",
        "its 1 Ready node advertises no nvidia.com/gpu",
        "kai-fleet:teams.ml.gpus",
    ),
    "no GPUs on the host": (
        edit("nodes", "ml-0", "status", "allocatable", value={"cpu": "8"}, where="host"),
        "nodes",
        "GPUs of the host",
        "none of 1 nodes advertises nvidia.com/gpu",
        "kai-fleet:gpu.provider",
    ),
    "V16 the selector matches no node": (
        edit("nodes", "ml-0", "metadata", "labels", value={}, where="host"),
        "nodes",
        "node pool kai-fleet/pool=ml",
        "no node has these labels",
        "kubectl label node <node> kai-fleet/pool=ml",
    ),
    "V16 no node of the pool is Ready": (
        edit("nodes", "ml-0", "status", "conditions", value=[], where="host"),
        "nodes",
        "node pool kai-fleet/pool=ml",
        "none of its 1 nodes is Ready",
        "nodePool",
    ),
    "fewer GPUs than promised": (
        edit("nodes", "ml-0", "status", "allocatable", "nvidia.com/gpu", value="2", where="host"),
        "nodes",
        "node pool",
        "have 2 GPUs, and the team is to have 4",
        "lower kai-fleet:teams.ml.gpus",
    ),
    "V1 nodes of other pools inside": (
        lambda lab: lab.ml["nodes"].append(node("research-0")),
        "nodes",
        "nodes inside",
        "sees nodes of other pools (research-0)",
        "vcluster.values",
    ),
    "V8 no RuntimeClass inside": (
        gone("runtimeclasses", "nvidia"),
        "runtime-class",
        "RuntimeClass nvidia",
        "reservation pods are rejected",
        "sync.fromHost.runtimeClasses",
    ),
    "V8 no RuntimeClass on the host": (
        gone("runtimeclasses", "nvidia", "host"),
        "runtime-class",
        "RuntimeClass nvidia",
        "it is not there",
        "kai-fleet:gpu.provider",
    ),
    "T19 tokens of pods that never ran": (
        edit(
            *("resourcequotas", "objects", "status"),
            value={"hard": {"secrets": "5k"}, "used": {"secrets": "4001"}},
            where="host",
        ),
        "isolation",
        "Secrets in namespace team-ml",
        "there are 4001 of at most 5000",
        "xargs -r kubectl -n team-ml delete secret",
    ),
    "no StatefulSet": (
        gone("statefulsets", "ml", "host"),
        "vcluster",
        "vCluster ml",
        "StatefulSet ml is not there",
        "make up STACK=lab",
    ),
    "the vCluster crash-loops": (
        both(
            edit("statefulsets", "ml", "status", value={"readyReplicas": 0}, where="host"),
            lambda lab: lab.host["pods"].append(
                {
                    "metadata": meta(
                        "ml-0",
                        "team-ml",
                        labels=OF_ML,
                        ownerReferences=[{"kind": "StatefulSet", "name": "ml"}],
                    ),
                    "spec": {"containers": [{"name": "syncer"}]},
                    "status": {
                        "phase": "Running",
                        "containerStatuses": [
                            {
                                "lastState": {
                                    "terminated": {
                                        "message": "sync.fromHost.nodes.enabled is false, but"
                                        " required if using hybrid scheduling or virtual scheduler"
                                    }
                                }
                            }
                        ],
                    },
                }
            ),
        ),
        "vcluster",
        "vCluster ml",
        "a virtual scheduler needs the host's nodes",
        "make up STACK=lab",
    ),
    "another vCluster version": (
        edit(
            "statefulsets",
            "ml",
            "metadata",
            "labels",
            "chart",
            value="vcluster-0.35.3",
            where="host",
        ),
        "vcluster",
        "vCluster ml",
        "it runs v0.35.3, and v0.36.1 is wanted",
        "kai-fleet:teams.ml.vcluster.version",
    ),
    "its API does not answer": (
        lambda lab: setattr(lab, "unreached", "it does not answer in time"),
        "vcluster",
        "API of vCluster ml",
        "it does not answer in time",
        "-n team-ml get pods,services,secrets",
    ),
    "its certificate ran out": (
        lambda lab: setattr(lab, "certificate_ends", NOW - timedelta(days=1)),
        "vcluster",
        "certificate of vCluster ml",
        "it ran out on 2026-10-31",
        "rollout restart statefulset ml",
    ),
    "its certificate runs out soon": (
        lambda lab: setattr(lab, "certificate_ends", NOW + timedelta(days=7)),
        "vcluster",
        "certificate of vCluster ml",
        "it runs out on 2026-11-08",
        "rollout restart statefulset ml",
    ),
    "its certificate runs out, and its version does not renew it": (
        both(
            edit(
                "statefulsets",
                "ml",
                "metadata",
                "labels",
                "chart",
                value="vcluster-0.30.5",
                where="host",
            ),
            lambda lab: setattr(lab, "certificate_ends", NOW + timedelta(days=7)),
        ),
        "vcluster",
        "certificate of vCluster ml",
        "it runs out on 2026-11-08",
        "write v0.31.3 at kai-fleet:teams.ml.vcluster.version",
    ),
    "no bound on the host": (
        gone("resourcequotas", "gpus", "host"),
        "gpu-quota",
        "ResourceQuota gpus in namespace team-ml",
        "the team may take every GPU",
        "make up STACK=lab",
    ),
    "another bound on the host": (
        edit(
            "resourcequotas",
            "gpus",
            "spec",
            "hard",
            value={"requests.nvidia.com/gpu": "8"},
            where="host",
        ),
        "gpu-quota",
        "ResourceQuota gpus",
        "lets the team have 8 GPUs, and 4 are declared",
        "write 8 at kai-fleet:teams.ml.gpus",
    ),
    "a part of KAI is absent": (
        gone("deployments", "binder"),
        "kai-parts",
        "deployments binder",
        "they are not there",
        "get manifest kai-scheduler | kubectl --kubeconfig ml -n kai-scheduler apply -f -`",
    ),
    "the scheduler is scaled to 0": (
        edit("deployments", "kai-scheduler-default", "spec", "replicas", value=0),
        "kai-parts",
        "deployment kai-scheduler-default",
        "it is scaled to 0",
        "`kubectl --kubeconfig ml -n kai-scheduler scale deployment kai-scheduler-default"
        " --replicas=1`",
    ),
    "K3 the operator waits for a CRD": (
        both(inside_runs("v0.9.3"), gone("deployments", "binder")),
        "kai-parts",
        "deployments binder",
        "waits for the CRD clusterpolicies.nvidia.com",
        "which declares it",
    ),
    "K16 kai-config is not Ready": (
        edit("configs", "kai-config", "status", value={"conditions": []}),
        "kai-parts",
        "configs.kai.scheduler/kai-config",
        "its operator has not said Ready",
        "-n kai-scheduler get pods",
    ),
    "K19 a hook job has no node": (
        add(
            pods=[
                pod(
                    "crd-upgrader-x",
                    queue=None,
                    namespace="kai-scheduler",
                    labels={"job-name": "crd-upgrader"},
                )
            ]
        ),
        "kai-parts",
        "job crd-upgrader",
        "Helm waits for it: no node has room",
        "free some cpu",
    ),
    "another version of KAI": (
        of_version("v0.14.7"),
        "kai-version",
        "KAI v0.14.7",
        "7 of 7 parts are of another version",
        "or write kai-fleet:teams.ml.scheduler.version: v0.16.8",
    ),
    "a Helm release that did not end": (
        lambda lab: lab.ml["releases"].append(release_secret("pending-upgrade", "2")),
        "kai-parts",
        "Helm release kai-scheduler",
        "its last revision 2 is pending-upgrade",
        "make up STACK=lab",
    ),
    "K10 a webhook without its service": (
        gone("services", "admission"),
        "webhooks",
        "webhook admission.kai-scheduler.svc of validating-kai-admission",
        "every pods is refused",
        "delete validatingwebhookconfiguration validating-kai-admission",
    ),
    "the queue webhook does not answer": (
        lambda lab: lab.ml.update(endpointslices=[endpoints("admission")]),
        "webhooks",
        "webhook queue-controller.kai-scheduler.svc of kai-queue-validation-v2",
        "nobody answers for its service queue-controller",
        "get deployments,endpoints",
    ),
    "a webhook without an authority": (
        lambda lab: lab.named("mutatingwebhookconfigurations", "mutating-kai-admission")[
            "webhooks"
        ][0]["clientConfig"].pop("caBundle"),
        "webhooks",
        "webhook admission.kai-scheduler.svc of mutating-kai-admission",
        "it has no certificate authority",
        "make up STACK=lab",
    ),
    "a namespace that does not go": (
        lambda lab: lab.ml["namespaces"].append(
            {
                "metadata": meta("old", deletionTimestamp="2026-11-01T11:00:00Z"),
                "status": {
                    "conditions": [
                        {
                            "type": "NamespaceFinalizersRemaining",
                            "status": "True",
                            "message": "Some content in the namespace has finalizers remaining:"
                            " a/b in 1 resource instances",
                        }
                    ]
                },
            }
        ),
        "leftovers",
        "namespace old",
        "finalizers remaining: a/b",
        "-n old",
    ),
    "two schedulers": (
        both(
            inside_runs("v0.9.3"),
            lambda lab: lab.ml["deployments"].append(deployment("kai-scheduler-default")),
        ),
        "leftovers",
        "schedulers of KAI",
        "two versions schedule the same pods",
        "delete schedulingshard default",
    ),
    "a shard that a newer version left": (
        inside_runs("v0.9.3"),
        "leftovers",
        "SchedulingShard default",
        "the operator of v0.9.3 makes a second scheduler from it",
        "delete schedulingshard default",
    ),
    "a scheduler whose shard is gone": (
        gone("schedulingshards", "default"),
        "leftovers",
        "deployment kai-scheduler-default",
        "its SchedulingShard is gone",
        "delete deployment kai-scheduler-default",
    ),
    "V17 a cluster role of a removed team": (
        lambda lab: lab.host["clusterroles"].append({"metadata": meta("vc-old-v-team-old")}),
        "leftovers",
        "ClusterRole vc-old-v-team-old",
        "whose namespace team-old is gone",
        "kubectl delete clusterrole,clusterrolebinding vc-old-v-team-old",
    ),
    "the namespace of a team that the file does not have": (
        lambda lab: lab.host["namespaces"].append(
            {"metadata": meta("team-old", labels={"kai-fleet/team": "old"})}
        ),
        "leftovers",
        "namespace team-old",
        "it is of team old, which is not in the stack's file",
        "its name into kai-fleet:removed, then `make up STACK=lab`; if the namespace stays, the"
        " stack does not have it any more: `kubectl delete namespace team-old`",
    ),
    "such a namespace that others made": (
        lambda lab: lab.host["namespaces"].append(
            {
                "metadata": meta(
                    "theirs", labels={"kai-fleet/team": "old", "kai-fleet/namespace": "used"}
                )
            }
        ),
        "leftovers",
        "namespace theirs",
        "it is of team old",
        "`kubectl label namespace theirs kai-fleet/team- kai-fleet/namespace- kai-fleet/isolation-"
        " pod-security.kubernetes.io/enforce- pod-security.kubernetes.io/enforce-version-`",
    ),
    "the namespace of a team that is being deleted": (
        edit(
            "namespaces",
            "team-ml",
            "metadata",
            "deletionTimestamp",
            value="2026-11-01T11:59:50Z",
            where="host",
        ),
        "vcluster",
        "vCluster ml",
        "namespace team-ml is being deleted",
        "make up",
    ),
    "no namespace of a team with a stack of its own": (
        lambda lab: lab.settings.update(teamStacks={"nlp": {"nodePool": {"p": "nlp"}, "gpus": 2}}),
        "vcluster",
        "vCluster nlp",
        "namespace team-nlp is not there",
        "make up",
    ),
    "V14 two modes on one host": (
        lambda lab: lab.host.update(deployments=[deployment("binder")]),
        "one-mode",
        "KAI on the host and inside vClusters",
        "deletes the fraction pods of ml",
        "drop kai-fleet:kai",
    ),
    "a KAI that nobody declared": (
        lambda lab: lab.host.update(deployments=[deployment("kai-operator")]),
        "leftovers",
        "KAI v0.16.8",
        "the stack wants none",
        "`kubectl -n kai-scheduler delete deployment kai-operator`",
    ),
    "K18 a version out of support": (
        inside_runs("v0.10.5"),
        "kai-supported",
        "KAI v0.10.5",
        "out of support since 2025-12-31",
        "kai-fleet:teams.ml.scheduler.version",
    ),
    "a vCluster out of support": (
        old_vcluster,
        "vcluster",
        "vCluster ml",
        "line v0.34 is out of support since 2026-10-29",
        "go up one line at a time, to v0.36.1 (supported until 2027-01-22), at",
    ),
    "a missing queue": (
        gone("queues", "train"),
        "queues",
        "queue train",
        "it is not there",
        "make up STACK=lab",
    ),
    "a queue with another parent": (
        edit("queues", "train", "spec", "parentQueue", value="serve"),
        "queues",
        "queue train",
        "parentQueue is serve, not default",
        "kai-fleet:teams.ml.queues",
    ),
    "a queue with another limit": (
        edit("queues", "serve", "spec", "resources", "gpu", "limit", value=9),
        "queues",
        "queue serve",
        "gpu limit is 9, not 2",
        "make up STACK=lab",
    ),
    "Q5 a parent that is not there": (
        edit("queues", "train", "spec", "parentQueue", value="nosuch"),
        "queue-tree",
        "queue train in ml",
        "has the parent nosuch, which is not declared",
        "nosuch",
    ),
    "K4 the chart's own queues": (
        lambda lab: lab.ml["queues"].append(by_hand("default-queue")),
        "queues",
        "queues default-queue",
        "KAI's chart made them",
        "createDefaultQueue",
    ),
    "a queue made by hand": (
        lambda lab: lab.ml["queues"].append(by_hand("mine")),
        "queues",
        "queues mine",
        "the stack does not declare them",
        "delete queue mine",
    ),
}

GOLD = {"kai.scheduler/node-pool": "gold"}
SHARDS: dict[str, Case] = {
    "a shard that is not there": (
        scheduling(shards={"gold": {}}),
        "shards",
        "SchedulingShard gold",
        "nobody schedules its queues",
        "make up STACK=lab",
    ),
    "a shard without nodes": (
        both(
            scheduling(shards={"gold": {}}),
            lambda lab: lab.ml["schedulingshards"].append({"metadata": meta("gold")}),
        ),
        "shards",
        "SchedulingShard gold",
        "no node has the label kai.scheduler/node-pool=gold",
        "kubectl label node",
    ),
    "a pod of another shard than its queue's": (
        both(edit("queues", "train", "metadata", "labels", value=GOLD), waiting()),
        "shards",
        "pod w in namespace default",
        "its queue train is of shard gold, and the pod of default",
        "write the label kai.scheduler/node-pool: gold",
    ),
    "a topology that is not there": (
        scheduling(topologies={"racks": ["rack"]}),
        "topologies",
        "Topology racks",
        "it is not there",
        "make up STACK=lab",
    ),
    "a topology by labels that no node has": (
        both(
            scheduling(topologies={"racks": ["rack"]}),
            lambda lab: lab.ml.update(
                topologies=[
                    {"metadata": meta("racks"), "spec": {"levels": [{"nodeLabel": "rack"}]}}
                ]
            ),
        ),
        "topologies",
        "Topology racks",
        "no node has the label rack",
        "label the nodes",
    ),
}
