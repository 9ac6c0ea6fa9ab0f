"""Every reason in the sources of the schedulers, and the sentence that is made of it."""

import re
from pathlib import Path

import pytest
import yaml

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.cluster.probes import reasons
from kai_fleet.releases import KAI
from kai_fleet_cli.doctor.faults import Affected
from kai_fleet_cli.doctor.messages import explain
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_usage.messages import rows
from kai_usage.scheduling import meanings_of
from kubectl_fleet.messages import in_sentences
from tests.unit.cli.doctor.doctor_samples import Lab, meta, node, pod
from tests.unit.usage.usage_samples import node as tenant_node
from tests.unit.usage.usage_samples import pod as tenant_pod

ROOT = Path(__file__).parents[4]
FACTS = {
    name: yaml.safe_load((ROOT / f"tests/facts/{name}/scheduler-reasons.yaml").read_text())
    for name in ("kubernetes", "kai")
}
SAMPLES = {"%q": '"data"', "%d": "2", "%v": "[sample]", "%s": "sample"}
LAST = "didn't match Pod's node affinity/selector"
AFTER_LABELS = ("no-such-node", "filtered", "nothing-found")
KEYS = reasons.Keys("path", "pool", "part")
PREEMPTION = "preemption: 0/10 nodes are available: 10 Preemption is not helpful for scheduling."


def said(reason):
    return re.sub("%[qdvs]", lambda verb: SAMPLES[verb[0]], reason)


ALL = [said(reason) for facts in FACTS.values() for reason in facts["reasons"]]


def by_kubectl(text):
    return in_sentences(next(meanings_of([text], "user")), kubectl="kubectl")


def by_doctor(text):
    return explain(Affected(Cluster("ml"), "pod", "default/w"), [text])


@pytest.mark.parametrize("name", FACTS)
def test_each_reason_has_a_sentence_and_a_remedy_in_the_doctor_and_in_kubectl(name):
    for text in map(said, FACTS[name]["reasons"]):
        found, told = by_doctor(text), by_kubectl(text)
        assert found and found.cause and found.fix, text
        assert told and told.cause and told.fix, text
        assert not re.search(r"[{}]", f"{told.cause}{told.fix}".replace("{sample: sample}", ""))


@pytest.mark.parametrize("name", FACTS)
def test_the_labels_of_nodes_count_last_in_a_pool_of_its_own(name):
    for text in map(said, FACTS[name]["reasons"]):
        alone = by_doctor(text)
        if alone.check not in AFTER_LABELS:
            beside = f"0/10 nodes are available: 2 {text}, 8 node(s) {LAST}. {PREEMPTION}"
            assert by_doctor(beside).check == alone.check, text
            assert "no node has the labels" not in by_kubectl(beside).cause, text


def test_each_row_is_met_by_a_source():
    seen = {by_doctor(text).check for text in ALL}
    assert {row.name for row in rows("scheduling")} <= seen | {"no-such-node"}


def test_the_waits_of_an_update_say_the_same(monkeypatch):
    for text in ALL:
        waits = {"type": "PodScheduled", "message": text}
        metadata = {"name": "ml-0", "namespace": "team-ml"}
        item = KubeObject({"metadata": metadata, "status": {"conditions": [waits]}})
        (sentence,) = reasons.reasons(Nodes([node("n")]), [item], KEYS)
        known = [row for row in rows("scheduling") if re.search(row.pattern, text)]
        assert not known or sentence != f"pod ml-0: {text}", text


class Nodes:
    """A cluster with these nodes, a claim of the pod and its volume."""

    def __init__(self, nodes, claim=None, volume=None):
        self.nodes, self.found = nodes, {"persistentvolumeclaims": claim, "volumes": volume}

    def list(self, path):
        assert path == "/api/v1/nodes"
        return self.nodes

    def find(self, path):
        kind = "persistentvolumeclaims" if "claims" in path else "volumes"
        return self.found[kind]


def cordoned(name, **labels):
    item = node(name)
    item["spec"]["unschedulable"] = True
    item["metadata"]["labels"] |= labels
    return item


NOT_READY = [{"type": "Ready", "status": "False"}]
MESSAGES = [
    f"0/10 nodes are available: 2 node(s) were unschedulable, 8 node(s) {LAST}. {PREEMPTION}",
    f"0/10 nodes are available: 2 node(s) had untolerated taint"
    f" {{node.kubernetes.io/unschedulable: }}, 8 node(s) {LAST}. {PREEMPTION}",
    "no nodes with enough resources were found: 2 node is unschedulable.",
]


def waiting(message, namespace="default"):
    mounts = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    conditions = [{"type": "PodScheduled", "status": "False", "message": message}]
    spec, status = {"volumes": mounts}, {"conditions": conditions}
    return pod("w", namespace=namespace, spec=spec, status=status)


@pytest.mark.parametrize("message", MESSAGES)
def test_cordoned_nodes_are_named_with_the_command(message):
    lab = Lab()
    lab.host["nodes"] = [cordoned("ml-0"), cordoned("ml-1")]
    lab.ml["nodes"] = [cordoned("ml-0"), cordoned("ml-1")]
    lab.ml["pods"] = [waiting(message)]
    lab.ml["podgroups"] = [{"metadata": meta("pg-w", "default")}]
    found = {entry.check: entry for entry in lab.ill()}
    assert found["pending"].cause.endswith("which take no new pods: nodes ml-0 and ml-1")
    assert "`kubectl uncordon ml-0 ml-1`" in found["pending"].fix
    assert "`kubectl uncordon ml-0 ml-1`" in found["nodes"].fix
    assert found["nodes"].level.value == "mandatory"
    item = KubeObject(waiting(message))
    (sentence,) = reasons.reasons(Nodes(lab.host["nodes"]), [item], KEYS)
    assert sentence.endswith("is over: kubectl uncordon ml-0 ml-1")


def test_a_pod_that_asks_for_gpus_of_cordoned_nodes_is_not_too_large():
    lab = Lab()
    lab.host["nodes"] = [cordoned("ml-0"), cordoned("ml-1")]
    lab.ml["nodes"] = [cordoned("ml-0"), cordoned("ml-1")]
    waits = waiting(MESSAGES[0])
    waits["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "1"}
    lab.ml["pods"] = [waits]
    lab.ml["podgroups"] = [{"metadata": meta("pg-w", "default")}]
    causes = [entry.cause for entry in lab.ill()]
    assert not any("it never runs" in cause for cause in causes)
    assert any("which take no new pods: nodes ml-0 and ml-1" in cause for cause in causes)


def test_nodes_of_other_pools_that_are_cordoned_are_not_the_cause():
    lab = Lab()
    lab.host["nodes"].append(cordoned("x-0", **{"kai-fleet/pool": "x"}))
    text = (
        "0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) had untolerated taint(s)."
    )
    lab.ml["pods"] = [waiting(text)]
    lab.ml["podgroups"] = [{"metadata": meta("pg-w", "default")}]
    (found,) = lab.ill()
    assert "a taint that it does not tolerate" in found.cause


def test_a_cordoned_node_beside_others_is_a_warning_and_its_gpus_are_there():
    lab = Lab()
    lab.host["nodes"] = [node("ml-0", "2"), cordoned("ml-1")]
    lab.ml["nodes"] = lab.host["nodes"]
    (found,) = lab.ill()
    assert (found.level.value, found.subject) == ("advisory", "node ml-1")


GONE = [
    f"0/10: 2 node(s) didn't match PersistentVolume's node affinity, 8 node(s) {LAST}.",
    "0/10: 2 node(s) had volume node affinity conflict, 8 Insufficient cpu.",
    f"0/10: 2 node(s) didn't satisfy plugin(s) [VolumeBinding], 8 node(s) {LAST}.",
]
CLAIM = {"metadata": meta("data", "default"), "spec": {"volumeName": "pvc-7"}}
TERM = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["ml-9"]}
AFFINITY = {"required": {"nodeSelectorTerms": [{"matchExpressions": [TERM]}]}}
VOLUME = {"metadata": meta("pvc-7"), "spec": {"nodeAffinity": AFFINITY}}


@pytest.mark.parametrize("message", GONE)
@pytest.mark.parametrize("by", ["volume", "claim"])
def test_a_volume_whose_node_is_gone_is_named_with_it(message, by):
    selected = {"annotations": {"volume.kubernetes.io/selected-node": "ml-9"}}
    claim = CLAIM if by == "volume" else {**CLAIM, "metadata": {**CLAIM["metadata"], **selected}}
    lab = Lab()
    lab.ml["persistentvolumeclaims"] = [claim]
    lab.ml["persistentvolumes"] = [VOLUME] if by == "volume" else []
    lab.ml["pods"] = [waiting(message)]
    lab.ml["podgroups"] = [{"metadata": meta("pg-w", "default")}]
    (found,) = lab.ill()
    place = "its volume pvc-7 of claim data is on node ml-9, which is not there"
    assert found.cause.startswith(place) and "bring the volume's node back" in found.fix
    cluster = Nodes([node("ml-0")], claim, VOLUME if by == "volume" else None)
    (sentence,) = reasons.reasons(cluster, [KubeObject(waiting(message))], KEYS)
    assert place in sentence
    away = node("ml-9")
    away["status"]["conditions"] = NOT_READY
    lab.host["nodes"].append(away)
    assert any("ml-9, which is not Ready" in entry.cause for entry in lab.ill())
    lab.host["nodes"][-1] = cordoned("ml-9")
    assert any("`kubectl uncordon ml-9`" in entry.fix for entry in lab.ill())


def test_a_volume_that_is_kept_off_a_node_is_not_bound_to_it():
    term = {**TERM, "operator": "NotIn"}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    volume = {"metadata": meta("pvc-7"), "spec": {"nodeAffinity": affinity}}
    cluster = Nodes([node("ml-0")], CLAIM, volume)
    (sentence,) = reasons.reasons(cluster, [KubeObject(waiting(GONE[0]))], KEYS)
    assert "ml-9" not in sentence


def test_a_volume_that_a_zone_reaches_is_on_no_node():
    """The annotation says for which node it was made, and such a volume moves to another."""
    term = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}
    volume = {"metadata": meta("pvc-7"), "spec": {"nodeAffinity": affinity}}
    selected = {"annotations": {"volume.kubernetes.io/selected-node": "ml-9"}}
    claim = {**CLAIM, "metadata": {**CLAIM["metadata"], **selected}}
    cluster = Nodes([node("ml-0")], claim, volume)
    (sentence,) = reasons.reasons(cluster, [KubeObject(waiting(GONE[0]))], KEYS)
    assert "ml-9" not in sentence


def test_who_submits_jobs_reads_of_cordoned_nodes_and_of_volumes(team):
    item = tenant_pod("w", "serve", gpu_fraction="0.5", pod_group_name="g")
    closed = tenant_node("ml-1")
    closed["spec"] = {"unschedulable": True}
    team.has("nodes", [tenant_node("ml-0"), closed])
    item["status"]["conditions"] = [{"type": "PodScheduled", "message": MESSAGES[0]}]
    found = team.waiting(item)
    assert found["cause"].endswith("which take no new pods: node ml-1")
    assert "`kubectl uncordon ml-1`" in found["fix"]
    mounts = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    item["spec"]["volumes"] = mounts
    selected = {"annotations": {"volume.kubernetes.io/selected-node": "ml-9"}}
    metadata = {"name": "data", "namespace": "default", **selected}
    claim = {"metadata": metadata, "spec": {"volumeName": "pvc-7"}}
    team.has("persistentvolumeclaims", [claim])
    item["status"]["conditions"] = [{"type": "PodScheduled", "message": GONE[0]}]
    cause = team.waiting(item)["cause"]
    assert cause.startswith("its volume pvc-7 of claim data is on node ml-9, which is not there")


def test_each_part_of_each_version_has_its_key_of_resources():
    keys = {name: release.resources_key("pod-grouper") for name, release in KAI.items()}
    assert keys["v0.16.8"] == "podgrouper.resources"
    assert keys["v0.9.8"] == keys["v0.12.23"] == ""
    for release in KAI.values():
        parts = {release.resources_key(name) for name in release.deployments}
        assert {"scheduler.resources", "binder.resources"} <= parts
        assert ("operator.resources" in parts) == release.has_operator
