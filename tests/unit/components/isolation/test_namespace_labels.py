"""Labels and annotations that an organisation wants on the namespaces of its teams."""

import pulumi
import pytest

from kai_fleet.isolation.team_namespace import TeamNamespace, namespace_metadata
from kai_fleet.vcluster.chart_values import vcluster_values
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.arguments import team as team_arguments
from kai_fleet_stack.settings.loading import load
from tests.unit.components.component_samples import declared
from tests.unit.stack.stack_arguments import settings_of, stack, team_stack

PROJECT = "field.cattle.io/projectId"
COST, NOTE = "example.com/cost-centre", "team.example.com/note"
OWN = {"labels": {"cost-centre": "17"}, "annotations": {"note": "x"}}
GRANT = {"nodePool": {"kai-fleet/pool": "nlp"}, "labels": {"cost-centre": "18"}}
SITE = {"labels": {"example.com/site": "hq"}}


def test_the_namespace_has_those_of_the_stack_and_over_them_the_teams():
    own = {"labels": {PROJECT: "p-abc"}, "annotations": {PROJECT: "c-1:p-abc"}}
    of_all = {"labels": {"cost": "17", PROJECT: "p-all"}, "annotations": {"owner": "ML: the team"}}
    of_all["keyDomains"] = ["cattle.io"]
    (space,) = (
        resource
        for resource in plan_settings(stack(own, **of_all)).resources
        if resource.name == "ml-namespace"
    )
    metadata = space.inputs["metadata"]
    labels, notes = metadata["labels"], metadata["annotations"]
    assert (labels[PROJECT], labels["cost"], labels["kai-fleet/team"]) == ("p-abc", "17", "ml")
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert (notes[PROJECT], notes["owner"]) == ("c-1:p-abc", "ML: the team")
    assert notes["guard.kai-fleet/pool"] == "kai-fleet/pool=ml"


def test_a_team_with_a_stack_of_its_own_has_those_of_its_platform():
    platform = settings_of(stack(teamStacks={"nlp": GRANT}, **SITE))
    both = {"cost-centre": "18", "example.com/site": "hq"}
    labels = namespace_metadata("nlp", Arguments(platform).namespace("nlp"))["labels"]
    assert labels.items() >= both.items()
    loaded = team_stack(stack(**SITE), grant=GRANT)
    assert loaded.mistakes == ()
    assert team_arguments.vcluster(loaded.settings, "nlp")["labels"] == both


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
    for raw, place in (
        (stack({kind: {key: "x"}}), "kai-fleet:teams.ml"),
        (stack(**{kind: {key: "x"}}), "kai-fleet"),
        (stack(teamStacks={"nlp": {kind: {key: "x"}}}), "kai-fleet:teamStacks.nlp"),
    ):
        (mistake,) = load(raw).mistakes
        assert mistake.path.startswith(place)
        assert kind in mistake.path
        assert "write a key of your own domain" in mistake.message


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize(
    "key",
    [
        *("name", "owner", "field.cattle.io/projectId", "ipam.antrea.io/ippools"),
        *("ipam.cilium.io/ip-pool", "metallb.io/ip-pool", "badexample.com/x", "com/x"),
    ],
)
def test_a_team_writes_keys_of_the_domains_that_the_platform_lists(kind, key):
    own, listed = {kind: {key: "kube-system"}}, ["example.com"]
    (mistake,) = load(stack(own, keyDomains=listed)).mistakes
    assert mistake.path == f"kai-fleet:teams.ml.{kind}"
    assert f"has {key}, whose domain is not in kai-fleet:keyDomains: example.com" in mistake.message
    domain = key.rpartition("/")[0]
    if domain:
        assert load(stack(own, keyDomains=[*listed, domain])).mistakes == ()
    assert load(stack(own, **own)).mistakes == (), "what the platform writes for all"
    other = {kind: {key: "default"}}
    assert load(stack(own, keyDomains=listed, **other)).mistakes, "with another value"
    assert load(stack(keyDomains=listed, teamStacks={"nlp": own})).mistakes == ()


@pytest.mark.parametrize("key", ["example.com/a", "team.example.com/a"])
def test_keys_of_a_listed_domain_and_below_it_pass(key):
    assert load(stack({"labels": {key: "x"}}, keyDomains=["example.com"])).mistakes == ()


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_labels_and_annotations_of_a_program_change_no_bound(level):
    odd = {"pod-security.kubernetes.io/enforce": "privileged", "kai-fleet/team": "other"}
    args = {"isolation": {"level": level}, "node_pool": {"pool": "ml"}, "guards": "declared"}
    assert namespace_metadata("ml", {**args, "labels": odd}) == namespace_metadata("ml", args)
    granted = {**args, "annotations": {"guard.kai-fleet/endpoints": "true"}}
    with pytest.raises(pulumi.RunError, match=r"guard\.kai-fleet/endpoints is a bound"):
        declared(lambda: TeamNamespace("ml", granted))


def test_a_label_is_text_in_its_form():
    (mistake,) = load(stack({"labels": {"owner": "who knows?"}})).mistakes
    assert mistake.path == "kai-fleet:teams.ml.labels.owner"
    assert "write a label value" in mistake.message


def test_the_control_plane_has_them_by_keys_of_its_chart():
    control = vcluster_values("ml", OWN, "team-ml")["controlPlane"]
    assert control["statefulSet"]["labels"] == OWN["labels"]
    assert control["statefulSet"]["annotations"] == OWN["annotations"]
    assert control["statefulSet"]["pods"] == {"labels": OWN["labels"]}
    assert control["service"]["labels"] == OWN["labels"]
    dns = control["coredns"]["deployment"]
    assert dns["labels"] == dns["pods"]["labels"] == OWN["labels"]
    assert control["advanced"] == {"headlessService": OWN}, (
        "an account with an annotation may have a cloud's rights"
    )
    without = vcluster_values("ml", {}, "team-ml")["controlPlane"]
    assert not {"labels", "annotations", "pods"} & without["statefulSet"].keys()


def objects(raw):
    """The metadata of every object of Kubernetes that is declared, but for what charts make."""
    return {
        resource.name: (resource.type, resource.inputs["metadata"])
        for resource in plan_settings(raw).resources
        if resource.type.startswith("kubernetes:") and "metadata" in resource.inputs
    }


def test_everything_that_is_made_for_a_team_has_them(tmp_path, monkeypatch):
    monkeypatch.setattr("kai_fleet_stack.settings.files.yaml_file.ROOT", tmp_path)
    pod = (ROOT / "examples" / "workloads" / "cpu.yaml").read_text()
    (tmp_path / "cpu.yaml").write_text(pod.replace("queue: test", "queue: train"))
    own = {"labels": {COST: "17"}, "annotations": {NOTE: "x"}}
    of_all = {"labels": {"site": "hq"}, "keyDomains": ["example.com"]}
    created = objects(stack(own, workloads={"ml": ["cpu.yaml"]}, **of_all))
    of_team = {name: item for name, item in created.items() if name.startswith(("ml/", "ml-"))}
    pod = "ml/default/cpu-pod"
    assert {"ml-namespace", "ml-pods", "ml-network-pods", "ml-kai-namespace", pod} <= of_team.keys()
    for name, (_, metadata) in of_team.items():
        assert metadata["labels"].items() >= {COST: "17", "site": "hq"}.items(), name
        # Of the pod the host's guard would refuse them; a cloud reads those of a ServiceAccount.
        without_notes = (pod, "ml-volumes")
        assert (NOTE in metadata.get("annotations", {})) == (name not in without_notes), name
    assert of_team[pod][1]["labels"]["kai.scheduler/queue"] == "train"


def test_what_the_platform_makes_has_those_of_all():
    grants = {"nlp": {"nodePool": {"kai-fleet/pool": "nlp"}, "gpus": 4, "parentQueue": "nlp"}}
    account = "azure.workload.identity/client-id"
    noted = {"labels": {"site": "hq"}, "annotations": {account: "x"}}
    raw = stack(**noted, teamStacks=grants, kai={"version": "v0.16.8"}, monitoring={})
    raw |= {"teams": {}, "queues": {"nlp": {"gpu": 4}}, "gpu": {"provider": "device-plugin"}}
    platform = {name: item for name, item in objects(raw).items() if name.startswith("host-")}
    names = {f"host-{item}-namespace" for item in ("gpu", "kai", "team-stacks")}
    assert names <= platform.keys()
    accounts = [kind.endswith(":ServiceAccount") for kind, _ in platform.values()]
    assert any(accounts)
    for (name, (_, metadata)), of_account in zip(platform.items(), accounts, strict=True):
        assert metadata["labels"]["site"] == "hq", name
        assert of_account != (account in metadata.get("annotations", {})), name
