"""Labels and annotations that an organisation wants on the namespaces of its teams."""

import copy

import pytest
from kai_fleet.isolation.team_namespace import namespace_metadata
from kai_fleet.kai.values import kai_values
from kai_fleet.vcluster.values import vcluster_values

from kai_fleet.fleet.model import DeclaredKai
from kai_fleet.fleet.resolve import fleet_of
from kai_fleet.releases import VCLUSTER, kai, vcluster
from kai_fleet.releases.chart_values import unknown_keys
from kai_fleet.settings import load
from kai_fleet.settings.team_stack import Facts, load_team_stack
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.doctor_samples import SETTINGS, VERSION

PROJECT = "field.cattle.io/projectId"


def stack(team=None, **more):
    raw = copy.deepcopy(SETTINGS) | more
    raw["teams"]["ml"] |= team or {}
    return raw


def settings(team=None, **more):
    loaded = load(stack(team, **more))
    assert loaded.mistakes == ()
    return loaded.settings


def test_the_namespace_has_those_of_the_stack_and_over_them_the_teams():
    own = {"labels": {PROJECT: "p-abc"}, "annotations": {PROJECT: "c-1:p-abc"}}
    common = {"example.com/cost-centre": "17", PROJECT: "p-all"}
    of_stack = stack(own, labels=common, annotations={"example.com/owner": "ML: the team"})
    (space,) = (it for it in plan_settings(of_stack).resources if it.name == "ml-namespace")
    metadata = space.inputs["metadata"]
    labels, notes = metadata["labels"], metadata["annotations"]
    assert labels[PROJECT] == "p-abc"
    assert labels["example.com/cost-centre"] == "17"
    assert labels["kai-fleet/team"] == "ml"
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert notes[PROJECT] == "c-1:p-abc"
    assert notes["example.com/owner"] == "ML: the team"
    assert notes["guard.kai-fleet/pool"] == "kai-fleet/pool=ml"


def test_the_namespace_of_a_team_with_a_stack_of_its_own_has_them_too():
    grant = {"nodePool": {"kai-fleet/pool": "nlp"}, "labels": {"cost-centre": "18"}}
    of_stack = settings(teamStacks={"nlp": grant}, labels={"example.com/site": "hq"})
    labels = namespace_metadata(fleet_of(of_stack).grants["nlp"])["labels"]
    assert labels["cost-centre"] == "18"
    assert labels["example.com/site"] == "hq"


@pytest.mark.parametrize(
    "key",
    [
        "guard.kai-fleet/pool",
        "kai-fleet/isolation",
        "pod-security.kubernetes.io/enforce",
        "kubernetes.io/metadata.name",
        "scheduler.alpha.kubernetes.io/node-selector",
        "pulumi.com/patchForce",
        "vcluster.loft.sh/managed-by",
        "kai.scheduler/queue",
        "helm.sh/resource-policy",
        "admission.gatekeeper.sh/ignore",
        "openshift.io/run-level",
        "iam.amazonaws.com/permitted",
        "cni.projectcalico.org/ipv4pools",
    ],
)
@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_no_key_that_decides_what_a_team_may_do(kind, key):
    """Neither where a team writes nor for all of them."""
    of_team = load(stack({kind: {key: "x"}}))
    of_all = load(stack(**{kind: {key: "x"}}))
    granted = load(stack(teamStacks={"nlp": {kind: {key: "x"}}}))
    for loaded, place in (
        (of_team, "kai-fleet:teams.ml"),
        (of_all, "kai-fleet"),
        (granted, "kai-fleet:teamStacks.nlp"),
    ):
        (mistake,) = loaded.mistakes
        assert mistake.path.startswith(place)
        assert kind in mistake.path
        assert "write a key of your own domain" in mistake.message
    assert namespace_metadata(fleet_of(of_team.settings).teams["ml"])[kind].get(key) != "x"


def test_a_label_is_text_in_its_form():
    (mistake,) = load(stack({"labels": {"owner": "who knows?"}})).mistakes
    assert mistake.path == "kai-fleet:teams.ml.labels.owner"
    assert "write a label value" in mistake.message


@pytest.mark.parametrize("version", sorted(VCLUSTER))
def test_the_control_plane_has_them_by_keys_of_its_chart(version):
    own = {"labels": {"cost-centre": "17"}, "annotations": {"note": "x"}}
    team = fleet_of(settings(own)).teams["ml"]
    values = vcluster_values(vcluster(version), team, "team-ml")
    control = values["controlPlane"]
    assert control["statefulSet"]["labels"] == {"cost-centre": "17"}
    assert control["statefulSet"]["annotations"] == {"note": "x"}
    assert control["statefulSet"]["pods"] == {"labels": {"cost-centre": "17"}}
    assert control["service"]["labels"] == {"cost-centre": "17"}
    dns = control["coredns"]["deployment"]
    assert dns["labels"] == dns["pods"]["labels"] == {"cost-centre": "17"}
    assert control["advanced"] == {
        "headlessService": {"labels": {"cost-centre": "17"}, "annotations": {"note": "x"}}
    }, "an account with an annotation may have a cloud's rights"
    assert unknown_keys("vcluster", version, values) == []


def test_without_them_the_release_is_as_before():
    values = vcluster_values(vcluster("v0.36.1"), fleet_of(settings()).teams["ml"], "team-ml")
    assert not {"labels", "annotations", "pods"} & values["controlPlane"]["statefulSet"].keys()


def test_a_team_with_a_stack_of_its_own_has_those_of_its_platform():
    grant = {"nodePool": {"kai-fleet/pool": "nlp"}, "labels": {"cost-centre": "18"}}
    platform = settings(teamStacks={"nlp": grant}, labels={"example.com/site": "hq"})
    facts = Facts.read(Facts.of(platform).output())
    team = {"name": "nlp", "scheduler": {"mode": "default"}}
    loaded = load_team_stack({"platform": {"stack": "prod"}, "team": team}, lambda _: facts)
    assert loaded.mistakes == ()
    labels = fleet_of(loaded.settings).teams["nlp"].labels
    assert labels == {"cost-centre": "18", "example.com/site": "hq"}


def objects(raw):
    """The metadata of every object of Kubernetes that is declared, but for what charts make."""
    return {
        it.name: (it.type, it.inputs["metadata"])
        for it in plan_settings(raw).resources
        if it.type.startswith("kubernetes:") and "metadata" in it.inputs
    }


def test_everything_that_is_made_for_a_team_has_them(tmp_path, monkeypatch):
    monkeypatch.setattr("kai_fleet.settings.files.manifests.ROOT", tmp_path)
    pod = (ROOT / "examples" / "workloads" / "cpu.yaml").read_text()
    (tmp_path / "cpu.yaml").write_text(pod.replace("queue: test", "queue: train"))
    own = {"labels": {"cost-centre": "17"}, "annotations": {"note": "x"}}
    files = {"ml": ["cpu.yaml"]}
    made = objects(stack(own, labels={"site": "hq"}, workloads=files))
    of_team = {name: it for name, it in made.items() if name.startswith(("ml/", "ml-"))}
    assert {
        "ml-namespace",
        "ml-pods",
        "ml-network-pods",
        "ml-kai-namespace",
        "ml/default/cpu-pod",
    } <= of_team.keys()
    for name, (_, metadata) in of_team.items():
        assert metadata["labels"]["cost-centre"] == "17", name
        assert metadata["labels"]["site"] == "hq", name
        assert name == "ml/default/cpu-pod" or metadata["annotations"]["note"] == "x", name
    assert "note" not in of_team["ml/default/cpu-pod"][1].get("annotations", {}), (
        "the host's guard would refuse the pod"
    )
    assert of_team["ml/default/cpu-pod"][1]["labels"]["kai.scheduler/queue"] == "train"


def test_what_the_platform_makes_has_those_of_all():
    grants = {"nlp": {"nodePool": {"kai-fleet/pool": "nlp"}, "gpus": 4, "parentQueue": "nlp"}}
    noted = {"labels": {"site": "hq"}, "annotations": {"azure.workload.identity/client-id": "x"}}
    raw = stack(**noted, teamStacks=grants, kai={"version": VERSION}, monitoring={})
    raw |= {"teams": {}, "queues": {"nlp": {"gpu": 4}}}
    made = objects(raw)
    platform = {name: it for name, it in made.items() if name.startswith("host-")}
    assert {
        "host-gpu-namespace",
        "host-kai-namespace",
        "host-team-stacks-namespace",
    } <= platform.keys()
    for name, (kind, metadata) in platform.items():
        assert metadata["labels"]["site"] == "hq", name
        of_account = kind.endswith(":ServiceAccount")
        assert of_account != (
            "azure.workload.identity/client-id" in metadata.get("annotations", {})
        ), name
    assert any(kind.endswith(":ServiceAccount") for kind, _ in platform.values())


def test_without_them_every_object_is_as_before():
    assert objects(stack(labels={}, annotations={})) == objects(stack())


@pytest.mark.parametrize(("version", "labelled"), [("v0.14.7", False), ("v0.16.8", True)])
def test_the_namespace_of_shared_gpus_has_them_where_the_chart_has_a_value(version, labelled):
    values = kai_values(kai(version), DeclaredKai(version, labels={"cost-centre": "17"}))
    reservation = values["global"].get("resourceReservation", {})
    assert reservation.get("namespaceLabels") == ({"cost-centre": "17"} if labelled else None)
