"""What the quotas of a team's namespace count."""

from kai_fleet.isolation.limits import quotas
from kai_fleet.isolation.rights import vcluster_in_namespace as in_namespace


def hard(name, **args):
    isolation = {"bounds": {"pods": 10, "objects": 50}}
    return quotas({"gpus": 2, "isolation": isolation, **args})[name]["hard"]


def test_pods_that_have_ended_are_counted_with_those_that_run():
    assert (hard("pods")["pods"], hard("pods")["count/pods"]) == ("10", "50")


def test_claims_are_none_without_a_granted_class_and_counted_with_one():
    for kind in ("resourceclaims", "resourceclaimtemplates"):
        key = f"count/{kind}.resource.k8s.io"
        assert hard("gpus")[key] == "0"
        assert hard("gpus", device_classes={"small": 1})[key] == "50"


def test_services_have_a_bound_of_their_own():
    """Each has an address of the host's, of which a small cluster has a few thousand."""
    assert quotas({"guards": ""})["objects"]["hard"]["services"] == "500"
    bounds = {"bounds": {"services": 7, "objects": 50}}
    assert quotas({"isolation": bounds})["objects"]["hard"]["services"] == "7"


def huge_pages(**args):
    found = hard("pods", **args)
    return {found.get(f"requests.hugepages-{size}") for size in ("64Ki", "2Mi", "32Mi", "1Gi")}


def test_huge_pages_of_nodes_that_are_shared_are_none_unless_granted():
    own, granted = {"node_pool": {"pool": "ml"}}, {"bounds": {"huge_pages": "4Gi"}}
    assert huge_pages() == huge_pages(scheduler="none", **own) == {"0"}
    assert huge_pages(scheduler="host") == {"0"}
    assert huge_pages(**own) == {None}
    assert huge_pages(isolation=granted) == huge_pages(isolation=granted, **own) == {"4Gi"}


def test_every_kind_that_a_vcluster_may_make_is_counted():
    """With all that values have it sync. Events are Kubernetes' own to delete, after an hour."""
    on = {"enabled": True}
    routes = ("httpRoutes", "gateways", "tlsRoutes", "backendTLSPolicies", "referenceGrants")
    kinds = ("ingresses", "serviceAccounts", "podDisruptionBudgets", "volumeSnapshots")
    claims = ("resourceClaims", "resourceClaimTemplates")
    synced = {**dict.fromkeys((*kinds, *claims), on), "gatewayApi": dict.fromkeys(routes, on)}
    args = {"vcluster_version": "v0.36.1", "vcluster_values": {"sync": {"toHost": synced}}}
    makes = {
        f"{kind}.{rule['api_groups'][0]}".rstrip(".")
        for rule in in_namespace("ml", args)
        for kind in rule["resources"]
        if "create" in rule["verbs"] and "/" not in kind and kind != "events"
    }
    assert "gateways.gateway.networking.k8s.io" in makes
    keys = {key for name in ("pods", "objects", "gpus") for key in hard(name)}
    assert makes <= {key.removeprefix("count/") for key in keys}
