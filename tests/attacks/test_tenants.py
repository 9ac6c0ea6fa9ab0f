"""What a vCluster's account, or whoever has its rights, is denied on the host; and what passes."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet.isolation.policies import host_policies, policy
from kai_fleet.releases import KAI
from tests.attacks.attempts import ATTEMPTS, EVERY_MODE, LEVELS, Attempt, table
from tests.attacks.host import RBAC, TEAMS, reported, says
from tests.attacks.http import Http
from tests.attacks.objects import claim, of_queue, pod, probing, stateful_set
from tests.attacks.sending import account_of, attempt_by, send
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

ALLOWED = [
    *table("allowed"),
    *(
        Attempt(f"{what} of {version}", ("ml", "tight"), {"of": what, "version": version})
        for what in ("reservation", "component")
        for version in KAI
    ),
]


def accounts(attempt: Attempt, team: str) -> list[str]:
    """Who tries it: somebody to whom rights are passed on once, in the first of the teams."""
    first = team == attempt.teams[0]
    return [account_of(who, team) for who in attempt.who if first or "delegate" not in who]


@pytest.fixture(scope="module")
def answers(host):
    """What the API server says to every attempt, by its name and who tried; teams at once."""

    def of_team(team):
        return {
            (attempt.name, account): attempt_by(host, account, team, attempt)
            for attempt in ATTEMPTS
            if team in attempt.teams
            for account in accounts(attempt, team)
        }

    found: dict[tuple[str, str], ApiException | None] = {}
    with ThreadPoolExecutor(4) as pool:
        for each in pool.map(of_team, TEAMS):
            found |= each
    return found


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_an_attack_is_denied_with_its_remedy(answers, attempt):
    for team in attempt.teams:
        for account in accounts(attempt, team):
            refused = answers[attempt.name, account]
            assert refused is not None, f"{account} may"
            assert says(refused, attempt.says), (account, refused.body)


@pytest.mark.parametrize("allowed", ALLOWED, ids=lambda allowed: allowed.name)
def test_what_is_legitimate_passes(host, allowed):
    for team in allowed.teams:
        send(host, f"vcluster {team}", team, allowed.body(team))


KINDS = [kind for kind in host_policies(beside_kai=True)[0] if kind != "queues"]
# What is said to nobody whom these attempts go by: RBAC keeps accounts of a team from these.
ELSEWHERE = (
    "is given a node past its scheduler",
    "drop the toleration of its taint",  # tests/attacks/test_nodes.py
    "has a status that no controller wrote",
    "claims a device class",
    "has a probe or hook with the host",  # Pod Security is asked first; below
    "leaves its queue to its owner",  # test_host_guard.py, without the guard of queues
    "is given devices by its status",
    "leave it to whoever operates",  # below
    "would delete every pod of the team",  # tests/faults/test_lost_volume.py
    "is being restored to",  # tests/faults/test_restore.py
    "has no bounds of a team",  # tests/engine/test_guard_policies.py
)


def test_every_sentence_of_the_policies_is_said_to_some_attack(answers):
    """So that none of their conditions can be dropped, or never be false, without a test that
    fails. That a pod names another's queue the guard of queues says, too.
    """
    refusals = {reported(why) for why in answers.values() if why}
    for kind in KINDS:
        for rule in policy(kind)["spec"]["validations"]:
            message = rule["messageExpression"]
            words = max(re.findall(r"'([^']*)'", message), key=len)
            if not any(each in message for each in ELSEWHERE):
                assert any(words in each for each in refusals), words


@pytest.mark.parametrize("team", EVERY_MODE)
@pytest.mark.parametrize("how", ["exec", "attach", "portforward"])
def test_nobody_of_the_team_gets_into_its_control_plane(host, team, how):
    pods = f"/api/v1/namespaces/team-{team}/pods"
    names = (f"{team}-0", f"{team}-etcd-1", f"{team}-5b8d7f9c6d-x7k2p")
    for account in (f"vcluster {team}", f"vcluster {team} delegate"):
        own = Http(host.accounts[account])
        for verb in ("GET", "POST"):
            for name in names:
                with pytest.raises(ApiException) as refused:
                    own.ask(verb, f"{pods}/{name}/{how}", command="sh", stdout="true")
                assert refused.value.status == 403
                assert "leave it to whoever operates the host" in reported(refused.value)
            with pytest.raises(ApiException) as absent:  # of what is synced: that it is not there
                own.ask(verb, f"{pods}/web-x-default-x-{team}/{how}", command="sh", stdout="true")
            assert absent.value.status == 404


def test_a_team_whose_name_is_like_another_secrets_writes_its_own(host):
    """`vc-NAME` is the vCluster's to write, `vc-config-NAME` is not."""
    secrets, own = (
        "/api/v1/namespaces/team-config-x/secrets",
        Http(host.accounts["vcluster config-x"]),
    )
    own.post(secrets, {"metadata": {"name": "vc-config-x"}}, dryRun="All")
    with pytest.raises(ApiException) as refused:
        own.post(secrets, {"metadata": {"name": "vc-config-config-x"}}, dryRun="All")
    assert says(refused.value, "says what the control plane runs")


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
        return "claims a device class that the team is not granted" in reported(refused.value)

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


@pytest.mark.parametrize("team", ["ml", "tight"])
def test_no_node_connects_elsewhere_where_pod_security_knows_nothing_of_it(host, team):
    """Of Kubernetes 1.30 to 1.33, whose level baseline has nothing about the host of a probe."""
    admin, space = Http(host.admin), f"/api/v1/namespaces/team-{team}"
    version = "pod-security.kubernetes.io/enforce-version"
    admin.ask("PATCH", space, {"metadata": {"labels": {version: "v1.33"}}})
    try:
        for name, body in probing(team):

            def refusal(body=body):
                with pytest.raises(ApiException) as refused:
                    send(host, f"vcluster {team}", team, body)
                return "PodSecurity" not in reported(refused.value) and refused.value

            why = until(refusal, 30)  # the label is seen a moment later
            assert says(why, "drop host, and let it connect to the pod"), (name, why.body)
    finally:
        admin.ask("PATCH", space, {"metadata": {"labels": {version: None}}})


# The accounts of Kubernetes' controllers.
CONTROLLER = "system:serviceaccount:kube-system:{}-controller"


def as_controller(host, name):
    return Http(host.admin, {"Impersonate-User": CONTROLLER.format(name)})


@pytest.mark.parametrize("team", LEVELS)
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


@pytest.mark.parametrize("account", ["stack vision", "stack audio delegate"])
def test_a_team_stacks_account_is_held_to_the_same(host, account):
    """It may write pods itself, and goes through no vCluster."""
    attacks = [a for a in ATTEMPTS if set(EVERY_MODE) <= set(a.teams)]
    assert len(attacks) > 30
    for attack in attacks:
        if "delegate" not in account and attack.says.startswith(OF_THE_RELEASE):
            continue  # it is the one that installs the vCluster
        refused = attempt_by(host, account, account.split()[1], attack)
        assert refused is not None, attack.name
        assert says(refused, attack.says), (attack.name, refused.body)


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
        created = apps.create_namespaced_deployment_with_http_info(
            f"team-{team}", body, dry_run="All"
        )
        return str(created[2].get("Warning") or "")

    if warned:
        reported = until(warning, 30)
        assert f"each pod of Deployment w in namespace team-{team} will be denied" in reported
        assert f"write the label kai.scheduler/queue: {team}" in reported
    else:
        assert warning() == ""


CERTIFICATES = "vcluster.loft.sh/cert-rotation-at"


@pytest.mark.parametrize("team", EVERY_MODE)
def test_a_vcluster_restarts_itself_as_it_does_when_its_certificates_end(host, team):
    space, admin = f"/apis/apps/v1/namespaces/team-{team}/statefulsets", Http(host.admin)
    admin.post(space, stateful_set(team))
    patch = {"spec": {"template": {"metadata": {"annotations": {CERTIFICATES: "now"}}}}}
    try:
        Http(host.accounts[f"vcluster {team}"]).ask("PATCH", f"{space}/{team}", patch, dryRun="All")
    finally:
        admin.ask("DELETE", f"{space}/{team}")
