"""Why no node takes a pod, by its own nodes; what a control plane waits for, by status."""

import pytest

from tests.unit.doctor_samples import Lab, meta, node, pod
from tests.unit.doctor_spoils import OF_ML, waiting

TEXT = (
    "0/9 nodes are available: 1 node(s) had untolerated taint {gpu: yes}, 8 node(s) didn't match"
    " Pod's node affinity/selector."
)
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def lab_with(text=TEXT, taints=(), spec=None, **on_node):
    """A pod that waits with this text, on a host with another pool beside its own."""
    lab = Lab()
    other = node("other-0")
    other["metadata"]["labels"]["kai-fleet/pool"] = "other"
    lab.host["nodes"].append(other)
    for nodes in (lab.host["nodes"], lab.ml["nodes"]):
        nodes[0]["spec"] |= {"taints": list(taints), **on_node}
    waiting(text=text, spec=spec or {})(lab)
    return lab


def pending(lab):
    return [it for it in lab.ill() if it.check == "pending"]


def test_a_taint_of_the_pools_node_is_the_cause_and_not_the_labels_of_others():
    (found,) = pending(lab_with(taints=[TAINT]))
    assert (
        "none of the 1 nodes with its labels takes it: 1 tainted (gpu=yes:NoSchedule)"
        in found.cause
    )
    assert "write a toleration" in found.fix
    assert "nodeSelector" not in found.fix


def test_a_cordon_is_no_taint_that_wants_a_toleration():
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    lab = lab_with(taints=[cordon], unschedulable=True)
    causes = [it for it in pending(lab) if "cordoned (ml-0)" in it.cause]
    assert causes
    assert "uncordon" in causes[0].fix
    assert "toleration" not in causes[0].fix


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "gpu", "operator": "Exists"},
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ],
)
def test_who_tolerates_the_taint_has_no_room(toleration):
    text = TEXT.replace("1 node(s) had untolerated taint {gpu: yes}", "1 Insufficient cpu")
    (found,) = pending(lab_with(text, [TAINT], {"tolerations": [toleration]}))
    assert found.cause.startswith("no node that may take it has room for it: 0/9 nodes")


def test_labels_that_no_node_of_the_pool_has_are_named():
    (found,) = pending(lab_with(spec={"nodeSelector": {"zone": "z9"}}))
    assert found.cause == (
        "none of the 1 nodes of its pool has the labels that it asks for (zone=z9)"
    )
    terms = [{"matchExpressions": [{"key": "model", "operator": "In", "values": ["H100"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    (found,) = pending(lab_with(spec={"affinity": {"nodeAffinity": required}}))
    assert "(model In H100)" in found.cause


def test_a_volume_of_another_zone_is_told():
    (found,) = pending(lab_with("0/9 nodes are available: 1 volume node affinity conflict"))
    assert "its volume is in a zone" in found.cause


def control_plane(lab, waits=None):
    lab.named("statefulsets", "ml", "host")["status"] = {}
    lab.unreached = "it cannot be connected to"
    states = [{"state": {"waiting": waits}}] if waits else []
    status = {"phase": "Pending", "containerStatuses": states}
    made = pod("ml-0", None, "ml-0", namespace="team-ml", status=status)
    made["metadata"]["labels"] = OF_ML
    lab.host["pods"] = [made]


def test_a_control_plane_without_its_image_is_told_without_any_event():
    lab = Lab()
    control_plane(lab, {"reason": "ImagePullBackOff", "message": 'pulling "r.io/v:v9": not found'})
    (found,) = [it for it in lab.ill() if it.check == "vcluster"]
    assert 'pod ml-0 gets no image: ImagePullBackOff pulling "r.io/v:v9"' in found.cause
    assert "kai-fleet:teams.ml.vcluster.version" in found.fix
    assert "make up" not in found.fix, "an update does not bring an image"


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("fast", "waits for StorageClass fast, which is not there (there: slow)"),
        (None, "names no StorageClass, and the host has no default one (there: slow)"),
    ],
)
def test_a_control_plane_without_its_storage_class_is_told_without_any_event(wanted, says):
    lab = Lab()
    control_plane(lab)
    spec = {"storageClassName": wanted} if wanted else {}
    claim = {"metadata": meta("data-ml-0", "team-ml"), "spec": spec, "status": {"phase": "Pending"}}
    lab.host |= {
        "persistentvolumeclaims": [claim],
        "storageclasses": [{"metadata": meta("slow")}],
    }
    (found,) = [it for it in lab.ill() if it.check == "vcluster"]
    assert says in found.cause
    assert "make up" not in found.fix
