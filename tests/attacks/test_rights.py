"""What the platform gives a vCluster's account and a team stack's, asked of the API server.

The other attacks are sent with the role of vCluster's own chart, which is wider.
"""

import pytest
from kubernetes.client.exceptions import ApiException

from tests.attacks.host import RBAC, TEAMS, said
from tests.attacks.http import Http
from tests.attacks.objects import config_map, container, pod
from tests.attacks.test_team_stacks import kinds, may, rules_of  # noqa: F401 - a fixture
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

VCLUSTERS = ("ml", "nlp", "dev", "tight", "vision", "audio")


@pytest.fixture(scope="module")
def own(host):
    """Accounts with the declared rights and no others: `vcluster NAME`, `stack NAME`."""
    for team in VCLUSTERS:
        _account(host, team, "only-ours", "Role", "kai-fleet-vcluster", f"own vcluster {team}")
    for team in ("vision", "audio"):
        role = "kai-fleet-team-stack"
        _account(host, team, "only-stack", "ClusterRole", role, f"own stack {team}")
    return {
        name.removeprefix("own "): api
        for name, api in host.accounts.items()
        if name.startswith("own ")
    }


def _account(host, team, name, kind, role, called):
    there = {"name": name, "namespace": f"team-{team}"}
    host.post("ServiceAccount", {"metadata": there})
    host.post(
        "RoleBinding",
        {
            "metadata": there,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", **there}],
        },
    )
    host._sign_in(name, f"team-{team}", called)


READS = {"get", "list", "watch"}
SYNCED = {"configmaps", "secrets", "services", "persistentvolumeclaims", "pods", "endpoints"}
OF_VCLUSTER = SYNCED | {"endpointslices", "events"}
OF_VCLUSTER |= {f"pods/{it}" for it in ("exec", "attach", "portforward", "status")}
OF_VCLUSTER |= {"pods/ephemeralcontainers", "pods/resize"}
# Of any version, as its platform does not know which one it is.
OF_ITS_STACKS_VCLUSTER = OF_VCLUSTER | {"leases", "ingresses", "serviceaccounts"}
OF_ITS_STACKS_VCLUSTER |= {"poddisruptionbudgets"}
OF_STACK = {"configmaps", "secrets", "services", "serviceaccounts", "statefulsets", "deployments"}
OF_STACK |= {"poddisruptionbudgets", "ingresses"}
# It deletes what it leaves, and what charts of releases before made.
DELETED_BY_STACK = {"pods", "persistentvolumeclaims", "roles", "rolebindings"}


def written(api, kinds, space):  # noqa: F811
    """(resource, verb) of all that an account may write there, as the API server has it."""
    found = set()
    for path, resource, namespaced, verbs in kinds:
        group = "" if path == "/api/v1" else path.split("/")[2]
        if not namespaced or resource == "localsubjectaccessreviews":
            continue
        for verb in {*verbs, "escalate", "bind", "impersonate"} - READS:
            if may(api, verb, group, resource, space):
                found.add((resource, verb))
    return found


@pytest.mark.parametrize("account", ["vcluster ml", "vcluster nlp", "vcluster vision"])
def test_a_vcluster_writes_what_its_source_needs(own, kinds, account):  # noqa: F811
    team = account.split()[1]
    found = written(own[account], kinds, f"team-{team}")
    allowed = OF_ITS_STACKS_VCLUSTER if team == "vision" else OF_VCLUSTER
    assert {resource for resource, _ in found} == allowed
    assert {verb for resource, verb in found if resource == "pods/status"} == {"update"}
    assert {verb for resource, verb in found if resource == "pods/resize"} == {"patch"}


def test_a_team_stack_writes_what_the_chart_makes(own, kinds):  # noqa: F811
    found = written(own["stack vision"], kinds, "team-vision")
    created = {resource for resource, verb in found if verb == "create"}
    assert created == OF_STACK
    assert {resource for resource, _ in found} - created == DELETED_BY_STACK
    assert {verb for resource, verb in found if resource in DELETED_BY_STACK} == {"delete"}


@pytest.mark.parametrize("team", VCLUSTERS)
@pytest.mark.parametrize(
    ("sub", "verb"),
    [("scale", "update"), ("scale", "patch"), ("status", "update"), ("", "create"), ("", "update")],
)
def test_it_does_not_scale_make_or_replace_what_runs_it(own, team, sub, verb):
    kind = f"statefulsets/{sub}" if sub else "statefulsets"
    assert not may(own[f"vcluster {team}"], verb, "apps", kind, f"team-{team}", team)


@pytest.mark.parametrize("team", ["ml", "nlp"])
def test_it_restarts_what_runs_it_and_nothing_else_of_that_kind(own, team):
    api, space = own[f"vcluster {team}"], f"team-{team}"
    assert may(api, "patch", "apps", "statefulsets", space, team)
    assert not may(api, "patch", "apps", "statefulsets", space, "another")
    assert not may(api, "patch", "apps", "statefulsets", space)


def event():
    about = {"kind": "StatefulSet", "name": "ml", "namespace": "team-ml"}
    return {"metadata": {"name": "said.1"}, "involvedObject": about, "reason": "Said"}


def test_what_a_vcluster_does_all_day_works(own, host):
    """As its syncers do it: a pod, its status, a claim, a Service, what kubectl is sent on for."""
    api, space = Http(own["vcluster ml"]), "/api/v1/namespaces/team-ml"
    body = pod("ml", container())
    api.post(f"{space}/pods", body, dryRun="All")
    api.post(f"{space}/configmaps", config_map(a="b"), dryRun="All")
    api.post(f"{space}/secrets", {"metadata": {"name": "vc-ml"}}, dryRun="All")
    api.post(f"{space}/events", event(), dryRun="All")
    Http(host.admin).post(f"{space}/pods", body)
    try:
        name = body["metadata"]["name"]

        def written():
            """Once more where a controller wrote to the pod in between: that is no verdict."""
            there = api.get(f"{space}/pods/{name}")
            there["status"].setdefault("conditions", []).append(
                {"type": "example.com/gate", "status": "True"}
            )
            try:
                api.ask("PUT", f"{space}/pods/{name}/status", there, dryRun="All")
            except ApiException as why:
                if why.status != 409:
                    raise
                return False
            return True

        until(written, 30)
        api.ask("DELETE", f"{space}/pods/{name}", dryRun="All")
        with pytest.raises(ApiException) as refused:
            api.ask("PATCH", f"{space}/pods/{name}/status", {"status": {}}, dryRun="All")
        assert refused.value.status == 403
        assert 'cannot patch resource "pods/status"' in said(refused.value)
    finally:
        Http(host.admin).ask(
            "DELETE", f"{space}/pods/{body['metadata']['name']}", gracePeriodSeconds="0"
        )
    for verb, kind in (("create", "pods/exec"), ("get", "pods/log"), ("create", "events")):
        assert may(own["vcluster ml"], verb, "", kind, "team-ml")


# What accounts of teams may do outside of their namespace, and why. Everything else is refused.
# kind: verbs, reason
OF_EVERYBODY = {
    f"selfsubject{it}reviews": ({"create"}, "answers about who asks")
    for it in ("", "access", "rules")
}
_CLASSES = ("runtimeclasses", "priorityclasses", "ingressclasses", "storageclasses", "csinodes")
_CLASSES += ("csidrivers", "gatewayclasses", "volumesnapshotclasses", "deviceclasses")
OF_VCLUSTERS = dict.fromkeys(_CLASSES, (READS, "no secret is in it; synced, or chosen by name"))
OF_SCHEDULERS = {
    "nodes": (READS, "a scheduler inside chooses among them"),
    "nodes/status": (READS, "the same"),
    "pods": ({"list", "watch"}, "it takes their sum from shared nodes, and waits for them"),
    "csistoragecapacities": (READS, "the room of drivers by node; in the drivers' namespaces"),
}
OF_STACKS = {
    "namespaces": ({"get"}, "its own, by name"),
    "nodes": (READS, "its preview counts those of its pool"),
}
OF_QUEUES = {
    "queues": ({"create", "update", "patch", "delete", *READS}, "a policy says which of them")
}
SCHEDULERS = ("ml", "tight", "vision")
STACKS = ("vision", "audio")


def excepted(team, name):
    """(kind, verb) of all that this account may do outside of its namespace."""
    found = dict(OF_EVERYBODY)
    if name == f"vc-{team}" and team != "open":
        found |= OF_VCLUSTERS | (OF_SCHEDULERS if team in SCHEDULERS else {})
    if name == "stack":
        found |= OF_STACKS | (OF_QUEUES if team == "audio" else {})
    return {(kind, verb) for kind, (verbs, _) in found.items() for verb in verbs}


@pytest.fixture(scope="module")
def everyone(host):
    """Every account by which somebody of a team asks the host: (its team, its name) and its API."""
    found = {(team, f"vc-{team}"): host.accounts[f"vcluster {team}"] for team in TEAMS}
    for team in TEAMS:
        # Pods of the team run as these; vCluster's chart makes the second.
        for name in ("default", f"vc-workload-{team}"):
            host.post("ServiceAccount", {"metadata": {"name": name, "namespace": f"team-{team}"}})
            host._sign_in(name, f"team-{team}", f"{name} of {team}")
            found[team, name] = host.accounts[f"{name} of {team}"]
    for team in STACKS:
        found[team, "stack"] = host.accounts[f"stack {team}"]
        found[team, "delegate"] = host.accounts[f"stack {team} delegate"]
    return found


def test_no_account_of_a_team_has_a_right_outside_that_has_no_reason(everyone):
    """All that the API server reports, for every account in every mode and at every level."""
    for (team, name), api in everyone.items():
        for space in ("team-mig", "team-tight", "kube-system", "kai-fleet-team-stacks", "default"):
            if space == f"team-{team}":
                continue
            status = rules_of(api, space)
            assert not status.incomplete
            rights = {
                (kind, verb)
                for rule in status.resource_rules
                for kind in rule.resources
                for verb in rule.verbs
            }
            assert rights == excepted(team, name), (team, name, space)


SENT = (
    *(("list", "GET", ""), ("get", "GET", "/x"), ("create", "POST", ""), ("update", "PUT", "/x")),
    *(("patch", "PATCH", "/x"), ("delete", "DELETE", "/x"), ("deletecollection", "DELETE", "")),
)
# One of each kind: more have the same roles.
SENDERS = [(team, f"vc-{team}") for team in ("ml", "tight", "nlp", "dev", "open", "vision")]
SENDERS += [(team, name) for team in STACKS for name in ("stack", "delegate")]
SENDERS += [("ml", "default"), ("ml", "vc-workload-ml")]


@pytest.mark.parametrize("who", SENDERS, ids="-".join)
def test_every_request_about_another_namespace_is_refused(everyone, kinds, who):  # noqa: F811
    """Sent, not asked about: each verb on each kind, and a list of all namespaces at once."""
    api, passed = Http(everyone[who]), set()
    for path, kind, namespaced, verbs in kinds:
        if "/" in kind:
            continue
        all_of_it = f"{path}/{kind}"
        place = f"{path}/namespaces/team-mig/{kind}" if namespaced else all_of_it
        for verb, method, name in SENT:
            for where in {place, all_of_it} if verb == "list" else {place}:
                if verb not in verbs:
                    continue
                body = None if method == "GET" else {}
                try:
                    api.ask(method, f"{where}{name}", body, dryRun="All")
                except ApiException as why:
                    if why.status == 403:
                        continue
                passed.add((kind, verb))
    assert passed <= excepted(*who)
