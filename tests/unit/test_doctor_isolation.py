"""What the doctor says where something that keeps a team from others is missing or changed."""

import pytest
from kai_fleet_cli.doctor.cluster_state import Snapshot, TeamState
from kai_fleet_cli.waiting.finding import Health

from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.settings import load
from kai_fleet_cli.doctor.checks import isolation
from tests.unit.doctor_samples import Lab, meta

ALL_GPUS = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}
LEVEL = "pod-security.kubernetes.io/enforce"


def said(lab):
    return [f for f in lab.ill() if f.check == "isolation"]


def test_a_team_that_is_kept_apart_is_well():
    assert said(Lab()) == []


def spoil(kind, name):
    return lambda lab: lab.drop(kind, name, "host")


def relabel(lab):
    lab.named("namespaces", "team-ml", "host")["metadata"]["labels"][LEVEL] = "privileged"


POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"


def unlevelled(lab):
    del lab.named("namespaces", "team-ml", "host")["metadata"]["labels"]["kai-fleet/isolation"]


def without(kind, name):
    def spoilt(lab):
        lab.spoil_guards = lambda guards: guards.drop(kind, name)

    return spoilt


def changed(kind, name, **spec):
    def spoilt(lab):
        lab.spoil_guards = lambda guards: guards.named(kind, name)["spec"].update(spec)

    return spoilt


def more_granted(lab):
    notes = lab.named("namespaces", "team-ml", "host")["metadata"]["annotations"]
    notes["guard.kai-fleet/devices"] = "nvidia.com/gpu,amd.com/gpu"


def granted_besides(lab):
    notes = lab.named("namespaces", "team-ml", "host")["metadata"]["annotations"]
    notes["guard.kai-fleet/endpoints"] = "true"


def without_bounds(lab):
    lab.named("namespaces", "team-ml", "host")["metadata"]["annotations"] = {}


def raised(lab):
    lab.named("resourcequotas", "pods", "host")["spec"]["hard"]["pods"] = "99999"


def other_vendors(lab):
    lab.named("resourcequotas", "gpus", "host")["spec"]["hard"]["requests.amd.com/gpu"] = "8"


def opened(lab):
    lab.named("networkpolicies", "kai-fleet-pods", "host")["spec"]["egress"].append({})


def more_rights(lab):
    role = lab.named("clusterroles", "kai-fleet-vcluster-ml", "host")
    role["rules"].append({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]})


def elsewhere(lab):
    labels = {"app": "vcluster", "release": "ml"}
    made = [{"kind": "StatefulSet", "name": "ml"}]
    about = meta("ml-0", "team-ml", labels=labels, ownerReferences=made)
    pod = {
        "metadata": about,
        "spec": {"nodeName": "dev-1", "containers": [{"name": "s", "image": "x"}]},
    }
    lab.host["pods"].append(pod)
    lab.host["nodes"].append({"metadata": meta("dev-1", labels={"kai-fleet/pool": "dev"})})


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (relabel, "is privileged, and baseline is wanted"),
        (unlevelled, "kai-fleet/isolation is not there, and baseline is wanted"),
        (spoil("resourcequotas", "pods"), "nothing bounds what its pods take"),
        (spoil("resourcequotas", "objects"), "nothing bounds its volumes"),
        (spoil("resourcequotas", "system-priority"), "may preempt those of the system"),
        (spoil("networkpolicies", "kai-fleet-pods"), "its pods reach those of other teams"),
        (without(BINDINGS, "kai-fleet-devices"), "it is not there: nobody judges"),
        (without(BINDINGS, "kai-fleet-nodes-ml"), "its pods may be on nodes of other teams"),
        (without(BINDINGS, "kai-fleet-releases"), "in the teams' namespaces"),
        (without(POLICIES, "kai-fleet-lifecycle"), "it is not there: nobody judges"),
        (without_bounds, "they are what its tenant may have"),
        (more_granted, "guard.kai-fleet/{devices} are not as this version declares"),
        (granted_besides, "guard.kai-fleet/{endpoints} are not as this version declares"),
        (
            changed(POLICIES, "kai-fleet-pods", validations=[{"expression": "true"}]),
            "its validations is not as this version declares",
        ),
        (changed(POLICIES, "kai-fleet-nodes", failurePolicy="Ignore"), "its failurePolicy is not"),
        (changed(POLICIES, "kai-fleet-traffic", matchConditions=[]), "its matchConditions is not"),
        (
            changed(POLICIES, "kai-fleet-traffic", matchConstraints={"resourceRules": []}),
            "its matchConstraints is not",
        ),
        (
            changed(BINDINGS, "kai-fleet-pods", validationActions=["Audit"]),
            "its validationActions is not as this version declares",
        ),
        (changed(BINDINGS, "kai-fleet-nodes-ml", paramRef={"name": "dev"}), "its paramRef is not"),
        (
            changed(BINDINGS, "kai-fleet-pods", matchResources={"namespaceSelector": {"a": 1}}),
            "its matchResources is not",
        ),
        (raised, "it is not as this version declares it: nothing bounds what its pods take"),
        (other_vendors, "it may hold devices that it is not granted"),
        (opened, "it may be that its pods reach those of other teams"),
        (more_rights, "its rules are not as this version declares them"),
        (elsewhere, "which is not one of kai-fleet/pool=ml"),
    ],
)
def test_what_is_missing_or_changed_is_broken_and_has_a_command(broken, words):
    lab = Lab()
    broken(lab)
    (finding,) = said(lab)
    assert finding.health is Health.BROKEN
    assert words in finding.cause
    assert "make up STACK=lab" in finding.fix


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"hostPID": True}, "hostPID: true"),
        ({"volumes": [{"name": "d", "hostPath": {"path": "/"}}]}, "volume d is a hostPath"),
        ({"priorityClassName": "system-node-critical"}, "priorityClassName system-node-critical"),
        ({"containers": [{"name": "a", "securityContext": {"privileged": True}}]}, "a is priv"),
        (
            {
                "containers": [
                    {"name": "a", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]}
                ]
            },
            "chooses its devices by itself: NVIDIA_VISIBLE_DEVICES in container a",
        ),
    ],
)
def test_a_running_pod_that_would_be_refused_now_is_named_before_it_matters(spec, words):
    lab = Lab()
    spec = {"containers": [{"name": "a", "image": "x"}], "nodeName": "ml-0", **spec}
    lab.host["pods"].append({"metadata": meta("old", "team-ml"), "spec": spec})
    (finding,) = said(lab)
    assert finding.health is Health.WARNING
    assert finding.subject == "pod old in namespace team-ml"
    assert words in finding.cause


def test_pods_that_carry_tokens_in_annotations_are_named():
    lab = Lab()
    annotations = {"vcluster.loft.sh/token-abcdefgh": "eyJ"}
    pod = {"metadata": {**meta("old", "team-ml"), "annotations": annotations}}
    spec = {"containers": [{"name": "a", "image": "x"}], "nodeName": "ml-0"}
    lab.host["pods"].append({**pod, "spec": spec})
    (finding,) = said(lab)
    assert finding.health is Health.BROKEN
    assert finding.subject == "tokens of team ml"
    assert "eyJ" not in f"{finding.cause}{finding.fix}"
    assert "-n team-ml delete pod old" in finding.fix


def test_secrets_within_their_bound_are_well():
    lab = Lab()
    quota = lab.named("resourcequotas", "objects", "host")
    quota["status"] = {"hard": {"secrets": "5k"}, "used": {"secrets": "4k"}}
    assert said(lab) == []


def test_nothing_is_wanted_of_a_team_whose_isolation_is_off():
    lab = Lab()
    lab.settings["isolation"] = {"level": "off"}
    relabel(lab)
    assert said(lab) == []


def test_the_place_of_a_team_with_a_stack_of_its_own_is_looked_at_with_its_platform():
    lab = Lab()
    lab.settings["teamStacks"] = {"nlp": {"nodePool": {"kai-fleet/pool": "nlp"}, "gpus": 2}}
    lab.host["namespaces"].append({"metadata": meta("team-nlp")})
    granted = TeamState(fleet_of(load(lab.settings).settings).grants["nlp"])
    subjects = {f.subject for f in isolation.check(Snapshot(lab.look().host, {"nlp": granted}))}
    assert {
        "namespace team-nlp",
        "ResourceQuota objects in namespace team-nlp",
        "NetworkPolicy kai-fleet-pods in namespace team-nlp",
        "ValidatingAdmissionPolicyBinding kai-fleet-nodes-nlp",
        "ClusterRole kai-fleet-vcluster-nlp",
    } <= subjects


def test_pods_that_name_one_config_map_of_kai_are_named():
    lab = Lab()
    notes = {"runai/shared-gpu-configmap": "train-abcdefg-shared-gpu"}
    for name, phase in (("one", "Running"), ("two", "Pending"), ("over", "Succeeded")):
        about = meta(name, "team-ml", annotations=notes)
        spec = {"nodeName": "ml-0", "containers": [{"name": "a", "image": "x"}]}
        lab.host["pods"].append({"metadata": about, "spec": spec, "status": {"phase": phase}})
    (finding,) = [f for f in lab.ill() if f.check == "shared-gpu"]
    assert finding.health is Health.WARNING
    assert finding.subject == "pods one, two in namespace team-ml"
    assert "train-abcdefg-shared-gpu" in finding.cause
    assert "KAI writes it" in finding.fix
