"""What the program declares for the guard, and when."""

import re

import pytest

from kai_fleet.isolation.policies import policy
from kai_fleet.isolation.queue_guard import inside, queue_bounds
from kai_fleet.releases.keys import MEANT, right_key
from kai_fleet_cli.plan.recorder import record
from kai_usage.keys import QUEUE_LABEL
from tests.engine.guarded_pods import GROUPED, IN_TEST, pod
from tests.policy_evaluation import account, creation, refusals, refusals_by

pytestmark = pytest.mark.texts("guards")

CLUSTER = {"name": "lab", "context": "lab"}
ML = {"scheduler": {"mode": "virtual", "version": "v0.9.3"}, "nodePool": {"pool": "ml"}}
QUEUES = {"top": {"gpu": {"quota": 4}, "children": {"train": {"gpu": {"quota": 4}}, "serve": {}}}}
VIRTUAL = {"teams": {"ml": {**ML, "gpus": 4, "queues": QUEUES}}}
HOST = {
    "kai": {"version": "v0.16.8"},
    "queues": QUEUES,
    "teams": {"nlp": {"scheduler": {"mode": "host"}, "queue": "serve", "gpus": 1}},
}
NO_DOMAIN = "kai.scheduler.nvidia.com"
PREFIXES = ("kai.scheduler", "kai-scheduler", "runai", "run.ai", "scheduling.run.ai")
POLICY = "ValidatingAdmissionPolicy"


def declared(**settings):
    found = record("lab", {"cluster": CLUSTER, **settings})
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in found}


def bounds_of(policy):
    return next(
        variable["expression"]
        for variable in policy["spec"]["variables"]
        if variable["name"] == "bounds"
    )


def annotations_of(found, team):
    return found[("Namespace", f"{team}-namespace")].inputs["metadata"]["annotations"]


def bound(found, guard, part="binding"):
    return found[(f"{POLICY}Binding", f"{guard}-{part}")].inputs["spec"]


def test_queue_guard_in_virtual_mode_is_inside_for_every_namespace():
    found = declared(**VIRTUAL)
    created, binding = found[(POLICY, "ml-guard-policy")], bound(found, "ml-guard")
    inside = next(i for i in found.values() if i.urn.endswith("kubernetes::ml"))
    assert created.provider == inside.urn
    assert "'guard.kai-fleet/queues': 'serve,train'" in bounds_of(created.inputs)
    assert created.inputs["spec"]["failurePolicy"] == "Fail"
    assert binding["validationActions"] == ["Deny"]
    assert "namespaceSelector" not in binding["matchResources"]


def test_queue_guard_templates_of_pods_are_only_warned_about():
    found = declared(**HOST)
    spec = bound(found, "nlp-queue-guard", "templates-binding")
    assert spec["policyName"] == bound(found, "nlp-queue-guard")["policyName"]
    assert spec["validationActions"] == ["Warn"]
    (without,) = spec["matchResources"]["excludeResourceRules"]
    assert without["resources"] == ["pods"]
    of_pods = bound(found, "nlp-queue-guard")["matchResources"]
    assert spec["matchResources"]["namespaceSelector"] == of_pods["namespaceSelector"]


def test_queue_guard_in_host_mode_is_the_hosts_for_the_teams_namespace():
    found = declared(**HOST)
    created = found[(POLICY, "host-guards-queues")]
    assert created.provider.endswith("kubernetes::host")
    assert bound(found, "nlp-queue-guard")["policyName"] == created.inputs["metadata"]["name"]
    assert "namespaceObject" in bounds_of(created.inputs), "which no team can write"
    assert annotations_of(found, "nlp")["guard.kai-fleet/queues"] == "serve"
    selector = bound(found, "nlp-queue-guard")["matchResources"]["namespaceSelector"]
    assert selector == {"matchLabels": {"kubernetes.io/metadata.name": "team-nlp"}}


def of_queues(item):
    return item.inputs.get("metadata", {}).get("name", "").startswith("kai-fleet-queues-")


@pytest.mark.parametrize("team", [VIRTUAL, HOST])
def test_queue_guard_audit_warns_and_off_declares_nothing(team):
    def actions(mode):
        found = declared(guard={"mode": mode}, **team)
        of_guard = [i for (kind, _), i in found.items() if kind.startswith(POLICY) and of_queues(i)]
        return [i.inputs["spec"].get("validationActions", []) for i in of_guard]

    assert ["Audit", "Warn"] in actions("audit")
    assert ["Deny"] not in actions("audit")
    assert actions("off") == []


def judged(body, queues=("test",), **args):
    bounds = queue_bounds("ml", queues, "deny", args)
    asked = creation("pods", "default", account("default", "default"), "p")
    return list(refusals("queues", body, asked, bounds))


@pytest.mark.parametrize(
    ("version", "passes"),
    [("v0.15.3", True), ("v0.14.7", False)],
)
def test_queue_guard_a_pod_group_stands_for_a_queue_where_kai_reads_it(version, passes):
    scheduler = {**ML["scheduler"], "version": version}
    found = declared(teams={"ml": {**ML, "scheduler": scheduler, "gpus": 4, "queues": QUEUES}})
    bounds = bounds_of(found[(POLICY, "ml-guard-policy")].inputs)
    assert ("'guard.kai-fleet/podGroups': 'true'" in bounds) == passes
    assert (judged(GROUPED, pod_groups=passes) == []) == passes
    of_host = annotations_of(declared(**HOST), "nlp")
    assert "guard.kai-fleet/podGroups" not in of_host, "its queues are of all teams"


@pytest.mark.parametrize("scheduler", ["kai-scheduler", "default-scheduler"])
@pytest.mark.parametrize(
    "body",
    [
        pod(labels={f"{NO_DOMAIN}/preemptibility": "x"}),
        pod(annotations={"nvidia.com/gpu-fraction": "0.5"}),
        pod(limits={"nvidia.com/gpu-fraction": "1"}),
    ],
    ids=["label", "annotation", "limit"],
)
def test_queue_guard_denies_look_alikes_of_nvidias_domains_with_what_is_meant(
    body, scheduler, texts
):
    denied = judged({**body, "spec": {**body["spec"], "schedulerName": scheduler}})
    assert denied
    texts(*denied)


def test_queue_guard_whole_gpus_are_no_look_alike():
    assert judged(pod(labels=IN_TEST, limits={"nvidia.com/gpu": "1"})) == []


@pytest.mark.parametrize("kind", ["queues", "outside-queues"])
def test_queue_guard_scaling_pods_pass_in_their_namespace_and_nowhere_else(kind):
    labels = {"app": "scaling-pod", "shared-gpu-pod-name": "half"}
    scaling = pod("default-half", labels, None, None, {"nvidia.com/gpu": "1"})
    adjuster = account("kai-scheduler", "node-scale-adjuster")
    bounds = queue_bounds("ml", ["test"], "deny", {})

    def refused(namespace):
        return list(refusals(kind, scaling, creation("pods", namespace, adjuster, "p"), bounds))

    assert refused("kai-scale-adjust") == []
    assert bool(refused("default")) == (kind == "outside-queues")


def test_inside_a_name_cannot_leave_its_quotes():
    policies, _ = inside("a' || true || 'b\\", ["x"], {})
    bounds = bounds_of(policies["policy"])
    assert "'a\\' || true || \\'b\\\\'" in bounds


def test_queue_guard_looks_for_what_the_rule_calls_wrong():
    declared_by_the_guard = policy("queues")["spec"]
    conditions = [condition["expression"] for condition in declared_by_the_guard["matchConditions"]]
    found = [set(re.findall(r"k\.matches\('([^']+)'\)", condition)) for condition in conditions]
    ((pattern,),) = {frozenset(entry) for entry in found}
    names = [*MEANT, "node-pool", "topology"]
    written = [f"{prefix}/{name}" for prefix in (*PREFIXES, "my.org") for name in names]
    bare = [name.replace("-", "_") for name in names]
    shares = [f"nvidia.com/{name}" for name in ("gpu-fraction", "gpu-memory", "gpu.memory", "gpu")]
    others = [f"{NO_DOMAIN}/{name}" for name in MEANT]
    for key in (*written, *bare, *names, *shares, *others, "app", f"x{QUEUE_LABEL}"):
        right = right_key(key)
        wrong = right is not None and right != key and right in MEANT.values()
        assert bool(re.search(pattern, key)) == (wrong or key == QUEUE_LABEL), key
        if wrong:  # the message looks up what stands behind the prefix, `_` being a dash
            assert MEANT[key.replace("_", "-").rpartition("/")[2]] == right
    table = next(
        variable for variable in declared_by_the_guard["variables"] if variable["name"] == "meant"
    )
    pairs = dict(re.findall(r"'([^']+)': 'the (?:label|annotation) ([^']+)'", table["expression"]))
    assert pairs == MEANT


@pytest.mark.parametrize(
    ("spec", "passes"),
    [
        ({"preemptMinRuntime": "4h", "priority": 7}, True),
        ({"preemptMinRuntime": "7 days"}, False),
        ({"priority": 2**63 - 1}, False),
        ({"resources": {"gpu": {"limit": -7}}}, False),
    ],
    ids=str,
)
def test_queue_guard_specs_inside_are_what_kai_can_read(spec, passes):
    found = declared(**VIRTUAL)
    created = found[(POLICY, "ml-guard-specs-policy")]
    assert created.provider == found[(POLICY, "ml-guard-policy")].provider
    assert bound(found, "ml-guard", "specs-binding")["validationActions"] == ["Deny"]
    body = {"metadata": {"name": "mine"}, "spec": spec}
    request = {"operation": "CREATE", "userInfo": account("default", "default")}
    assert (list(refusals_by(created.inputs["spec"], body, request)) == []) == passes
