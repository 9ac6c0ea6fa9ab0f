"""What the platform gives a vCluster's account and a team stack's, as the API server has it.

The other attacks are sent with the role of vCluster's own chart, which is wider.
"""

from pathlib import Path

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.attacks.attempts import FOLDER
from tests.attacks.host import RBAC, TEAMS, reported
from tests.attacks.http import Http
from tests.attacks.objects import container, pod
from tests.engine.sandbox_commands import until
from tests.stack_files import queue_object

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

VCLUSTERS = ("ml", "nlp", "dev", "tight", "vision", "audio")


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
OF_VCLUSTER |= {f"pods/{item}" for item in ("exec", "attach", "portforward", "status")}
OF_VCLUSTER |= {"pods/ephemeralcontainers", "pods/resize"}
# Of any version, as its platform does not know which one it is.
OF_ITS_STACKS_VCLUSTER = OF_VCLUSTER | {"leases", "ingresses", "serviceaccounts"}
OF_ITS_STACKS_VCLUSTER |= {"poddisruptionbudgets"}
OF_STACK = {
    "configmaps",
    "secrets",
    "services",
    "serviceaccounts",
    "statefulsets",
    "deployments",
}
OF_STACK |= {"poddisruptionbudgets", "ingresses"}
# It deletes what it leaves, and what charts of releases before made.
DELETED_BY_STACK = {"pods", "persistentvolumeclaims", "roles", "rolebindings"}


def rights_of(api, space):
    """(resource, verb) of all that an account may do there with objects of any name."""
    status = rules_of(api, space)
    assert not status.incomplete
    return {
        (resource, verb)
        for rule in status.resource_rules
        if not rule.resource_names
        for resource in rule.resources
        for verb in rule.verbs
    }


def written(api, space):
    """What an account may write there."""
    found = {(what, verb) for what, verb in rights_of(api, space) if verb not in READS}
    assert not {"*", "escalate", "bind", "impersonate"} & {verb for _, verb in found}
    return {(what, verb) for what, verb in found if not what.startswith("selfsubject")}


@pytest.mark.parametrize("team", VCLUSTERS)
def test_a_vcluster_writes_what_its_source_needs(own, team):
    found = written(own[f"vcluster {team}"], f"team-{team}")
    allowed = OF_ITS_STACKS_VCLUSTER if team in STACKS else OF_VCLUSTER
    assert {resource for resource, _ in found} == allowed
    assert {verb for resource, verb in found if resource == "pods/status"} == {"update"}
    assert {verb for resource, verb in found if resource == "pods/resize"} == {"patch"}


def test_a_team_stack_writes_what_the_chart_makes(own):
    """It gives nobody a right, and takes back what charts of releases before gave."""
    found = written(own["stack vision"], "team-vision")
    created = {resource for resource, verb in found if verb == "create"}
    assert created == OF_STACK
    assert {resource for resource, _ in found} - created == DELETED_BY_STACK
    others = {(what, verb) for what, verb in found if what in DELETED_BY_STACK and verb != "delete"}
    assert others == {("persistentvolumeclaims", "patch")}, "its volumes grow by it"


@pytest.mark.parametrize("team", VCLUSTERS)
def test_it_restarts_what_runs_it_and_nothing_else_of_that_kind(own, team):
    api, space = own[f"vcluster {team}"], f"team-{team}"
    assert may(api, "patch", "apps", "statefulsets", space, team)
    assert not may(api, "patch", "apps", "statefulsets", space, "another")
    for verb, sub in (("update", "/scale"), ("patch", "/scale"), ("update", "/status")):
        assert not may(api, verb, "apps", f"statefulsets{sub}", space, team)
    for verb in ("create", "update"):
        assert not may(api, verb, "apps", "statefulsets", space, team)


def event():
    about = {"kind": "StatefulSet", "name": "ml", "namespace": "team-ml"}
    return {"metadata": {"name": "said.1"}, "involvedObject": about, "reason": "Said"}


def test_what_a_vcluster_does_all_day_works(own, host):
    """As its syncers do it: a pod, its status, a claim, a Service, what kubectl is sent on for."""
    api, space = Http(own["vcluster ml"]), "/api/v1/namespaces/team-ml"
    body = pod("ml", container())
    api.post(f"{space}/pods", body, dryRun="All")
    api.post(f"{space}/configmaps", {"metadata": {"name": "c"}}, dryRun="All")
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
        assert 'cannot patch resource "pods/status"' in reported(refused.value)
    finally:
        Http(host.admin).ask(
            "DELETE", f"{space}/pods/{body['metadata']['name']}", gracePeriodSeconds="0"
        )
    for verb, kind in (("create", "pods/exec"), ("get", "pods/log"), ("create", "events")):
        assert may(own["vcluster ml"], verb, "", kind, "team-ml")


# What accounts of teams may do outside of their namespace, and why. Everything else is refused.
# kind: verbs, reason
OF_EVERYBODY = {
    f"selfsubject{item}reviews": ({"create"}, "answers about who asks")
    for item in ("", "access", "rules")
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
SENDERS = [("ml", "vc-ml"), ("nlp", "vc-nlp"), ("vision", "stack"), ("audio", "delegate")]


@pytest.mark.parametrize("who", SENDERS, ids="-".join)
def test_every_request_about_another_namespace_is_refused(everyone, kinds, who):
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


WHOLE = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
PATHS = {
    "own": "/api/v1/namespaces/team-vision",
    "rbac": f"/apis/{RBAC}/v1",
    "admission": "/apis/admissionregistration.k8s.io/v1",
}
TRICKS = yaml.safe_load((FOLDER / "tricks.yaml").read_text())


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick_is_denied(host, trick):
    method, path, *bodies = TRICKS[trick]
    body = bodies[0] if bodies else None
    if body and body.get("rules") == "all":
        body = {**body, "rules": WHOLE}
    first, slash, more = path.partition("/")
    path = f"{PATHS[first]}{slash}{more}" if first else path
    query = {} if method == "GET" else {"dryRun": "All"}
    for account in ("stack vision", "stack vision delegate", "vcluster vision"):
        with pytest.raises(ApiException) as refused:
            Http(host.accounts[account]).ask(method, path, body, **query)
        assert refused.value.status == 403, reported(refused.value)


def test_nobody_is_impersonated(host):
    headers = ({"User": "admin"}, {"Group": "system:masters"}, {"Uid": "1"})
    for api in host.accounts.values():
        for header in headers:
            asked = {f"Impersonate-{key}": value for key, value in header.items()}
            with pytest.raises(ApiException) as refused:
                Http(api, {"Impersonate-User": "system:anonymous"} | asked).get(
                    "/api/v1/namespaces/kube-system/secrets"
                )
            assert refused.value.status == 403
            assert "impersonate" in reported(refused.value)


# What a team stack's account can do to the queues of a host with a KAI: they have no namespace.
CRD = Path(__file__).parents[1] / "facts" / "kai" / "queues.yaml"
QUEUES = "/apis/scheduling.run.ai/v2/queues"


@pytest.fixture(scope="module")
def tree(host):
    """The platform's queues, as objects."""
    admin = Http(host.admin)
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    admin.post(crds, yaml.safe_load(CRD.read_text()))

    def served():
        try:
            return admin.items(QUEUES) is not None
        except ApiException:
            return False

    assert until(served, 30)
    for name, parent in (("all", None), ("nlp", "all"), ("audio", "all"), ("audio-live", "all")):
        admin.post(QUEUES, queue(name, parent))
    yield
    admin.ask("DELETE", f"{crds}/queues.scheduling.run.ai")


def queue(name, parent):
    return queue_object(name, {}, parent)


def to(field, value):
    return [{"op": "add", "path": f"/spec/{field}", "value": value}]


BELOW_ITS_OWN = "may write only queues named audio or audio-"
# In a ring KAI's scheduler never gets to the top: it would stop for every team.
NO_RING = "only below queues with shorter names than its own"


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("method", "name", "body", "says"),
    [
        ("POST", "", queue("nlp-more", "audio"), BELOW_ITS_OWN),
        ("POST", "", queue("audio-x", "all"), BELOW_ITS_OWN),
        ("POST", "", queue("audio-x", "nlp"), BELOW_ITS_OWN),
        ("POST", "", queue("audio-x", None), BELOW_ITS_OWN),
        ("POST", "", queue("audio-live-x", "audio"), BELOW_ITS_OWN),
        ("POST", "", queue("audio-x", "audio-live"), BELOW_ITS_OWN),
        ("DELETE", "/audio", None, BELOW_ITS_OWN),
        ("DELETE", "/audio-live", None, BELOW_ITS_OWN),
        ("DELETE", "/nlp", None, BELOW_ITS_OWN),
        ("PATCH", "/audio", to("parentQueue", "audio-x"), BELOW_ITS_OWN),
        ("PATCH", "/audio", to("priority", 999), BELOW_ITS_OWN),
        ("PATCH", "/nlp", to("priority", 999), BELOW_ITS_OWN),
        ("POST", "", queue("audio-x", "audio-x"), NO_RING),
        ("POST", "", queue("audio-x", "audio-y"), NO_RING),
        ("PATCH", "/audio-a", to("parentQueue", "audio-a"), NO_RING),
        ("PATCH", "/audio-a", to("parentQueue", "audio-a-b"), NO_RING),
    ],
)
def test_a_team_stack_writes_no_queue_but_below_its_own(host, method, name, body, says):
    api = Http(host.accounts["stack audio"])
    api.post(QUEUES, queue("audio-a", "audio"))
    api.post(QUEUES, queue("audio-a-b", "audio-a"))
    try:
        with pytest.raises(ApiException) as refused:
            api.ask(method, f"{QUEUES}{name}", body, dryRun="All")
        assert refused.value.status in (403, 422)
        assert says in reported(refused.value)
    finally:
        api.ask("DELETE", f"{QUEUES}/audio-a-b")
        api.ask("DELETE", f"{QUEUES}/audio-a")


def own_queue(spec=None, **metadata):
    made = queue("audio-x", "audio")
    made["metadata"] |= metadata
    made["spec"] |= spec or {}
    return made


def resources(resource, key, amount):
    return {"resources": {resource: {key: amount}}}


OWNER = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "name": "all", "uid": "1"}
# What it may not say of its own queue, and what is said of it.
ODD_QUEUES = {
    "label of the platform's tree": (
        own_queue(labels={"kai-fleet/tree": "host-queues"}),
        "drop it",
    ),
    "label of a team": (own_queue(labels={"kai-fleet/team": "nlp"}), "drop it"),
    "any label": (own_queue(labels={"example.com/a": "b"}), "drop it"),
    "shard": (own_queue(labels={"kai.scheduler/node-pool": "gold"}), "drop the label"),
    "annotation": (own_queue(annotations={"helm.sh/resource-policy": "keep"}), "drop it"),
    "finalizer": (own_queue(finalizers=["example.com/never"]), "leave it out"),
    "owner": (own_queue(ownerReferences=[OWNER]), "leave it out"),
    "name by the server": (own_queue(generateName="audio-"), "leave it out"),
    "display name": (own_queue({"displayName": "nlp"}), "begin it with audio"),
    "display name of another": (own_queue({"displayName": "audio-live"}), "begin it with audio"),
    "long name": (queue("audio-" + "x" * 60, "audio"), "at most 63"),
    "days": (own_queue({"preemptMinRuntime": "7 days"}), "at most 999999h"),
    "overflow": (own_queue({"reclaimMinRuntime": "99999999999h"}), "at most 999999h"),
    "empty duration": (own_queue({"reclaimMinRuntime": ""}), "at most 999999h"),
    "priority": (own_queue({"priority": 2**63 - 1}), "write 0 to 2147483647"),
    "negative priority": (own_queue({"priority": -1}), "write 0 to 2147483647"),
    "quota": (own_queue(resources("gpu", "quota", 1e308)), "write 0 to 1000000, or -1"),
    "limit": (own_queue(resources("cpu", "limit", -7)), "write 0 to 100000000, or -1"),
    "weight": (own_queue(resources("memory", "overQuotaWeight", -1)), "write 0 to 1000000"),
}


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("what", ODD_QUEUES)
def test_a_team_stack_says_nothing_odd_of_its_own_queue(host, what):
    body, says = ODD_QUEUES[what]
    api = Http(host.accounts["stack audio"])
    with pytest.raises(ApiException) as refused:
        api.post(QUEUES, body, dryRun="All")
    assert refused.value.status in (403, 422)
    assert says in reported(refused.value)
    if body["metadata"]["name"] != "audio-x" or "generateName" in body["metadata"]:
        return
    api.post(QUEUES, own_queue())
    try:
        fields = {f"metadata/{key}": body["metadata"][key] for key in body["metadata"]}
        fields = {**fields, "spec": body["spec"]}
        changes = [{"op": "add", "path": f"/{key}", "value": fields[key]} for key in fields]
        with pytest.raises(ApiException) as refused:
            api.ask("PATCH", f"{QUEUES}/audio-x", changes, dryRun="All")
        assert says in reported(refused.value)
    finally:
        api.ask("DELETE", f"{QUEUES}/audio-x")


@pytest.mark.usefixtures("tree")
def test_a_team_stack_writes_its_queues_as_its_program_does(host):
    api = Http(host.accounts["stack audio"])
    share = {"quota": 0.5, "limit": -1, "overQuotaWeight": 1}
    spec = {"resources": dict.fromkeys(("cpu", "memory", "gpu"), share), "priority": 100}
    spec |= {"preemptMinRuntime": "1h30m", "displayName": "audio: night"}
    body = own_queue(spec, labels={"kai-fleet/tree": "audio-queues"})
    api.post(QUEUES, body, fieldManager="kai-fleet")
    try:
        changes = [{"op": "add", "path": "/spec", "value": {**body["spec"], "priority": 5}}]
        api.ask("PATCH", f"{QUEUES}/audio-x", changes, fieldManager="kai-fleet")
    finally:
        api.ask("DELETE", f"{QUEUES}/audio-x")


@pytest.mark.usefixtures("tree")
def test_a_queue_that_hangs_below_a_longer_name_already_may_change(host):
    api, admin = Http(host.accounts["stack audio"]), Http(host.admin)
    api.post(QUEUES, queue("audio-research", "audio"))
    admin.post(QUEUES, queue("audio-x", "audio-research"))  # as versions before this one let it
    try:
        api.ask("PATCH", f"{QUEUES}/audio-x", to("priority", 9), dryRun="All")
        api.ask("PATCH", f"{QUEUES}/audio-x", to("parentQueue", "audio"))
    finally:
        api.ask("DELETE", f"{QUEUES}/audio-x")
        api.ask("DELETE", f"{QUEUES}/audio-research")
