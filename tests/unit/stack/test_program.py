"""The program's resource graph, as it registers it: no engine, no cluster."""

import pytest

from kai_fleet_cli.plan import recorder
from kai_fleet_cli.plan.recorder import SECRET, UNKNOWN, record
from kai_fleet_stack.arguments import Arguments
from kai_fleet_stack.settings.loading import load

CLUSTER = {"name": "lab", "context": "lab"}
POOL = {"nodePool": {"pool": "ml"}}
QUEUES = {"top": {"gpu": {"quota": 4}, "children": {"train": {"gpu": {"quota": 4}}}}}
ML = {"scheduler": {"mode": "virtual", "version": "v0.9.3"}, "gpus": 4, "queues": QUEUES, **POOL}
DEV = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "dev"}}
UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
HOST = {
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": {"leaf": UNLIMITED}}},
    "teams": {"nlp": {"scheduler": {"mode": "host"}, "queue": "leaf", "gpus": 1}},
}


def declared(**settings):
    found = record("lab", {"cluster": CLUSTER, **settings})
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in found}


@pytest.fixture(scope="module")
def virtual():
    return declared(teams={"ml": ML, "dev": DEV})


@pytest.fixture(scope="module")
def host():
    return declared(**HOST)


def test_a_team_in_virtual_mode_gets_its_scheduler_inside_its_vcluster(virtual):
    inner = next(i for i in virtual.values() if i.urn.endswith("kubernetes::ml"))
    release = virtual[("Release", "ml-kai-release")]
    assert release.provider == inner.urn
    assert release.inputs["version"] == "v0.9.3"
    assert release.inputs["namespace"] == "kai-scheduler"
    assert release.inputs["values"]["global"]["gpuSharing"] is True
    assert "atomic" not in release.inputs
    tree = virtual[("Queues", "ml-queues")]
    # Another vCluster of the same name replaces it all, and nobody asks the API of the old one.
    identity = virtual[("Command", "ml-identity")].inputs
    assert identity["triggers"] == [tree.inputs["cluster"]] == [UNKNOWN]
    place = {"VCLUSTER_NAMESPACE": "team-ml", "VCLUSTER_SERVER": UNKNOWN}
    assert identity["environment"] == place


def test_no_component_is_skipped_with_what_it_follows(monkeypatch):
    """Its children follow: one that is a provider of the state must not be skipped."""
    following = {}
    register = recorder._Recorder.RegisterResource

    def note(self, request):
        following[request.type, request.name] = [*request.dependencies]
        return register(self, request)

    monkeypatch.setattr(recorder._Recorder, "RegisterResource", note)
    record("lab", {"cluster": CLUSTER, **HOST})
    of_components = {
        key: urns for key, urns in following.items() if key[0].startswith("kai-fleet:index:")
    }
    assert ("kai-fleet:index:Team", "nlp") in of_components
    assert ("kai-fleet:index:KaiScheduler", "host") in of_components
    custom = {"kai-fleet:index:Queues", "kai-fleet:index:QueueCheck"}
    assert not [key for key, urns in of_components.items() if urns and key[0] not in custom]
    assert any(following.values())


def test_the_gpus_are_bounded_on_the_host(virtual):
    quota = virtual[("ResourceQuota", "ml-gpus")].inputs
    assert quota["metadata"]["namespace"] == "team-ml"
    assert (
        quota["spec"]["hard"].items()
        >= {
            "requests.nvidia.com/gpu": "4",
            "requests.amd.com/gpu": "0",
            "count/resourceclaims.resource.k8s.io": "0",
        }.items()
    )


def test_the_kubeconfig_is_a_secret_everywhere_and_no_step_has_a_copy(virtual):
    steps = [item for (kind, _), item in virtual.items() if kind == "Command"]
    assert not [
        item.name for item in steps if "PROBE_KUBECONFIG" in item.inputs.get("environment", {})
    ]
    wait = virtual[("Command", "ml-kai-ready")].inputs["environment"]
    assert (wait["PROBE_CONTEXT"], wait["PROBE_SECRET"]) == (CLUSTER["context"], "team-ml/vc-ml")
    assert virtual[("Queues", "ml-queues")].inputs["kubeconfig"] == SECRET
    provider = next(i for i in virtual.values() if i.urn.endswith("kubernetes::ml"))
    assert provider.inputs == {
        "clusterIdentifier": "ml",
        "enablePatchForce": "true",
        "enableSecretMutable": "true",
        "kubeClientSettings": '{"timeout": 15}',
        "kubeconfig": SECRET,
        # Its volume may have what an earlier vCluster of the team declared.
        "upsertExistingObjects": "true",
    }


def test_host_mode_declares_kai_and_its_queues_once_on_the_host(host):
    provider = host[("Release", "host-kai-release")].provider
    assert provider.endswith("kubernetes::host")
    tree = host[("Queues", "host-queues")].inputs
    assert (tree["cluster"], tree["context"]) == ("lab", CLUSTER["context"])
    assert "leaf" in tree["queues"]
    assert [name for kind, name in host if kind == "Queues"] == ["host-queues"]


def test_a_key_has_the_wait_for_kai_place_a_gang():
    scheduler = {**ML["scheduler"], "verify": True, "gpuSharing": False}
    inside = declared(teams={"ml": {**ML, "scheduler": scheduler}})
    on_host = declared(**{**HOST, "kai": {**HOST["kai"], "verify": True}})
    waits = inside[("Command", "ml-kai-ready")], on_host[("Command", "host-kai-ready")]
    assert [wait.inputs["environment"]["KAI_VERIFY"] for wait in waits] == ["gang", "share"]


def test_a_queue_of_the_host_fails_the_team_that_uses_it_and_nobody_else(host):
    checks = {name: item for (kind, name), item in host.items() if kind == "QueueCheck"}
    assert checks.keys() == {"nlp-queue", "host-queues-unused"}
    assert checks["nlp-queue"].inputs["queues"] == ["leaf"]
    assert "kai-fleet:index:TeamNamespace$" in checks["nlp-queue"].urn
    tree = host[("Queues", "host-queues")].inputs
    assert (tree["shared"], tree["tenants"]) == (True, [])


def test_refusals_of_the_host_go_to_the_teams_whose_queues_they_are():
    raw = {"cluster": CLUSTER, **HOST, "teamStacks": {"lab": {"parentQueue": "theirs", "gpus": 1}}}
    children = dict.fromkeys(("leaf", "theirs", "free"), UNLIMITED)
    raw["queues"] = {"top": {**UNLIMITED, "children": children}}
    settings = load(raw).settings
    refused = {"theirs": "queue theirs …", "free": "queue free …", "old": "queue old …"}
    args = Arguments(settings, refused=refused)
    assert args.namespace("lab")["queue_refusal"] == "queue theirs …"
    assert args.namespace("nlp")["queue_refusal"] == ""
    assert args.refusals_of_unused_queues() == "queue free …\nqueue old …"
    assert args.host_queues()["tenants"] == ["lab"]


def test_a_gpu_operator_brings_the_crd_itself():
    with_operator = declared(gpu={"provider": "operator"}, **{**HOST, "kai": {"version": "v0.9.3"}})
    without = declared(**{**HOST, "kai": {"version": "v0.9.3"}})
    crd = ("CustomResourceDefinition", "host-kai-cluster-policy")
    assert crd not in with_operator
    assert crd in without


def test_amd_gpus_are_bounded_by_their_name_and_not_shared():
    found = declared(teams={"ml": ML}, gpu={"resource": "amd.com/gpu"})
    hard = found[("ResourceQuota", "ml-gpus")].inputs["spec"]["hard"]
    assert (hard["requests.amd.com/gpu"], hard["requests.nvidia.com/gpu"]) == ("4", "0")
    values = found[("Release", "ml-kai-release")].inputs["values"]
    assert values["global"]["gpuSharing"] is False


@pytest.mark.parametrize(
    ("guard", "actions"),
    [
        ({}, ["Deny"]),
        ({"mode": "audit"}, ["Audit", "Warn"]),
        ({"outsideQueues": "warn"}, ["Audit", "Warn"]),
        ({"outsideQueues": "allow"}, None),
        ({"mode": "off"}, None),
    ],
)
def test_pods_beside_the_queues_are_denied_where_the_guard_denies(guard, actions):
    found = declared(teams={"ml": ML}, guard=guard)
    binding = found.get(("ValidatingAdmissionPolicyBinding", "ml-guard-outside-binding"))
    assert (binding and binding.inputs["spec"]["validationActions"]) == actions
