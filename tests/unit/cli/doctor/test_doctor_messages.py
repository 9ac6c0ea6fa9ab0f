"""Messages that were seen on real clusters, word by word, and what the doctor makes of them."""

import pytest

from kai_fleet_cli.doctor.faults import Affected
from kai_fleet_cli.doctor.messages import explain
from kai_fleet_cli.doctor.snapshot import Cluster
from tests.unit.cli.doctor.doctor_samples import Lab, daemon_set, event, meta, pod
from tests.unit.cli.doctor.doctor_spoils import grouped

SEEN = {
    "failed to wait for config caches to sync kind source: *v1.ClusterPolicy: timed out waiting for"
    " cache to be synced for Kind *v1.ClusterPolicy": ("cluster-policy", "waits for the CRD"),
    "plugin gpusharing failed in PreBind: … no desired configmap name found in pod default/early"
    " annotations": ("made-too-early", "stays Pending for good"),
    "Warning: Found pod without reservation, deleting": ("two-modes", "fight for the pod"),
    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested:"
    " 1, Available: 0, which is unexpected": ("gpu-twice", "two schedulers"),
    "OverLimit: default quota has reached the allowable limit of GPUs. Limit is 1 GPUs, currently 1"
    " GPUs allocated and workload requested 0.6 GPUs": ("queue-full", "Limit is 1 GPUs"),
    'Error syncing to host cluster: pods "x" is forbidden: exceeded quota: gpus, requested:'
    " requests.nvidia.com/gpu=1": ("host-quota", "the team's bound on the host is reached"),
    'Error syncing to host cluster: secrets "x" is forbidden: exceeded quota: objects, requested:'
    " secrets=1": ("host-quota", "what all teams share on the host"),
    "sync.fromHost.nodes.enabled is false, but required if using hybrid scheduling or virtual"
    " scheduler": ("vcluster-nodes", "needs the host's nodes"),
    ".selector.mappings is required for Namespaced scope"
    " sync.fromHost.customResources['podgroups.scheduling.run.ai']": (
        "vcluster-podgroups",
        "sync of PodGroups",
    ),
    'gpu-reservation-ml-0-x is forbidden: pod rejected: RuntimeClass "nvidia" not found': (
        "runtime-class",
        "RuntimeClass nvidia is not there",
    ),
    'Failed to bind pod default/frac-a to node ml-0: Pod "frac-a" not found': (
        "no-virtual-scheduler",
        "virtual scheduler is off",
    ),
    'failed calling webhook "queues.scheduling.run.ai": failed to call webhook: Post "…":'
    " tls: failed to verify certificate: x509: certificate signed by unknown authority": (
        "webhook-unsigned",
        "its installation did not end",
    ),
    'failed calling webhook "admission.kai-scheduler.svc": failed to call webhook: Post "…": dial'
    " tcp 10.0.0.1:443: connect: connection refused": (
        "webhook-down",
        "the webhook admission.kai-scheduler.svc does not answer",
    ),
    'admission webhook "admission.kai-scheduler.svc" denied the request: attempting to create a pod'
    " default/nosharing with gpu sharing request, while GPU sharing is disabled": (
        "sharing-off",
        "GPU sharing is off in this KAI",
    ),
    "QueueDoesNotExist: Queue 'nosuch' does not exist.": (
        "queue-absent",
        "its queue nosuch does not exist",
    ),
    "NonPreemptibleOverQuota: Non-preemptible workload is over quota.": (
        "over-quota",
        "not preemptible",
    ),
    "ValidatingAdmissionPolicy 'kai-fleet-queues-ml' with binding 'kai-fleet-queues-ml' denied"
    " request: queue default is not one of test, ml-train": (
        "guard-denied",
        "queue default is not one of test, ml-train",
    ),
    "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.": ("no-room", "no node has room"),
    "0/9 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 8 node(s) didn't match"
    " Pod's node affinity/selector.": ("taint", "untolerated taint {gpu: yes}"),
    "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.": (
        "no-such-node",
        "no node has the labels",
    ),
    "Unable to schedule pod: 1 non MIG jobs cant run on a node with MigStrategy='mixed'.": (
        "mig-mixed",
        "KAI places only pods with slices",
    ),
    "2 only whole gpu jobs can run on a node with MigStrategy='single'.": ("mig-single", "there"),
    "3 MIG job cannot be scheduled on non-MIG node.": ("mig-none", "no node has any"),
    "1 node(s) didn't have enough resources: GPUs. \n1 non MIG jobs cant run on a node with"
    " MigStrategy='mixed'.": ("no-room", "no node has room"),
    'Failed to create pod sandbox: no runtime for "nvidia" is configured': (
        "no-runtime",
        "no handler nvidia",
    ),
    "Error creating: insufficient quota to match these scopes: [{PriorityClass In [a]}]": (
        "scope-quota",
        "only in namespaces with a ResourceQuota",
    ),
}


def meaning(text):
    return explain(Affected(Cluster("ml"), "pod", "default/w"), [text])


@pytest.mark.parametrize("text", SEEN)
def test_a_message_that_was_seen_has_its_meaning(text):
    name, cause = SEEN[text]
    found = meaning(text)
    assert (found.check, cause in found.cause) == (name, True), found
    assert found.fix


@pytest.mark.timeout(20)
def test_a_long_message_of_a_tenant_takes_no_longer_and_another_means_nothing():
    assert meaning("failed calling webhook " * 40_000) is not None
    assert meaning("Successfully assigned default/a to ml-0") is None


def test_the_fix_has_the_places_of_the_stack():
    lab = Lab()
    waits = pod("w")
    grouped(waits)(lab)
    text = "OverLimit: train quota has reached the allowable limit of GPUs. Limit is 1 GPUs"
    lab.ml["events"] = [event(waits, "Unable to schedule pod"), event(waits, text)]
    (found,) = lab.ill()
    assert (found.check, found.path) == ("pending", "ml")
    assert text in found.cause
    assert "raise its limit at kai-fleet:teams.ml.queues" in found.fix


def test_a_controller_whose_pods_are_denied_is_reported():
    lab = Lab()
    text = (
        "pods is forbidden: ValidatingAdmissionPolicy 'kai-fleet-queues-ml' with binding"
        " 'kai-fleet-queues-ml' denied request: pod names queue x; write train"
    )
    replicas = {"metadata": meta("api-1", "default")}
    lab.ml["replicasets"] = [replicas]
    lab.ml["events"] = [event(replicas, text, "FailedCreate", "ReplicaSet")]
    (found,) = lab.ill()
    assert (found.check, found.subject) == ("guard-denied", "ReplicaSet default/api-1")
    assert "pod names queue x; write train" in found.cause


@pytest.mark.parametrize(
    ("kind", "maker", "count"),
    [
        ("ReplicaSet", {"spec": {"replicas": 2}, "status": {"replicas": 1}}, 1),
        ("ReplicaSet", {"spec": {"replicas": 2}, "status": {"replicas": 2}}, 0),
        ("ReplicaSet", None, 0),
        ("Job", {"spec": {}, "status": {}}, 1),
        ("Job", {"spec": {}, "status": {"succeeded": 1}}, 0),
    ],
)
def test_what_was_refused_is_gone_when_the_cause_is(kind, maker, count):
    lab = Lab()
    about = {"metadata": meta("api-1", "default")}
    lab.ml[f"{kind.lower()}s"] = [] if maker is None else [about | maker]
    text = "pods is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1"
    lab.ml["events"] = [event(about, text, "FailedCreate", kind) for _ in range(10)]
    assert len(lab.ill()) == count


@pytest.mark.parametrize(("created", "count"), [("11:58", 1), ("11:00", 0)])
def test_pods_that_a_node_refused_lately_are_one_finding(created, count):
    lab = Lab()
    status = {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": "Allocate failed due to requested number of devices unavailable",
    }
    built = {"created": f"2026-11-01T{created}:00Z", "status": status}
    lab.ml["pods"] += [pod(f"w-{n}", node="ml-0", **built) for n in range(20)]
    found = lab.ill()
    assert [entry.check for entry in found] == ["gpu-twice"] * count
    assert all("default/w-9, … (10 more)" in entry.name for entry in found)


def test_pods_that_pod_security_refuses_to_the_gpu_stack_need_a_label():
    lab = Lab()
    item = daemon_set("toolkit")
    lab.host["daemonsets"].append(item)
    text = 'pods "x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes'
    lab.host["events"] = [event(item, text, "FailedCreate", "DaemonSet")]
    (found,) = lab.ill()
    assert found.cause.startswith("0 of 1 pods are Ready: Pod Security baseline:latest")
    assert "needs the label pod-security.kubernetes.io/enforce: privileged" in found.fix
