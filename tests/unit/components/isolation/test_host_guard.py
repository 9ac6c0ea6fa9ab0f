"""What the host's policies say of places, without an API server."""

import json

import pytest

from kai_fleet.isolation.bounds import pod_bounds
from kai_fleet.isolation.queue_guard import queue_bounds
from kai_fleet.releases.chart_values import nested
from tests.attacks.objects import control_plane, fraction, pod, probing
from tests.policy_evaluation import account, controller, creation, refusals
from tests.unit.components.component_samples import NAMESPACE

OWN = {"node-role.kubernetes.io/ml": ""}


def bounds(team="dev", **args):
    return pod_bounds(team, {"scheduler": "none", **args})


DEV = bounds()
NLP = bounds("nlp", scheduler="host", host_kai=True, queues=["nlp"])


def reported(of_team, body, user=None, kind="pods"):
    user = user or account("team-dev", "vc-dev")
    return list(refusals(kind, body, creation("pods", "team-dev", user), of_team))


def placed(**selector):
    return pod("dev", nodeSelector=selector)


def test_a_pool_by_a_label_without_a_value_is_asked_for_too():
    own = bounds(node_pool=OWN)
    assert reported(own, placed(**OWN)) == []
    assert "is not held to the nodes of the team" in reported(own, placed())[0]
    assert "is not held to the nodes of the team" in reported(own, placed(**{"a": ""}))[0]


def test_a_foreign_pool_by_a_label_without_a_value_is_only_what_selects_it():
    others = bounds(foreign_pools=[OWN])
    assert reported(others, placed()) == []
    assert "selects nodes that are not of the team" in reported(others, placed(**OWN))[0]


@pytest.mark.parametrize("pool", [{"kai-fleet/pool": "ml"}, {"other": "x"}])
def test_a_control_plane_is_on_others_nodes_only_where_the_platform_has_it(pool):
    platform = {"kai-fleet/pool": "platform"}
    of_team = bounds(control_pool=platform, foreign_pools=[platform, pool])
    body = {"kind": "Pod", **control_plane("dev")}
    body["spec"]["tolerations"] = [{"operator": "Exists"}]
    assert reported(of_team, body, controller()) == []
    body["spec"]["nodeSelector"] = pool
    assert (
        "write nodeSelector: {kai-fleet/pool: platform}" in reported(of_team, body, controller())[0]
    )


def test_only_the_control_plane_has_the_priority_of_its_values():
    values = nested("controlPlane.statefulSet.scheduling.priorityClassName", "control-planes")
    of_team = bounds(vcluster_values=values)
    plane = {"kind": "Pod", **control_plane("dev")}
    plane["spec"] |= {"priorityClassName": "control-planes", "priority": 1000}
    own = pod("dev", priorityClassName="control-planes", priority=1000)
    assert reported(of_team, plane, controller()) == []
    assert "which preempts the pods of other teams" in reported(DEV, plane, controller())[0]
    assert "which preempts the pods of other teams" in reported(of_team, own)[0]
    plane["spec"]["priorityClassName"] = "urgent"
    assert "which preempts the pods of other teams" in reported(of_team, plane, controller())[0]


def bound(name, taints):
    """What is said of a pod that its scheduler places on another team's node."""
    node = {"metadata": {"name": "n"}, "spec": {"taints": taints}}
    request = creation("pods", "team-nlp", {"username": "system:kube-scheduler"}, name)
    request |= {"subResource": "binding"}
    body = {"metadata": {"name": name}, "target": {"name": "n"}}
    return list(refusals("nodes", body, request, params=node))


TAINTED = [{"key": "a", "effect": "NoSchedule"}]


@pytest.mark.parametrize("name", ["nlp-0", "nlp-etcd-2", "nlp-5b8d7f9c6d-x7k2p"])
def test_the_control_plane_of_a_team_without_nodes_gets_to_the_platforms(name):
    assert bound(name, TAINTED) == []


@pytest.mark.parametrize("name", ["nlp-0-x-default-x-nlp", "x-nlp-0", "nlp-x-0"])
def test_no_other_pod_of_it_does(name):
    assert "is not one of the nodes of team-nlp" in bound(name, TAINTED)[0]
    assert bound(name, []) == []


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
def test_no_container_has_a_raw_proc(kind):
    """Pod Security lets it pass in pods with hostUsers: false, from Kubernetes 1.36 on."""
    body = {"kind": "Pod", **pod("dev", hostUsers=False)}
    own = {"name": "raw", "image": "x", "securityContext": {"procMount": "Unmasked"}}
    body["spec"].setdefault(kind, []).append(own)
    assert "procMount" in reported(DEV, body)[0]
    own["securityContext"]["procMount"] = "Default"
    assert reported(DEV, body) == []


@pytest.mark.parametrize("odd", ["0.0099", "0x1p-9", "", "-1", "nan"])
def test_a_share_that_kai_counts_as_none_is_none_of_a_hosts_queue(odd):
    body = {"kind": "Pod", **fraction("nlp")}
    for value, refused in (("0.01", False), (".5", False), ("1e-1", False), (odd, True)):
        body["metadata"]["annotations"]["gpu-fraction"] = value
        assert (
            "which KAI does not count" in "".join(reported(NLP, body, kind="owners"))
        ) is refused


COUNTED = {"runai-gpu-group": "g", "kai.scheduler/subgroup-name": "x"}


@pytest.mark.parametrize("key", COUNTED)
def test_what_kai_counts_by_is_written_by_kai_and_by_no_template(key):
    plain = {"kind": "Pod", **pod("nlp", name="plain")}
    marked = {"kind": "Pod", **pod("nlp", labels={key: COUNTED[key]})}

    def said_to(user, before=None):
        request = creation("pods", "team-nlp", user)
        request["operation"] = "UPDATE" if before else "CREATE"
        return list(refusals("owners", marked, request, NLP, before=before))

    for user in (controller(), {"username": "system:kube-controller-manager"}):
        assert f"has {key} not as KAI left it" in said_to(user)[0]
        assert f"has {key} not as KAI left it" in said_to(user, plain)[0]
    assert said_to(account("kai-scheduler", "binder"), plain) == []


@pytest.mark.parametrize("more", [{"labels": {"project": "audio"}}, {}])
def test_a_pod_that_kai_schedules_leaves_its_queue_to_nobody(more):
    """Where the guard of queues only warns, or is off: KAI asks the owner, then the project."""
    body = {"kind": "Pod", **pod("nlp", schedulerName="kai-scheduler", **more)}
    assert ("leaves its queue" in "".join(reported(NLP, body, kind="owners"))) is bool(more)
    body["metadata"]["ownerReferences"] = [{"kind": "ConfigMap", "name": "c"}]
    assert "leaves its queue" in reported(NLP, body, kind="owners")[0]
    body["metadata"]["labels"]["kai.scheduler/queue"] = "nlp"
    assert reported(NLP, body, kind="owners") == []


def test_what_kai_wrote_stays_whoever_writes_the_rest():
    body = {
        "kind": "PodGroup",
        "metadata": {"annotations": {"kai.scheduler/last-start-timestamp": "x"}},
    }
    request = creation("podgroups", "team-nlp", account("kube-system", "generic-garbage-collector"))
    found = refusals("owners", body, request | {"operation": "UPDATE"}, NLP, before=body)
    assert list(found) == []


CLAIMS = ("ephemeral-volume-controller", "statefulset-controller")
TEMPLATE = {"metadata": {"name": "c", "annotations": {"volume.kubernetes.io/selected-node": "n"}}}


@pytest.mark.parametrize("user", [*(account("kube-system", claim) for claim in CLAIMS), None])
def test_a_claim_that_a_controller_makes_of_a_template_is_judged_as_any(user):
    user = user or {"username": "system:kube-controller-manager"}
    request = creation("persistentvolumeclaims", "team-nlp", user, "c")
    body, node = {"spec": {}, **TEMPLATE}, {"metadata": {"name": "n"}}
    assert "let the scheduler choose" in "".join(refusals("lifecycle", body, request, NLP))
    inside = bounds("nlp", scheduler="inside")
    assert list(refusals("lifecycle", body, request, inside)) == []
    assert "is not one of the nodes" in "".join(refusals("nodes", body, request, params=node))
    scheduler = request | {"operation": "UPDATE", "userInfo": {"username": "system:kube-scheduler"}}
    before = {"metadata": {"name": "c"}, "spec": {}}
    for kind, more in (("lifecycle", {"bounds": NLP}), ("nodes", {"params": node})):
        assert list(refusals(kind, body, scheduler, before=before, **more)) == []


PROBING = dict(probing("dev"))


@pytest.mark.parametrize("name", PROBING)
def test_a_node_connects_to_the_pod_itself_by_each_probe_and_hook(name):
    body = PROBING[name]
    assert "has a probe or hook with the host 10.0.0.1" in reported(DEV, body, kind="traffic")[0]
    within = json.loads(json.dumps(body).replace(', "host": "10.0.0.1"', ""))
    assert within != body
    assert reported(DEV, within, kind="traffic") == []


@pytest.mark.parametrize("endpoints", [None, []])
def test_a_slice_without_endpoints_leads_nowhere(endpoints):
    """An API server hands on an empty list of endpoints as null."""
    body = {"kind": "EndpointSlice", "addressType": "IPv4", "endpoints": endpoints}
    body["metadata"] = {"name": "web"}
    request = creation("endpointslices", "team-dev", account("team-dev", "vc-dev"))
    assert list(refusals("traffic", body, request, DEV)) == []


EVERY_BOUND = {
    **pod_bounds("dev", NAMESPACE),
    **pod_bounds("dev", {"node_pool": OWN, "isolation": {"network": {"enabled": False}}}),
    **queue_bounds("dev", ["q"], "deny", {**NAMESPACE, "pod_groups": True}),
}
NEVER_EMPTY = {"allowed", "sharing", "become"}
KINDS = ("devices", "pods", "annotations", "traffic", "lifecycle", "owners", "queues")


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_that_is_empty_grants_as_little_as_one_that_is_absent(kind):
    """An Output that turns out to be empty is written so."""
    body = {"kind": "Pod", **pod("dev", schedulerName="kai-scheduler", hostUsers=False)}
    bodies = [*PROBING.values(), body, {"kind": "Pod", **fraction("dev")}, placed(**OWN)]
    empty = {**dict.fromkeys(EVERY_BOUND.keys() - NEVER_EMPTY, ""), **DEV}
    assert empty.keys() - DEV.keys() >= {"queues", "pool", "volumes", "endpoints", "nvFractions"}
    for each in bodies:
        assert reported(empty, each, kind=kind) == reported(DEV, each, kind=kind)
