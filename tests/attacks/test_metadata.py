"""The table of docs/metadata.md: what each account of a team may write in metadata on the host."""

import copy

import pytest
from kubernetes.client.exceptions import ApiException

from tests.attacks.attempts import Attempt
from tests.attacks.host import says
from tests.attacks.sending import attempt_by, send
from tests.unit.components.isolation.metadata_page import rows

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

TEAMS = ("ml", "nlp", "dev", "tight", "quiet")  # virtual, host, default; baseline, restricted
OF_STACK = (
    "StatefulSet",
    "Deployment",
    "ServiceAccount",
)  # which no vCluster's account makes
ACCOUNTS = {
    **{f"vcluster {team}": team for team in TEAMS},
    "vcluster ml delegate": "ml",
    **{"stack vision": "vision", "stack audio": "audio", "stack audio delegate": "audio"},
}
KEY = {"acme.example/x": "1"}
STAYS = ["acme.example/x"]
LATER = "gets or loses an owner"
REFUSED = {
    "labels": "has the label acme.example/x",
    "annotations": "has the annotation acme.example/x",
    "ownerReferences": "has an owner that a vCluster does not write",
    "finalizers": "finalizer acme.example/x",
    "generateName": "has generateName",
}


def owner(kind, name):
    return [{"apiVersion": "v1", "kind": kind, "name": name, "uid": "1"}]


def probes(kind, cells, team):
    """What is written in metadata, and whether it passes when it is made, and later."""
    for field in ("labels", "annotations"):
        anything = cells[field] == "any"
        yield field, {field: KEY}, anything, anything
        yield field, {field: {"app.kubernetes.io/part-of": "a"}}, True, True
    service = owner("Service", team)
    tokens = cells["ownerReferences"] == "tokens"
    yield "ownerReferences", {"ownerReferences": service}, True, tokens
    yield "ownerReferences", {"ownerReferences": owner("Pod", "p")}, tokens, tokens
    yield "ownerReferences", {"ownerReferences": owner("ConfigMap", "c")}, False, False
    yield "finalizers", {"finalizers": STAYS}, False, False
    own = {"finalizers": ["vcluster.loft.sh/snapshot-controller"]}
    passes = cells["finalizers"] == "snapshots"
    yield "finalizers", own, passes, passes
    named = {"generateName": "x-", "name": None}
    yield "generateName", named, cells["generateName"] == "yes", None


def of_account(account, kind):
    """Whether it makes this kind: pods are the vCluster's, the release is the stack's."""
    if account.startswith("vcluster"):
        return kind not in OF_STACK
    made = ("Secret", "ConfigMap", "Service", "ServiceAccount")
    return kind in (made if "delegate" in account else (*made, *OF_STACK))


CASES = [(account, kind) for account in ACCOUNTS for kind in rows() if of_account(account, kind)]


@pytest.mark.parametrize(("account", "kind"), CASES, ids=lambda each: str(each))
def test_metadata_is_written_as_the_page_says(host, account, kind):
    team, of = ACCOUNTS[account], kind if kind != "Pod" else "pod"
    for field, metadata, made, later in probes(kind, rows()[kind], team):
        plain = {"of": of, **({"subsets": None} if kind == "Endpoints" else {})}
        written = {**plain, "metadata": copy.deepcopy(metadata)}
        body = Attempt("", (team,), written).body(team)
        try:
            send(host, account, team, body)
            assert made, (field, metadata)
        except ApiException as why:
            assert not made, (field, metadata, why.body)
            assert says(why, REFUSED[field]) or field == "finalizers", why.body
        if later is not None:
            change = {**plain, "later": {"metadata": metadata}}
            why = attempt_by(host, account, team, Attempt("", (team,), change))
            assert (why is None) is later, (field, metadata, why and why.body)
