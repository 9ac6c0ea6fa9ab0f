"""What accounts of a team may write in metadata on the host, without an API server."""

import copy
import re

import pytest

from kai_fleet.isolation.bounds import pod_bounds
from kai_fleet.isolation.policies import content, policy
from tests.attacks.objects import claim, pod
from tests.policy_evaluation import account, controller, creation, refusals
from tests.unit.components.isolation.metadata_page import listed

SCHEDULERS = {"virtual": "inside", "host": "host", "default": "none"}
MODES = {mode: {"scheduler": place} for mode, place in SCHEDULERS.items()}
TENANTS = {
    "vcluster": account("team-ml", "vc-ml"),
    "delegate": account("team-ml", "helper"),
    "stack": account("kai-fleet-team-stacks", "ml"),
}
KINDS = ("pods", "secrets", "configmaps", "services", "persistentvolumeclaims", "endpoints")


def owner(kind="Service", name="ml", **more):
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": "1", **more}


def body(**metadata):
    return {"metadata": {"name": "x", **metadata}}


def reported(resource, after, before=None, user=None, mode="virtual", level="baseline", group=""):
    """Each sentence of the policy about an object that is made or changed."""
    request = creation(resource, "team-ml", user or TENANTS["vcluster"], after["metadata"]["name"])
    request["operation"] = "UPDATE" if before else "CREATE"
    request["resource"]["group"] = group
    args = {**MODES[mode], "host_kai": mode == "host", "isolation": {"level": level}}
    return list(refusals("metadata", after, request, pod_bounds("ml", args), before=before))


@pytest.mark.parametrize("level", ["baseline", "restricted"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("resource", KINDS)
def test_an_owner_is_the_service_of_the_vcluster_or_none(resource, tenant, mode, level):
    def said_of(*owners, **more):
        after = body(ownerReferences=list(owners))
        return reported(resource, after, user=TENANTS[tenant], mode=mode, level=level, **more)

    assert said_of() == []
    assert said_of(owner(controller=True)) == []
    others = (
        owner("ConfigMap"),
        owner("Secret"),
        owner(name="another"),
        owner("PriorityClass", apiVersion="scheduling.k8s.io/v1"),
        owner("RuntimeClass", apiVersion="node.k8s.io/v1"),
        owner("Node"),
        owner("Queue", apiVersion="scheduling.run.ai/v2"),
        owner("PodGroup", apiVersion="scheduling.run.ai/v2alpha2"),
        owner(blockOwnerDeletion=True),
        owner(apiVersion="serving.knative.dev/v1"),
    )
    for each in others:
        assert "has an owner that a vCluster does not write" in said_of(each)[0], each
        assert "has an owner that a vCluster does not write" in said_of(owner(), each)[0], each
    assert "has an owner that a vCluster does not write" in said_of(owner(), owner(), owner())[0]


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("resource", KINDS)
def test_owners_stay_as_they_are_but_those_of_a_token(resource, tenant):
    """A vCluster gives the Secret with a pod's tokens that pod as its owner, in place of its own
    Service, or where owners are off beside none.
    """
    token = body(ownerReferences=[owner("Pod", "p")])
    for before in (body(), body(ownerReferences=[owner()])):
        found = reported(resource, token, before, TENANTS[tenant])
        assert found == [] if resource == "secrets" else "gets or loses an owner" in found[0]
        lost = reported(resource, body(), before, TENANTS[tenant])
        unchanged = resource == "secrets" or not before["metadata"].get("ownerReferences")
        assert lost == [] if unchanged else "gets or loses an owner" in lost[0]
        assert reported(resource, {**before, "data": {"a": "b"}}, before, TENANTS[tenant]) == []
    cluster = body(ownerReferences=[owner("PriorityClass", apiVersion="scheduling.k8s.io/v1")])
    assert reported(resource, cluster, body(), TENANTS[tenant])


def test_a_pod_owns_tokens_only():
    for resource in KINDS:
        found = reported(resource, body(ownerReferences=[owner("Pod", "p")]))
        assert bool(found) is (resource != "secrets")


def test_the_service_that_owns_the_rest_is_owned_by_nothing():
    """Else two Services, or a pod and the Service, own each other."""
    api = {"metadata": {"name": "ml", "ownerReferences": [owner()]}}
    assert "does not write" in reported("services", api)[0]


def test_a_ring_of_any_kinds_is_refused_where_it_closes():
    """Of what may be an owner: the Service of the vCluster, and pods of tokens."""
    kinds = {"Service": "services", "Pod": "pods", "Secret": "secrets", "ConfigMap": "configmaps"}
    for first in kinds:
        for second in kinds:
            names = {first: "ml" if first == "Service" else "a"}
            names[second] = "ml" if second == "Service" and first != second else "b"
            of_first = {"metadata": {"name": names[first], "ownerReferences": []}}
            of_second = {"metadata": {"name": names[second], "ownerReferences": []}}
            of_first["metadata"]["ownerReferences"].append(owner(second, names[second]))
            of_second["metadata"]["ownerReferences"].append(owner(first, names[first]))
            said = reported(kinds[first], of_first) + reported(kinds[second], of_second)
            assert said, (first, second)


@pytest.mark.parametrize(
    "user",
    [
        account("kube-system", "generic-garbage-collector"),
        controller(),
        {"username": "system:kube-controller-manager"},
        account("kai-scheduler", "binder"),
    ],
)
def test_controllers_write_owners_and_finalizers(user):
    owned = body(ownerReferences=[owner("StatefulSet", apiVersion="apps/v1")], finalizers=["a/b"])
    assert reported("pods", owned, user=user) == []
    assert reported("pods", body(), owned, user) == []
    assert reported("configmaps", owned, body(), user) == []


@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("resource", KINDS)
def test_finalizers_neither_come_nor_go(resource, tenant):
    """One that a cloud's controller wrote removes a load balancer."""
    kept = body(finalizers=["service.kubernetes.io/load-balancer-cleanup"])
    for after, before in ((kept, None), (kept, body()), (body(), kept)):
        said = reported(resource, after, before, TENANTS[tenant])
        assert "finalizer service.kubernetes.io/load-balancer-cleanup" in said[0]
    assert reported(resource, {**kept, "data": {}}, kept, TENANTS[tenant]) == []


def test_finalizers_of_the_api_server_and_of_snapshots_pass():
    made = {**claim(), "metadata": {"name": "x", "finalizers": ["kubernetes.io/pvc-protection"]}}
    assert reported("persistentvolumeclaims", made) == []
    assert reported("persistentvolumeclaims", claim(), made)
    for name in ("snapshot", "restore"):
        request = body(finalizers=[f"vcluster.loft.sh/{name}-controller"])
        assert reported("configmaps", request, body()) == []
        assert reported("configmaps", body(), request) == []
        assert reported("secrets", request, body())


@pytest.mark.parametrize("field", ["ownerReferences", "finalizers", "generateName"])
@pytest.mark.parametrize("tenant", TENANTS)
def test_a_template_says_nothing_that_a_controller_copies(field, tenant):
    value = {"ownerReferences": [owner()], "finalizers": ["a/b"], "generateName": "x-"}[field]
    plain, marked = {"metadata": {"labels": {}}}, {"metadata": {field: value}}
    for spec in (
        {"template": marked},
        {"template": plain, "volumeClaimTemplates": [plain, marked]},
        {"jobTemplate": {"metadata": {}, "spec": {"template": marked}}},
        {"jobTemplate": marked},
    ):
        made = {"metadata": {"name": "x"}, "spec": spec}
        found = reported("statefulsets", made, user=TENANTS[tenant], group="apps")
        assert f"has {field} in the metadata of a template" in found[0]
        plainly = copy.deepcopy(made)
        plainly["spec"] = {"template": plain, "volumeClaimTemplates": [plain]}
        assert reported("statefulsets", plainly, user=TENANTS[tenant], group="apps") == []


def test_names_are_written():
    generated = {"metadata": {"name": "x", "generateName": "x-"}}
    for resource in KINDS:
        assert bool(reported(resource, generated)) is (resource != "services")


def test_a_plain_pod_passes():
    assert reported("pods", {"kind": "Pod", **pod("ml")}) == []


def marked(resource, user=None, before=None, team_bounds=None, **metadata):
    """Each sentence of the policy of annotations about an object with this metadata."""
    request = creation(resource, "team-ml", user or TENANTS["vcluster"], "x")
    request["operation"] = "CREATE" if before is None else "UPDATE"
    known = {**pod_bounds("ml", {"scheduler": "none", **(team_bounds or {})})}
    return list(refusals("annotations", body(**metadata), request, known, before=before))


@pytest.mark.parametrize("resource", ["pods", "secrets", "configmaps"])
@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("level", ["baseline", "restricted"])
@pytest.mark.parametrize("mode", MODES)
def test_an_annotation_of_any_domain_is_the_platforms_to_grant(resource, tenant, level, mode):
    user = TENANTS[tenant]
    args = {**MODES[mode], "isolation": {"level": level}}
    for key in (
        "acme.example/x",
        "cni",
        "replicator.v1.mittwald.de/replicate-to",
        "grafana_folder",
    ):
        (said,) = marked(resource, user, team_bounds=args, annotations={key: "x"})
        assert f"has the annotation {key}, by which" in said
        assert "write it or its domain in isolation.annotations" in said
        for granted in {key, key.split("/")[0]}:
            own = {**args, "isolation": {"level": level, "annotations": [granted]}}
            assert marked(resource, user, team_bounds=own, annotations={key: "x"}) == []


@pytest.mark.parametrize(
    "key", ["a/acme.example", "acme.example.evil/x", "notacme.example/x", "acme"]
)
def test_a_domain_that_only_looks_like_a_granted_one_is_another(key):
    own = {"isolation": {"annotations": ["acme.example"]}}
    assert marked("pods", team_bounds=own, annotations={"acme.example/x": "y"}) == []
    assert marked("pods", team_bounds=own, annotations={"sub.acme.example/x": "y"}) == []
    assert marked("pods", team_bounds=own, annotations={key: "y"})


def test_labels_of_pods_pass_and_those_of_secrets_and_configmaps_are_listed():
    labels = {"acme.example/x": "y", "grafana_dashboard": "1"}
    assert marked("pods", labels=labels) == []
    for resource in ("secrets", "configmaps"):
        for key in labels:
            assert f"has the label {key}, by which" in marked(resource, labels={key: "1"})[0]
        assert marked(resource, labels={"app": "web", "app.kubernetes.io/name": "web"}) == []


def test_what_is_there_already_stays_and_what_the_platform_writes_passes():
    old = body(annotations={"acme.example/x": "y"})
    assert marked("pods", before=old, annotations={"acme.example/x": "y", "checksum/a": "b"}) == []
    assert marked("pods", before=old, annotations={"acme.example/x": "z"})
    plugin = account("kube-system", "multus")
    network = {"k8s.v1.cni.cncf.io/network-status": "[]"}
    assert marked("pods", plugin, old, annotations=network) == []
    assert marked("pods", controller(), annotations=network), "a template says so"
    assert marked("configmaps", plugin, annotations=network) == []


@pytest.mark.parametrize("more", [{"attachments": True}, {"enabled": False}])
def test_other_networks_are_joined_where_the_platform_says_so(more):
    networks = {"k8s.v1.cni.cncf.io/networks": "x", "v1.multus-cni.io/default-network": "x"}
    for key, value in networks.items():
        assert marked("pods", annotations={key: value})
        own = {"isolation": {"network": more}}
        assert marked("pods", team_bounds=own, annotations={key: value}) == []
        assert marked("pods", team_bounds=own, annotations={"cdi.k8s.io/x": "y"})


def test_a_reservation_pod_keeps_its_node_where_kai_is_inside():
    notes = {"karpenter.sh/do-not-disrupt": "true"}
    assert marked("pods", team_bounds={"scheduler": "inside"}, annotations=notes) == []
    assert marked("pods", team_bounds={"scheduler": "host"}, annotations=notes)


def test_the_page_lists_what_passes():
    written = {
        each["name"]: each["expression"] for each in policy("annotations")["spec"]["variables"]
    }
    passing = [
        re.findall(r"'([^']+)'", written[name]) for name in ("passing", "programs", "plainLabels")
    ]
    inside = content("limits")["annotations"]["kai_inside"]
    assert listed() == {key for keys in [*passing, inside] for key in keys}
