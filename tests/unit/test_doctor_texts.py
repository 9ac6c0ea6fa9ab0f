"""The texts that were seen on a real cluster, word by word, and what the doctor makes of them."""

import pytest
from kai_fleet_cli.waiting.finding import meaning

from tests.unit.doctor_samples import Lab, event, meta, pod

SEEN = {
    "failed to wait for config caches to sync kind source: *v1.ClusterPolicy: timed out waiting for"
    " cache to be synced for Kind *v1.ClusterPolicy": ("cluster-policy", "waits for the CRD"),
    "plugin gpusharing failed in PreBind: … no desired configmap name found in pod default/early"
    " annotations": ("made-too-early", "stays Pending for good"),
    "Warning: Found pod without reservation, deleting": ("two-modes", "fight for the pod"),
    'configmap "frac-x-shared-gpu-0-evar" not found': ("two-modes", "fight for the pod"),
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
    "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.": (
        "no-such-node",
        "no node has the labels",
    ),
}


@pytest.mark.parametrize("text", SEEN)
def test_a_text_that_was_seen_has_its_meaning(text):
    name, cause = SEEN[text]
    found = meaning(text)
    assert found is not None
    assert (found.name, cause in found.cause) == (name, True), found
    assert found.fix


@pytest.mark.timeout(20)
def test_a_long_text_of_a_tenant_takes_no_longer():
    assert meaning("failed calling webhook " * 40_000) is not None


def test_another_text_has_none():
    assert meaning("Successfully assigned default/a to ml-0") is None


def test_an_event_of_a_waiting_pod_is_told_with_the_places_of_its_stack():
    lab = Lab()
    waits = pod("w")
    lab.ml["pods"].append(waits)
    lab.ml["podgroups"].append({"metadata": meta("pg-w", "default")})
    text = "OverLimit: train quota has reached the allowable limit of GPUs. Limit is 1 GPUs"
    lab.ml["events"] = [event(waits, "Unable to schedule pod"), event(waits, text)]
    (found,) = lab.ill()
    assert (found.check, found.cluster) == ("pending", "ml")
    assert text in found.cause
    assert "raise its limit at kai-fleet:teams.ml.queues" in found.fix


def test_a_controller_whose_pods_are_denied_is_told():
    lab = Lab()
    replicas = {"metadata": meta("api-1", "default")}
    text = (
        "pods is forbidden: ValidatingAdmissionPolicy 'kai-fleet-queues-ml' with binding"
        " 'kai-fleet-queues-ml' denied request: pod names queue x; write train"
    )
    lab.ml["events"] = [event(replicas, text, "FailedCreate", "ReplicaSet")]
    (found,) = lab.ill()
    assert found.check == "guard-denied"
    assert found.subject == "ReplicaSet api-1 in namespace default"
    assert "pod names queue x; write train" in found.cause


def test_what_was_refused_long_ago_is_not_told():
    lab = Lab()
    old = event({"metadata": meta("api-1", "default")}, "exceeded quota", "FailedCreate", "Job")
    lab.ml["events"] = [old | {"lastTimestamp": "2026-11-01T11:00:00Z"}]
    assert lab.ill() == []


def sent_back(name, created):
    status = {
        "phase": "Failed",
        "reason": "UnexpectedAdmissionError",
        "message": "Allocate failed due to requested number of devices unavailable",
    }
    return pod(name, node="ml-0", created=created, status=status)


def test_pods_that_a_node_sent_back_are_told_once():
    lab = Lab()
    lab.ml["pods"] += [sent_back(f"w-{n}", "2026-11-01T11:58:00Z") for n in range(20)]
    (found,) = lab.ill()
    assert (found.check, found.subject) == (
        "gpu-twice",
        "20 pods in namespace default: w-0, w-1, w-2, w-3, w-4 and 15 more",
    )
    assert found.record()["count"] == len(found.record()["subjects"]) == 20


def test_a_pod_that_was_sent_back_long_ago_says_nothing_about_now():
    lab = Lab()
    lab.ml["pods"].append(sent_back("w", "2026-11-01T11:00:00Z"))
    assert lab.ill() == []
