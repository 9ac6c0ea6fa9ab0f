"""What a vCluster's account, or whoever has its rights, is denied on the host; and what passes."""

import re
import time
from contextlib import suppress

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet.guards.policies import kinds, policy
from tests.attacks.attempts import ATTEMPTS, EVERY_MODE
from tests.attacks.attempts.templates import LEVELS, probing
from tests.attacks.host import RBAC, said, says
from tests.attacks.http import Http
from tests.attacks.legitimate import ALLOWED
from tests.attacks.objects import claim, control_plane, of_queue, pod, stateful_set
from tests.attacks.sending import sent, tried
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

DENIED = [(a, who, team) for a in ATTEMPTS for who in a.who for team in a.teams]


def is_second_proof(attempt, who, team):
    """Whether somebody to whom a vCluster's rights are passed on tries it in a second team."""
    return "delegate" in who and "ml" in attempt.teams and team != "ml"


PASSES = [(a.name, team, body) for a in ALLOWED for team, body in a.objects()]


@pytest.mark.parametrize(
    ("attempt", "who", "team"),
    [
        pytest.param(
            *case,
            id=f"{case[1].format(case[2])}: {case[0].name}",
            marks=pytest.mark.slow if is_second_proof(*case) else (),
        )
        for case in DENIED
    ],
)
def test_an_attack_is_denied_with_its_remedy(host, attempt, who, team):
    with pytest.raises(ApiException) as refused:
        tried(host, who.format(team), team, attempt)
    assert says(refused.value, attempt.says), refused.value.body


@pytest.mark.parametrize(
    ("team", "body"),
    [case[1:] for case in PASSES],
    ids=[f"{team}: {name}" for name, team, _ in PASSES],
)
def test_what_is_legitimate_passes(host, team, body):
    sent(host, f"vcluster {team}", team, body)


def test_there_are_enough_of_both():
    assert len({a.name for a in ATTEMPTS}) == len(ATTEMPTS) >= 60
    assert len({a.name for a in ALLOWED}) == len(ALLOWED) >= 30
    assert {team for *_, team in DENIED} >= {"ml", "nlp", "dev"}


KINDS = [kind for kind in kinds(beside_kai=True) if kind != "queues"]
# What is said to nobody whom these attempts go by: RBAC keeps accounts of a team from these.
ELSEWHERE = (
    "is given a node past its scheduler",
    "drop the toleration of its taint",  # tests/attacks/test_nodes.py
    "has a status that no controller wrote",
    "claims a device class",
    "has a probe or hook with the host",  # Pod Security is asked first; below
    "leaves its queue to its owner",  # tests/unit/test_host_guard.py, without the guard of queues
    "is given devices by its status",
    "leave it to whoever operates",  # below
    "has no bounds of a team",  # tests/engine/test_guard_policies.py
)


def test_every_sentence_of_the_policies_is_said_to_some_attack(host):
    """So that none of their conditions can be dropped, or never be false, without a test that
    fails. That a pod names another's queue the guard of queues says, too.
    """
    heard = set()
    for attempt in ATTEMPTS:
        who, team = attempt.who[0], attempt.teams[0]
        try:
            tried(host, who.format(team), team, attempt)
        except ApiException as why:
            heard.add(said(why))
    for kind in KINDS:
        for rule in policy(kind)["spec"]["validations"]:
            words = _longest(rule["messageExpression"])
            if not any(each in rule["messageExpression"] for each in ELSEWHERE):
                assert any(words in each for each in heard), words


def _longest(expression):
    """The longest piece of text of a message."""
    return max(re.findall(r"'([^']*)'", expression), key=len)


@pytest.mark.parametrize("team", ["ml", "nlp", "dev"])
@pytest.mark.parametrize("who", ["vcluster {}", "vcluster {} delegate"])
@pytest.mark.parametrize("verb", ["GET", "POST"])
@pytest.mark.parametrize("how", ["exec", "attach", "portforward"])
def test_nobody_of_the_team_gets_into_its_control_plane(host, team, who, how, verb):
    pods = f"/api/v1/namespaces/team-{team}/pods"
    own = Http(host.accounts[who.format(team)])
    for name in (f"{team}-0", f"{team}-etcd-1", f"{team}-5b8d7f9c6d-x7k2p"):
        with pytest.raises(ApiException) as refused:
            own.ask(verb, f"{pods}/{name}/{how}", command="sh", stdout="true")
        assert refused.value.status == 403
        assert "leave it to whoever operates the host" in said(refused.value)
    with pytest.raises(ApiException) as absent:  # what is synced: that it is not there is said
        own.ask(verb, f"{pods}/web-x-default-x-{team}/{how}", command="sh", stdout="true")
    assert absent.value.status == 404


@pytest.mark.parametrize("team", ["nlp", "sim"])
def test_a_control_plane_is_placed_on_the_platforms_tainted_nodes(host, team):
    """Other pods of the teams without nodes of their own are not, whatever they tolerate."""
    admin, space = Http(host.admin), f"team-{team}"
    taint = {"key": "kai-fleet/pool", "value": "platform", "effect": "NoSchedule"}
    node = {
        "metadata": {"name": f"of-platform-{team}", "labels": {"kai-fleet/pool": "platform"}},
        "spec": {"taints": [taint]},
    }
    template = control_plane(team)
    others = pod(team, name="other")
    admin.post("/api/v1/nodes", node)
    time.sleep(1)  # until the API server's policies see the node
    pods = f"/api/v1/namespaces/{space}/pods"
    try:
        for name, body in ((f"{team}-0", template), ("other", others)):
            body = {**body, "metadata": {**body["metadata"], "name": name}}
            admin.post(pods, {"apiVersion": "v1", "kind": "Pod", **body})

        def place(name):
            target = {"kind": "Node", "name": node["metadata"]["name"]}
            admin.post(f"{pods}/{name}/binding", {"metadata": {"name": name}, "target": target})

        place(f"{team}-0")
        with pytest.raises(ApiException) as refused:
            place("other")
        assert "is not one of the nodes" in said(refused.value)
    finally:
        for name in (f"{team}-0", "other"):
            with suppress(ApiException):
                admin.ask("DELETE", f"{pods}/{name}", gracePeriodSeconds="0")
        admin.ask("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/team-mig/resourceclaims"


def test_devices_of_a_claim_are_the_schedulers_to_give(host):
    """Where the platform has claims synced, a vCluster's account may write their status."""
    there = {"name": "claims", "namespace": "team-mig"}
    kinds = ["resourceclaims", "resourceclaims/status"]
    host.post(
        "Role",
        {
            "metadata": there,
            "rules": [{"apiGroups": ["resource.k8s.io"], "resources": kinds, "verbs": ["*"]}],
        },
    )
    account = {"kind": "ServiceAccount", "name": "vc-mig", "namespace": "team-mig"}
    role = {"apiGroup": RBAC, "kind": "Role", "name": "claims"}
    host.post("RoleBinding", {"metadata": there, "roleRef": role, "subjects": [account]})

    def claim(kind):
        asked = {"name": "one", "exactly": {"deviceClassName": kind}}
        return {"metadata": {"name": "mine"}, "spec": {"devices": {"requests": [asked]}}}

    own, admin = Http(host.accounts["vcluster mig"]), Http(host.admin)

    def denied():
        with pytest.raises(ApiException) as refused:
            own.post(_CLAIMS, claim("gpu.nvidia.com"))
        return "claims a device class that the team is not granted" in said(refused.value)

    until(denied, 30)  # its right is there a moment later
    own.post(_CLAIMS, claim("small"))
    given = {"request": "one", "driver": "gpu.nvidia.com", "pool": "ml-1", "device": "gpu-0"}
    patch = {"status": {"allocation": {"devices": {"results": [given]}}}}
    try:
        with pytest.raises(ApiException) as refused:
            own.ask("PATCH", f"{_CLAIMS}/mine/status", patch)
        assert says(refused.value, "past the scheduler; leave that to Kubernetes")
        admin.ask("PATCH", f"{_CLAIMS}/mine/status", patch, dryRun="All")
    finally:
        admin.ask("DELETE", f"{_CLAIMS}/mine")


@pytest.mark.parametrize("team", LEVELS)
def test_no_node_connects_elsewhere_where_pod_security_knows_nothing_of_it(host, team):
    """Of Kubernetes 1.30 to 1.33, whose level baseline has nothing about the host of a probe."""
    admin, space = Http(host.admin), f"/api/v1/namespaces/team-{team}"
    version = "pod-security.kubernetes.io/enforce-version"
    admin.ask("PATCH", space, {"metadata": {"labels": {version: "v1.33"}}})
    try:
        for name, body in probing(team):

            def refusal(body=body):
                with pytest.raises(ApiException) as refused:
                    sent(host, f"vcluster {team}", team, body)
                return "PodSecurity" not in said(refused.value) and refused.value

            why = until(refusal, 30)  # the label is seen a moment later
            assert says(why, "drop host, and let it connect to the pod"), (name, why.body)
    finally:
        admin.ask("PATCH", space, {"metadata": {"labels": {version: None}}})


# As Kubernetes' controllers, by those names: the sandbox's are administrators.
CONTROLLER = "system:serviceaccount:kube-system:{}-controller"


def as_controller(host, name):
    return Http(host.admin, {"Impersonate-User": CONTROLLER.format(name)})


@pytest.mark.parametrize("team", ["ml", "nlp", "dev", "tight", "quiet"])
@pytest.mark.parametrize("by", ["statefulset", "ephemeral-volume"])
def test_a_claim_that_a_controller_makes_of_a_template_is_judged_as_any(host, team, by):
    claims = f"/api/v1/namespaces/team-{team}/persistentvolumeclaims"
    own = as_controller(host, by)
    own.post(claims, claim(), dryRun="All")
    with pytest.raises(ApiException) as refused:
        own.post(claims, claim("system-1"), dryRun="All")
    assert says(refused.value, "drop the annotation volume.kubernetes.io/selected-node")


@pytest.mark.parametrize("key", ["runai-gpu-group", "kai.scheduler/background", "pod-group-name"])
def test_a_pod_that_a_controller_makes_has_nothing_that_kai_counts_by(host, key):
    pods, own = "/api/v1/namespaces/team-audio/pods", as_controller(host, "replicaset")
    own.post(pods, pod("audio"), dryRun="All")
    for more in ({"labels": {key: "x"}}, {"annotations": {key: "x"}}):
        with pytest.raises(ApiException) as refused:
            own.post(pods, pod("audio", **more), dryRun="All")
        assert says(refused.value, "leave the others to KAI")


OF_THE_RELEASE = ("change it by the values", "leave it to whoever installs")


@pytest.mark.parametrize("team", ["vision", "audio"])
@pytest.mark.parametrize("who", ["stack {}", "stack {} delegate"])
def test_a_team_stacks_account_is_held_to_the_same(host, who, team):
    """It may write pods itself, and goes through no vCluster."""
    attacks = [a for a in ATTEMPTS if {"ml", "nlp", "dev"} <= set(a.teams)]
    assert len(attacks) > 30
    for attack in attacks:
        if who == "stack {}" and attack.says.startswith(OF_THE_RELEASE):
            continue  # it is the one that installs the vCluster
        with pytest.raises(ApiException) as refused:
            tried(host, who.format(team), team, attack)
        assert says(refused.value, attack.says), (attack.name, refused.value.body)


@pytest.mark.parametrize(
    ("team", "queue", "warned"),
    [("audio", "ml", True), ("audio", "audio-train", False), ("nlp", "audio", True)],
)
def test_where_kai_is_on_the_host_a_deployment_there_is_taken_with_a_warning(
    host, team, queue, warned
):
    app = {"app": "w"}
    template = pod(team, **of_queue(queue))
    template["metadata"] = {"labels": {**template["metadata"]["labels"], **app}}
    body = {
        "metadata": {"name": "w"},
        "spec": {
            "selector": {"matchLabels": app},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }

    def warning():
        apps = client.AppsV1Api(host.admin)
        made = apps.create_namespaced_deployment_with_http_info(f"team-{team}", body, dry_run="All")
        return str(made[2].get("Warning") or "")

    if warned:
        said = until(warning, 30)
        assert f"each pod of Deployment w in namespace team-{team} will be denied" in said
        assert f"write the label kai.scheduler/queue: {team}" in said
    else:
        assert warning() == ""


CERTIFICATES = "vcluster.loft.sh/cert-rotation-at"


@pytest.mark.parametrize("team", EVERY_MODE)
def test_a_vcluster_restarts_itself_as_it_does_when_its_certificates_end(host, team):
    space, admin = f"/apis/apps/v1/namespaces/team-{team}/statefulsets", Http(host.admin)
    admin.post(space, stateful_set(team, control_plane(team)))
    patch = {"spec": {"template": {"metadata": {"annotations": {CERTIFICATES: "now"}}}}}
    try:
        Http(host.accounts[f"vcluster {team}"]).ask("PATCH", f"{space}/{team}", patch, dryRun="All")
    finally:
        admin.ask("DELETE", f"{space}/{team}")


@pytest.mark.parametrize("team", ["ml", "nlp", "dev", "tight", "mig"])
def test_the_control_plane_that_kubernetes_makes_of_its_stateful_set_passes(host, team):
    """As the chart declares it, on the platform's nodes; nobody but a controller makes its pods."""
    template = control_plane(team)
    labels = template["metadata"]["labels"]
    body = {
        "metadata": {"name": team, "labels": labels},
        "spec": {
            "serviceName": team,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }
    space, admin = f"team-{team}", Http(host.admin)
    admin.post(f"/apis/apps/v1/namespaces/{space}/statefulsets", body)
    try:
        pods = f"/api/v1/namespaces/{space}/pods"
        assert until(lambda: [it["metadata"]["name"] for it in admin.items(pods)], 30)
    finally:
        admin.ask("DELETE", f"/apis/apps/v1/namespaces/{space}/statefulsets/{team}")
