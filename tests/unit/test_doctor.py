"""Each thing that goes wrong, made on a healthy stack, and what the doctor says of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.unit.doctor_samples import (
    GROUP,
    NOW,
    Lab,
    Spoil,
    deployment,
    endpoints,
    event,
    meta,
    node,
    pod,
    release_secret,
    reservation,
    sharing,
)


def test_a_healthy_stack_has_nothing_to_say():
    assert Lab().ill() == []


def add(**pods_or_events):
    def spoil(lab: Lab) -> None:
        for kind, items in pods_or_events.items():
            lab.ml[kind] = [*lab.ml[kind], *items]

    return spoil


def waiting(name="w", text="", **more):
    """A pod of KAI without a node, and the event that a scheduler left at it."""
    made = pod(name, **more)
    group = {"metadata": meta(f"pg-{name}", "default")}
    return add(pods=[made], podgroups=[group], events=[event(made, text)] if text else [])


def edit(kind, name, *path, value, where="ml"):
    def spoil(lab: Lab) -> None:
        here = lab.named(kind, name, where)
        for key in path[:-1]:
            here = here.setdefault(key, {}) if isinstance(here, dict) else here[key]
        here[path[-1]] = value

    return spoil


def gone(kind, name, where="ml"):
    return lambda lab: lab.drop(kind, name, where)


def both(*spoils):
    def spoil(lab: Lab) -> None:
        for one in spoils:
            one(lab)

    return spoil


def of_version(version):
    def spoil(lab: Lab) -> None:
        lab.settings["teams"]["ml"]["scheduler"]["version"] = version

    return spoil


def inside_runs(version):
    """KAI of that version inside, with what it brings."""
    from components.releases import kai

    def spoil(lab: Lab) -> None:
        of_version(version)(lab)
        lab.ml["deployments"] = [deployment(name, version) for name in kai(version).deployments]

    return spoil


def by_hand(queue):
    return {"metadata": meta(queue), "spec": {"resources": {}}}


OF_ML = {"app": "vcluster", "release": "ml"}
CASES: dict[str, tuple[Spoil, str, str, str, str]] = {
    "no GPUs in the pool": (
        edit("nodes", "ml-0", "status", "allocatable", value={"cpu": "8"}, where="host"),
        "nodes",
        "node pool kai-fleet/pool=ml of team ml",
        "advertise no nvidia.com/gpu",
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
                    "metadata": meta("ml-0", "team-ml", labels=OF_ML),
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
        "make up STACK=lab",
    ),
    "the scheduler is scaled to 0": (
        edit("deployments", "kai-scheduler-default", "spec", "replicas", value=0),
        "kai-parts",
        "deployment kai-scheduler-default",
        "it is scaled to 0",
        "get pods,jobs,events",
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
        "uninstall kai-scheduler",
    ),
    "K18 a version out of support": (
        inside_runs("v0.10.5"),
        "kai-supported",
        "KAI v0.10.5",
        "out of support since 2025-12-31",
        "kai-fleet:teams.ml.scheduler.version",
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
        gone("queues", "default"),
        "queue-tree",
        "queue train in ml",
        "has the parent default, which is not declared",
        "declare default",
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
        "asks for 1 GPUs, and queue serve holds 2 of at most 2",
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
        "raise gpu.limit of default",
    ),
    "more GPUs than a node has": (
        both(
            edit("queues", "train", "spec", "resources", "gpu", "limit", value=-1),
            edit("queues", "default", "spec", "resources", "gpu", "limit", value=-1),
            waiting(limits={"nvidia.com/gpu": "6"}),
        ),
        "pending",
        "pod w in namespace default",
        "asks for 6 GPUs, and no Ready node has more than 4",
        "larger nodes",
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
        "make up STACK=lab",
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
        "its PodGroup pg-infer-a is gone",
        "delete the pod",
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
        "delete the pod",
    ),
    "sharing is off": (
        edit("configs", "kai-config", "spec", "admission", "gpuSharing", value=False),
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
        "delete it",
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
        "delete these pods",
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


def scheduling(**keys):
    return lambda lab: lab.settings["teams"]["ml"]["scheduler"].update(keys)


GOLD = {"kai.scheduler/node-pool": "gold"}
CASES |= {
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


@pytest.mark.parametrize("case", CASES)
def test_the_cause_is_named_with_its_fix(case):
    spoil, check, subject, cause, fix = CASES[case]
    lab = Lab()
    spoil(lab)
    found = lab.ill()
    said = [
        one
        for one in found
        if one.check == check and subject in one.subject and cause in one.cause and fix in one.fix
    ]
    assert said, "\n".join(map(str, found))


@pytest.mark.parametrize(
    "case",
    ["W1 an absent queue", "W1 a parent queue", "W1 no queue", "a full queue", "sharing is off"],
)
def test_one_cause_is_one_finding(case):
    lab = Lab()
    CASES[case][0](lab)
    assert len(lab.ill()) == 1, lab.ill()


def test_a_young_pod_is_on_its_way():
    lab = Lab()
    waiting(created="2026-11-01T11:59:50Z", annotations={"pod-group-name": ""})(lab)
    assert lab.ill() == []


def test_a_webhook_that_no_request_comes_to_needs_nobody():
    lab = Lab()
    hook = lab.named("validatingwebhookconfigurations", "validating-kai-admission")["webhooks"][0]
    hook["matchConditions"] = [{"name": "never", "expression": "false"}]
    lab.ml["services"] = [s for s in lab.ml["services"] if s["metadata"]["name"] != "admission"]
    lab.ml["mutatingwebhookconfigurations"] = []
    assert lab.ill() == []


def test_a_team_without_gpus_may_have_a_pool_without_gpus():
    lab = Lab()
    lab.settings["teams"]["ml"] |= {"gpus": 0, "queues": {}}
    lab.ml["queues"] = []
    lab.host["resourcequotas"][0]["spec"]["hard"] = {"requests.nvidia.com/gpu": "0"}
    lab.host["nodes"] = [node("ml-0", gpus="0"), node("other")]
    lab.host["nodes"][1]["metadata"]["labels"] |= {"kai-fleet/pool": "other"}
    lab.ml["pods"] = []
    assert lab.ill() == []


def in_host_mode():
    """KAI and its queues on the host, and a team whose pods it schedules."""
    lab = Lab()
    team = lab.settings["teams"]["ml"]
    lab.settings |= {"kai": {"version": "v0.16.8"}, "queues": team.pop("queues")}
    team |= {"scheduler": {"mode": "host"}, "queue": "train"}
    kinds = ("deployments", "services", "endpointslices", "configs", "schedulingshards", "queues")
    for kind in (*kinds, "validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        lab.host[kind], lab.ml[kind] = lab.ml[kind], []
    for queue in lab.host["queues"]:
        gpu = queue["spec"]["resources"]["gpu"]
        gpu["limit"] = 2 if queue["metadata"]["name"] == "serve" else -1
    lab.ml["pods"] = []
    return lab


def test_host_mode_is_healthy_too():
    assert in_host_mode().ill() == []


def test_a_pod_of_a_team_in_host_mode_is_judged_by_the_hosts_kai():
    lab = in_host_mode()
    lab.ml["pods"] = [pod("w", queue="serve")]
    (found,) = lab.ill()
    assert (found.check, found.cluster) == ("workload-leaf-queue", "ml")
    assert "the queue of team ml is train" in found.cause


def test_a_queue_of_the_host_that_is_full_is_told_of_a_teams_pod():
    lab = in_host_mode()
    lab.named("queues", "train", "host")["spec"]["resources"]["gpu"]["limit"] = 2
    lab.settings["queues"]["default"]["children"]["train"]["gpu"] = {"quota": 2, "limit": 2}
    lab.named("queues", "train", "host")["spec"]["resources"]["gpu"]["quota"] = 2
    lab.host["pods"] = [pod("big", node="ml-0", namespace="team-ml", limits={"nvidia.com/gpu": 2})]
    lab.host["podgroups"] = [{"metadata": meta("pg-big", "team-ml")}]
    lab.ml["pods"] = [pod("w", limits={"nvidia.com/gpu": "1"})]
    (found,) = lab.ill()
    assert (found.check, found.cluster) == ("pending", "ml")
    assert "queue train holds 2 of at most 2" in found.cause


def test_a_vcluster_that_only_the_host_reaches_says_so():
    lab = Lab()
    lab.settings["teams"]["ml"]["vcluster"] = {"access": {"type": "ClusterIP"}}
    lab.unreached = "it cannot be connected to"
    assert "is reached from inside the host only" in lab.ill()[0].cause
