"""What a team stack's account can do: tried by every verb that it holds, and by known tricks."""

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.attacks.host import RBAC, said
from tests.attacks.http import Http
from tests.attacks.tricks import TRICKS

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

READS = {"get", "list", "watch"}
# Every account that a team's people may hold.
ACCOUNTS = [
    *(f"vcluster {team}{more}" for team in ("ml", "nlp", "dev") for more in ("", " delegate")),
    *(f"stack {team}{more}" for team in ("vision", "audio") for more in ("", " delegate")),
]


def team_of(account):
    return account.split()[1]


@pytest.fixture(scope="module")
def kinds(host):
    """Every kind and subresource that the API server serves: (path, name, whether namespaced)."""
    api = Http(host.admin)
    groups = ["/api/v1"]
    for group in api.get("/apis")["groups"]:
        groups.append(f"/apis/{group['preferredVersion']['groupVersion']}")
    found = []
    for path in groups:
        for kind in api.get(path)["resources"]:
            found.append((path, kind["name"], kind["namespaced"], tuple(kind.get("verbs", ()))))
    assert len(found) > 100
    return found


def may(api, verb, group, resource, namespace=None, name=None):
    """What the API server itself says of an account."""
    resource, _, sub = resource.partition("/")
    asked = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(
                verb=verb,
                group=group,
                resource=resource,
                subresource=sub or None,
                namespace=namespace,
                name=name,
            )
        )
    )
    review = client.AuthorizationV1Api(api).create_self_subject_access_review(asked)
    return bool(review.status.allowed)


def rules_of(api, namespace):
    asked = client.V1SelfSubjectRulesReview(
        spec=client.V1SelfSubjectRulesReviewSpec(namespace=namespace)
    )
    return client.AuthorizationV1Api(api).create_self_subject_rules_review(asked).status


@pytest.mark.parametrize("account", ACCOUNTS)
def test_no_account_has_a_right_by_which_it_gets_others(host, account):
    """Enumerated: each rule that the API server reports, in its own and in foreign namespaces."""
    own = f"team-{team_of(account)}"
    for namespace in (own, "team-tight", "kube-system", "kai-fleet-team-stacks", "default"):
        status = rules_of(host.accounts[account], namespace)
        assert not status.incomplete
        for rule in status.resource_rules:
            verbs, resources = set(rule.verbs), set(rule.resources or ())
            assert not {"*", "escalate", "bind", "impersonate"} & verbs, rule
            assert "*" not in resources, rule
            if namespace == own:
                continue
            reviews = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
            queues = resources == {"queues"} and account == "stack audio"
            assert verbs <= READS or resources <= reviews or queues, (namespace, rule)
            assert not {"secrets", "configmaps", "serviceaccounts", "nodes/proxy"} & resources


@pytest.mark.parametrize("account", ACCOUNTS)
def test_every_secret_of_another_namespace_is_out_of_reach(host, account):
    api = Http(host.accounts[account])
    own = f"team-{team_of(account)}"
    spaces = [it["metadata"]["name"] for it in Http(host.admin).items("/api/v1/namespaces")]
    assert len(spaces) > 8
    for space in spaces:
        path = f"/api/v1/namespaces/{space}/secrets"
        if space == own:
            api.items(path)
            continue
        for attempt in (
            lambda p=path: api.items(p),
            lambda p=path: api.get(f"{p}/any"),
            lambda p=path: api.get(p, watch="true", timeoutSeconds="1"),
            lambda p=path: api.post(p, {"metadata": {"name": "x"}}, dryRun="All"),
        ):
            with pytest.raises(ApiException) as refused:
                attempt()
            assert refused.value.status == 403
    with pytest.raises(ApiException):
        api.items("/api/v1/secrets")


@pytest.mark.parametrize(
    "account",
    [
        "vcluster ml",
        "stack vision",
        pytest.param("stack vision delegate", marks=pytest.mark.slow),
    ],
)
def test_every_verb_on_every_kind_is_what_its_place_allows(host, kinds, account):
    """Nothing is written outside of the namespace, whatever kind the API server knows."""
    api = host.accounts[account]
    allowed = []
    for path, resource, namespaced, verbs in kinds:
        group = "" if path == "/api/v1" else path.split("/")[2]
        space = "team-tight" if namespaced else None
        for verb in {*verbs, "escalate", "bind", "impersonate"} - READS:
            if may(api, verb, group, resource, space):
                allowed.append(f"{verb} {resource}")
    reviews = ("selfsubject", "subjectaccessreviews", "tokenreviews")
    assert [it for it in allowed if not it.split()[1].startswith(reviews)] == []


@pytest.mark.parametrize(
    "who",
    [
        "stack vision",
        pytest.param("stack vision delegate", marks=pytest.mark.slow),
        "vcluster vision",
    ],
)
@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_is_denied(host, who, trick):
    method, path, body = TRICKS[trick]
    with pytest.raises(ApiException) as refused:
        query = {} if method == "GET" else {"dryRun": "All"}
        Http(host.accounts[who]).ask(method, path, body, **query)
    assert refused.value.status == 403, said(refused.value)


# What an account may write in the namespace of its own team, by kind; nothing else.
_TENANT = {
    *("configmaps", "secrets", "services", "persistentvolumeclaims", "endpoints", "pods"),
    *("pods/attach", "pods/portforward", "pods/exec", "pods/status", "pods/ephemeralcontainers"),
    *("pods/resize", "endpointslices", "events", "statefulsets", "replicasets", "deployments"),
}
_STACK = {*_TENANT, "serviceaccounts", "poddisruptionbudgets", "leases", "ingresses"}
_STACK |= {"roles", "rolebindings"}


@pytest.mark.parametrize("account", ACCOUNTS)
def test_in_its_own_namespace_an_account_writes_what_a_vcluster_is_made_of(host, kinds, account):
    """No quota, network policy, limit range, binding, claim, token or status of others."""
    api, space = host.accounts[account], f"team-{team_of(account)}"
    written = set()
    for path, resource, namespaced, verbs in kinds:
        group = "" if path == "/api/v1" else path.split("/")[2]
        if namespaced and any(
            may(api, verb, group, resource, space)
            for verb in {*verbs, "escalate", "bind", "impersonate"} - READS
        ):
            written.add(resource)
    allowed = _STACK if account.startswith("stack") else _TENANT
    assert written - {"localsubjectaccessreviews"} <= allowed


@pytest.mark.parametrize("account", ACCOUNTS)
def test_nobody_is_impersonated(host, account):
    api = host.accounts[account]
    for header, value in (
        ("Impersonate-User", "admin"),
        ("Impersonate-Group", "system:masters"),
        ("Impersonate-Uid", "1"),
    ):
        headers = {"Impersonate-User": "system:anonymous", header: value}
        with pytest.raises(ApiException) as refused:
            Http(api, headers).get("/api/v1/namespaces/kube-system/secrets")
        assert refused.value.status == 403
        assert "impersonate" in said(refused.value)


def test_on_a_host_with_kai_a_team_stack_writes_its_own_queues_only(host):
    for account, allowed in (("stack audio", True), ("stack audio delegate", False)):
        api = host.accounts[account]
        assert may(api, "create", "scheduling.run.ai", "queues") is allowed
    assert not may(host.accounts["stack vision"], "create", "scheduling.run.ai", "queues")


def test_what_a_team_stack_needs_it_may(host):
    """Its release: everything that vCluster's chart makes in the namespace."""
    api = host.accounts["stack vision"]
    for group, resource in (
        ("apps", "statefulsets"),
        ("", "services"),
        ("", "secrets"),
        ("", "serviceaccounts"),
    ):
        for verb in ("create", "update", "delete"):
            assert may(api, verb, group, resource, "team-vision"), (verb, resource)


def test_a_team_stack_gives_nobody_a_right_and_takes_back_what_charts_of_before_gave(host):
    api = host.accounts["stack vision"]
    for resource in ("roles", "rolebindings"):
        for verb, allowed in (("create", False), ("update", False), ("delete", True)):
            assert may(api, verb, RBAC, resource, "team-vision") is allowed, (verb, resource)
