"""`kubectl fleet pending`: each reason why a pod waits, with what to do about it."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.kubectl.team_cluster import GPU
from tests.unit.usage.usage_samples import node, pod, queue

FRACTION = {"gpu_fraction": "0.5", "pod_group_name": "g"}
GUARD = (
    "ValidatingAdmissionPolicy 'kai-fleet-queues-ml' with binding 'kai-fleet-queues-ml' denied"
    " request: names no queue; write kai.scheduler/queue: serve or train"
)


def stamp(minutes):
    return (datetime.now(UTC) - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def event(kind, name, message, reason="FailedCreate", minutes=1):
    about = {"kind": kind, "name": name, "namespace": "default"}
    place = {"name": f"{name}.{minutes}", "namespace": "default"}
    times = {"firstTimestamp": stamp(minutes), "lastTimestamp": stamp(minutes), "metadata": place}
    return {"involvedObject": about, "reason": reason, "message": message, **times}


# Queue, annotations, what it asks for and the scheduler; the cause; the fix.
WRITTEN = [
    (pod("w", "nowhere"), "queue nowhere is not there | serve or train"),
    (pod("w", "default"), "queue default has children | serve or train"),
    (pod("w", None), "names no queue | kai.scheduler/queue: serve or train"),
    (pod("w", scheduler="other"), "queue, and other schedules it | schedulerName: kai-scheduler"),
    (pod("w", None, scheduler="x", gpu_memory="1"), "it has gpu-memory | schedulerName: kai"),
    (
        pod("w", asks={"memory": "65G"}),
        "train may hold at most 64G of memory: it never | at most 64G",
    ),
    (
        pod("w", "serve", asks={GPU: "9"}),
        "9 GPUs, and no node has more than 8 | at most 8 in one pod",
    ),
    (pod("w", "serve", asks={GPU: "1"}), "no PodGroup | logs deployment/pod-grouper"),
    (
        pod("w", "serve", **{"kai.scheduler/skip-podgrouper": "true"}),
        "nothing known gives a reason | describe pod w",
    ),
    (
        pod("w", "serve", **FRACTION),
        "nothing known gives a reason: no event that may be | describe pod w",
    ),
]


@pytest.mark.parametrize(("waits", "words"), WRITTEN)
def test_what_is_wrong_with_its_queue_or_what_it_asks_for(team, waits, words):
    cause, fix = words.split(" | ")
    found = team.waiting(waits)
    assert cause in found["cause"] and fix in found["fix"]
    assert max(map(len, team.run("pending").splitlines())) <= 80


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        ({GPU: "2"}, "2 GPUs"),
        ({"nvidia.com/mig-1g.10gb": "1"}, "1 GPU"),
        ({GPU: "2", "nvidia.com/mig-1g.10gb": "1"}, "3 GPUs"),
        ({}, ""),
    ],
)
def test_what_a_pod_asks_for_beside_a_share_of_memory_is_shown(team, asks, says):
    team.has("pods", [pod("w", "nowhere", asks=asks, gpu_memory="500")])
    shown = team.run("pending")
    assert "500 MiB" in " ".join(shown.split())
    assert [word for word in ("1 GPU ", "2 GPUs", "3 GPUs") if word in shown] == (
        [f"{says} " if says == "1 GPU" else says] if says else []
    ), shown


MESSAGES = f"""\
GPU sharing is disabled | GPU sharing is off in this KAI | gpuSharing: true
no desired configmap name found | before KAI's admission was ready | delete the pod
Queue 'serve' does not exist. | queue serve does not exist | kubectl fleet queues
OverLimit: default quota has reached | its queue is at its limit: OverLimit | wait for a pod
NonPreemptibleOverQuota: x | not preemptible | priorityClassName: train
exceeded quota: gpus, used: 2 | bound on the host is reached: exceeded quota: gpus | end other pods
SyncError {GUARD} | the team's guard denies its pods: names no queue | what it says
RuntimeClass "n" not found | RuntimeClass n is not there | drop runtimeClassName
1 node(s) had untolerated taint {{a: b}} | that it does not tolerate: 1 node | a toleration
UnexpectedAdmissionError | given its GPUs to others | nodes of its own
failed calling webhook "a.b": no | webhook a.b does | `kubectl --context lab -n kai-scheduler get
"""


@pytest.mark.parametrize("row", MESSAGES.splitlines())
def test_what_events_say_in_plain_words(team, row):
    message, cause, fix = row.split(" | ")
    team.has("events", [event("Pod", "w", "odd", minutes=5), event("Pod", "w", message)])
    team.has("pods", [pod("w", "serve", **FRACTION)])
    (found,) = team.json("pending", "--context", "lab")["pending"]
    assert cause in found["cause"] and fix in found["fix"]


@pytest.mark.parametrize(("quota", "limit"), [(0.3, 0.3), (0.3, -1), (0, 0.3)])
def test_fractions_that_fill_a_queue_exactly_and_are_more_as_floats(team, quota, limit):
    team.has("queues", [queue("top", gpu=8), queue("train", "top", gpu=(quota, limit))])
    asks = {"gpu_fraction": "0.1", "pod_group_name": "g"}
    team.has("pods", [pod("a", "train", "ml-0", ("g1",), gpu_fraction="0.2"), pod("w", **asks)])
    word = "train quota has reached the allowable limit of GPUs. Limit is 0.3 GPUs, currently 0.2"
    team.has("events", [event("Pod", "w", word)])
    (found,) = team.json("pending")["pending"]
    assert "fill the 0.3 GPUs of queue train" in found["cause"] and "floats" in found["cause"]
    assert "0.300001" in found["fix"]


def test_text_of_others_commands_no_terminal(team):
    waits = pod("w", "serve", **FRACTION)
    condition = {"type": "PodScheduled", "message": "odd \x1b[31m\nred\u202e"}
    waits["status"]["conditions"] = [condition]
    assert team.waiting(waits)["cause"].endswith("gives a reason: odd [31m red")


def test_gates_new_pods_and_classes_that_are_not_there(team):
    gated = pod("w", "nowhere")
    gated["spec"]["schedulingGates"] = [{"name": "team.io/data"}]
    assert team.waiting(gated)["cause"] == "its scheduling gates are closed: team.io/data"
    new = pod("w", "serve")
    new["metadata"]["creationTimestamp"] = stamp(0)
    assert team.waiting(new)["fix"] == "wait a minute"
    classy = pod("w", "serve", **FRACTION)
    classy["spec"]["runtimeClassName"] = "odd"
    assert team.waiting(classy)["cause"] == "RuntimeClass odd is not there"
    team.has("runtimeclasses", [{"metadata": {"name": "odd"}}])
    assert "RuntimeClass" not in team.waiting(classy)["cause"]


def test_labels_of_nodes_that_none_has(team):
    lost = pod("w", "serve", **FRACTION)
    lost["spec"]["nodeSelector"] = {"pool": "a"}
    assert team.waiting(lost)["cause"] == "no node has the labels that it asks for: pool=a"
    team.has("nodes", [node("ml-0", pool="a")])
    assert "labels" not in team.waiting(lost)["cause"]
    team.refuses("nodes")
    assert "labels" not in team.waiting(lost)["cause"]


def test_no_scheduler_serves(team):
    team.has("deployments", [])
    assert team.waiting(pod("w", "serve"))["cause"] == "no scheduler of KAI serves here"


def test_a_pod_that_has_a_node_waits_only_where_it_does_not_start(team):
    starting = pod("starting", "serve", "ml-0", asks={GPU: "1"}, phase="Pending")
    stuck = pod("stuck", "serve", "ml-0", asks={GPU: "1"}, phase="Pending")
    reason = {"reason": "ImagePullBackOff", "message": "no such image"}
    stuck["status"]["containerStatuses"] = [{"state": {"waiting": reason}}]
    found = team.waiting(starting, stuck)
    assert found["name"] == "stuck"
    assert "no such image" in found["cause"]
    no_runtime = 'no runtime for "nvidia" is configured'
    team.has("events", [event("Pod", "starting", no_runtime, "FailedCreatePodSandBox")])
    assert "has no handler nvidia" in team.waiting(starting)["cause"]


MISSING = [
    ('secret "creds" not found', 'waits for secret "creds"'),
    ('configmap "settings" not found', 'waits for configmap "settings"'),
]


@pytest.mark.parametrize(("said", "cause"), MISSING)
def test_a_pod_on_a_node_says_what_it_waits_for(team, said, cause):
    mounts = pod("mounts", "serve", "ml-0", phase="Pending")
    team.has("events", [event("Pod", "mounts", f'volume "v" : {said}', "FailedMount")])
    found = team.waiting(mounts)
    assert cause in found["cause"] and "reason=SyncError" in found["fix"]
    team.has("events", [])
    reads = pod("reads", "serve", "ml-0", phase="Pending")
    waits = {"reason": "CreateContainerConfigError", "message": said}
    reads["status"]["containerStatuses"] = [{"state": {"waiting": waits}}]
    assert cause in team.waiting(reads)["cause"]
    waits["message"] = "couldn't find key a in Secret default/creds"
    assert "key a in Secret" in team.waiting(reads)["cause"]


def test_a_pod_that_a_node_has_for_long_is_said_to_wait(team):
    late, soon = (pod(name, "serve", "ml-0", phase="Pending") for name in ("late", "soon"))
    for each, minutes in ((late, 9), (soon, 1)):
        placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(minutes)}
        each["status"]["conditions"] = [placed]
    found = team.waiting(late, soon)
    assert (found["name"], "containers have not started" in found["cause"]) == ("late", True)


def maker(kind, name, spec, status, deployment=None):
    owner = {"kind": "Deployment", "name": deployment, "controller": True}
    place = {"namespace": "default", "name": name, "ownerReferences": [owner] if deployment else []}
    return {"kind": kind, "metadata": place, "spec": spec, "status": status}


WEBHOOK = 'admission webhook "v.kyverno" denied the request: no'
JOB = maker("Job", "tune", {"completions": 1}, {})
DENIED = [
    (
        [JOB],
        ("Job", "tune", f"Error creating: {GUARD}"),
        "Job tune the team's guard denies its pods",
    ),
    (
        [maker("ReplicaSet", "api-5", {"replicas": 2}, {"replicas": 0}, "api")],
        ("ReplicaSet", "api-5", WEBHOOK),
        "Deployment api admission (v.kyverno) denies its pods: no",
    ),
    (
        [maker("StatefulSet", "db", {"replicas": 1}, {})],
        ("StatefulSet", "db", 'create Pod db-0 in StatefulSet db failed error: "odd"'),
        "StatefulSet db create Pod db-0 in StatefulSet db failed",
    ),
    (
        [],
        ("RayCluster", "r", GUARD, "FailedToCreateWorkerPod"),
        "RayCluster r the team's guard denies",
    ),
]


@pytest.mark.parametrize(("items", "reported", "words"), DENIED)
def test_pods_that_admission_denies_are_shown_by_what_creates_them(team, items, reported, words):
    team.has("pods", [])
    for item in items:
        team.has(f"{item['kind'].lower()}s", [item])
    team.has("events", [event(*reported)])
    found = team.json("pending")
    (one,) = found["denied"]
    assert found["pending"] == [] and one["fix"]
    assert f"{one['kind']} {one['name']} {one['cause']}".startswith(words)
    text = team.run("pending")
    assert max(map(len, text.splitlines())) <= 80
    assert one["kind"] in text and "no pod" in text
    assert team.reported("pending", "-n", "web") == "no pod waits"


@pytest.mark.parametrize("message", [None, ""])
def test_a_denial_without_a_message_says_that_there_is_none(team, message):
    team.has("pods", [])
    team.has("jobs", [JOB])
    team.has("events", [event("Job", "tune", message)])
    (one,) = team.json("pending")["denied"]
    assert one["cause"] == "its event does not say why"
    assert "describe job tune" in one["fix"]


def test_what_has_its_pods_since_is_not_shown(team):
    team.has("pods", [])
    team.has("jobs", [{**JOB, "status": {"active": 1}}])
    team.has("events", [event("Job", "tune", GUARD)])
    assert team.reported("pending") == "no pod waits"


def test_who_may_not_list_what_creates_pods_sees_late_events(team):
    team.has("pods", [])
    team.refuses("jobs", "replicasets", "statefulsets")
    team.has("events", [event("Job", "new", GUARD), event("Job", "old", GUARD, minutes=60)])
    found = team.json("pending")
    assert [one["name"] for one in found["denied"]] == ["new"]
    assert found["notes"] == []
