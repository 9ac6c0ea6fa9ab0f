"""What the platform gives a vCluster's account and a team stack's, asked of the API server.

The other attacks are sent with the role of vCluster's own chart, which is wider.
"""

import pytest
from kubernetes.client.exceptions import ApiException

from tests.attacks.host import RBAC, said
from tests.attacks.http import Http
from tests.attacks.objects import config_map, container, pod
from tests.attacks.test_team_stacks import kinds, may  # noqa: F401 - a fixture
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
