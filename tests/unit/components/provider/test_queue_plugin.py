"""The provider of queue trees, started and asked over gRPC as by the engine."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from pulumi.runtime import rpc
from pulumi.runtime.proto import provider_pb2

from kai_fleet.provider.values import python_values, struct
from tests.unit.components.cluster.canned_api import kubeconfig, serving
from tests.unit.components.provider.plugin_process import partial, reported, secret, started

KIND = provider_pb2.PropertyDiff
ID = "lab/ml/ml-queues"
PATH = "/apis/scheduling.run.ai/v2/queues"
TREE = "kai-fleet/tree"
NOBODY = kubeconfig("http://127.0.0.1:1")


def spec(quota: float, parent: str | None = None, **more: object) -> dict[str, object]:
    gpu = {"quota": quota, "limit": -1, "overQuotaWeight": 1}
    return {"resources": {"gpu": gpu}, **({"parentQueue": parent} if parent else {}), **more}


def tree(**queues: object) -> dict[str, object]:
    return {"cluster": "lab/ml", "tree": "ml-queues", "queues": queues}


@pytest.fixture(scope="module")
def plugin():
    with started() as plugin:
        yield plugin


@pytest.fixture
def api():
    """An API server; `access` are the inputs that lead to it, and `live` sets its queues."""
    with serving() as (api, url):
        api.access = {"kubeconfig": kubeconfig(url)}
        api.live = lambda *queues: api.answers.update({PATH: (200, {"items": list(queues)})})
        api.live()
        yield api


def live(name, quota, tree="ml-queues", parent=None, **labels):
    """A queue as an API server has it."""
    return {
        "metadata": {"name": name, "resourceVersion": "7", "labels": {TREE: tree, **labels}},
        "spec": spec(quota, parent),
    }


def read_only(api):
    return {verb for verb, _ in api.asked} == {"GET"}


def test_a_change_is_shown_at_its_place(plugin):
    old = tree(top=spec(4), train=spec(2, "top"), gone=spec(1, "top"))
    new = tree(top=spec(4), train=spec(3, "top", priority=7), **{"a.b": spec(1, "top")})
    changes, replaces = plugin.diff(old, new)
    assert changes == {
        'queues["train"]["resources"]["gpu"]["quota"]': KIND.UPDATE,
        'queues["train"]["priority"]': KIND.ADD,
        'queues["gone"]': KIND.DELETE,
        'queues["a.b"]': KIND.ADD,
    }
    assert not replaces


def test_rotated_credentials_change_nothing_and_another_cluster_makes_it_anew(plugin):
    old = tree(top=spec(4))
    assert plugin.diff(old, old | {"kubeconfig": "another", "context": "other"}) == ({}, [])
    other = plugin.diff(old, old | {"cluster": "lab/x"})
    assert other == ({"cluster": KIND.UPDATE_REPLACE}, ["cluster"])


def test_a_first_preview_asks_nobody_and_keeps_the_kubeconfig_out_of_the_state(plugin):
    given = tree(top=spec(4)) | {"kubeconfig": rpc.UNKNOWN}
    assert plugin.create(given, preview=True) == ("", tree(top=spec(4)))


@pytest.mark.parametrize("content", ["nonsense: [", "{}"])
def test_a_kubeconfig_that_is_none_is_one_sentence(plugin, content):
    text = reported(plugin.fails(plugin.create, tree(top=spec(4)) | {"kubeconfig": content}))
    assert text.startswith("the kubeconfig cannot be used: ")
    assert "Traceback" not in text and "File" not in text and "\n" not in text


def test_a_tree_is_made_parents_first_and_another_time_not_touched(plugin, api):
    given = tree(top=spec(4), train=spec(2, "top")) | api.access
    assert plugin.create(given) == (ID, tree(top=spec(4), train=spec(2, "top")))
    assert [body["metadata"]["name"] for body in api.bodies] == ["top", "train"]
    assert api.bodies[0]["metadata"]["labels"] == {TREE: "ml-queues"}
    api.bodies.clear()
    api.live(live("top", 4), live("train", 2, parent="top"))
    plugin.update(ID, given, given)
    assert api.bodies == []


def test_what_was_made_in_part_is_kept_with_the_words_of_the_refusal(plugin, api):
    access = {"kubeconfig": secret(api.access["kubeconfig"])}
    given = tree(top=spec(4), wrong=spec(9, "top"))
    refusal = {"message": "quota of wrong is above its parent's"}
    api.live(live("top", 4))
    api.answers[f"{PATH}#wrong"] = (422, refusal)
    error = plugin.fails(plugin.create, given | access)
    assert reported(error) == "queue wrong: quota of wrong is above its parent's"
    kept = partial(error)
    assert (kept.id, python_values(kept.properties)) == (ID, tree()), (
        "the label finds what was made"
    )
    assert kept.inputs == struct(given | access), "its kubeconfig stays secret"
    assert list(kept.reasons) == [reported(error)]


def test_one_that_differs_gets_its_whole_spec_whatever_kai_writes_meanwhile(plugin, api):
    given = tree(top=spec(4)) | api.access
    api.live(live("top", 2, mine="yes"))
    plugin.update(ID, tree(top=spec(2)), given)
    (changes,) = api.bodies
    assert {change["path"]: change["value"] for change in changes} == {
        "/spec": spec(4),
        "/metadata/labels": {"mine": "yes", TREE: "ml-queues"},
    }
    api.answers[f"{PATH}/top#patch"] = (422, {"message": "quota is above its parent's"})
    error = plugin.fails(plugin.update, ID, tree(top=spec(2)), given)
    assert reported(error) == "queue top: quota is above its parent's"


def test_a_refresh_sees_what_is_there(plugin, api):
    given = tree(top=spec(4), train=spec(2, "top"))
    api.live(live("top", 5), live("other", 1, tree="other-queues"))
    identity, state, news = plugin.read(ID, given, given | api.access)
    assert identity == ID
    assert state == tree(top=spec(5))
    assert news == state | api.access


def of_a_chart(name, quota, parent=None):
    """A default queue that a KAI's chart made, and keeps when it is uninstalled."""
    notes = {"helm.sh/resource-policy": "keep"}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec(quota, parent)}


def test_default_queues_of_a_kai_that_fit_are_used_and_stay(plugin, api):
    parent = "default-parent-queue"
    api.live(of_a_chart(parent, -1), of_a_chart("default-queue", -1, parent))
    declared = tree(**{parent: spec(-1), "default-queue": spec(-1, parent)})
    given = declared | api.access
    plugin.create(given)
    plugin.update(ID, declared, given)
    assert plugin.read(ID, declared, given)[1] == declared
    plugin.delete(ID, declared, given)
    assert read_only(api)


def test_queues_of_others_are_all_named_and_the_rest_is_made(plugin, api):
    # KAI Resource Management takes a queue of a Project's name, ours too, and writes it anew.
    taken = live("train", 1)
    taken["metadata"]["ownerReferences"] = [{"kind": "Project", "name": "research"}]
    unlabelled = {"metadata": {"name": "mine"}, "spec": spec(1)}
    api.live(of_a_chart("default-queue", -1), live("left", 1, tree="b-queues"), taken, unlabelled)
    queues = {name: spec(4) for name in ("default-queue", "left", "mine", "train", "new")}
    queues |= {"leaf": spec(1, "below"), "below": spec(1, "mine")}
    lines = reported(plugin.fails(plugin.create, tree(**queues) | api.access)).splitlines()
    assert [body["metadata"]["name"] for body in api.bodies] == ["new"]
    assert {verb for verb, _ in api.asked} == {"GET", "POST"}
    default, left, mine, train, below, leaf = lines
    assert default.endswith("label queue default-queue --overwrite kai-fleet/tree=ml-queues")
    assert "belongs to the tree b-queues" in left
    assert "was made by somebody else" in mine
    assert mine.endswith("kubectl label queue mine --overwrite kai-fleet/tree=ml-queues")
    assert train.endswith(
        "belongs to Project research, which writes it anew. Give yours another name"
    )
    assert below == f"queue below is left as it is, for it is below this: {mine}"
    assert leaf.endswith(mine)


def shared(*tenants, **queues):
    return tree(**queues) | {"shared": True, "tenants": list(tenants)}


def test_a_tree_of_several_teams_is_made_without_a_queue_of_others(plugin, api):
    squatted = live("lab-eu", 1, tree="lab-queues", parent="lab")
    api.live(squatted)
    given = shared("lab", top=spec(4), **{"lab-eu": spec(2, "top"), "nlp": spec(2, "top")})
    _, state = plugin.create(given | api.access)
    assert [body["metadata"]["name"] for body in api.bodies] == ["top", "nlp"]
    assert state == shared("lab", top=spec(4), nlp=spec(2, "top")) | {"refused": state["refused"]}
    (refusal,) = state["refused"].values()
    assert refusal.startswith("queue lab-eu is in the cluster already and belongs to the tree lab-")
    # The next update tries it again, and a preview until then expects no other outcome.
    assert plugin.diff(state, given)[0] == {'queues["lab-eu"]': KIND.ADD}
    assert plugin.update(ID, state, given, preview=True)["refused"] == state["refused"]
    api.live(live("top", 4), live("nlp", 2, parent="top"))
    state = plugin.update(ID, state, given | api.access)
    assert api.bodies[-1]["metadata"]["name"] == "lab-eu"
    assert state == given | {"refused": {}}
    assert plugin.diff(state, given) == ({}, [])


def test_in_a_tree_of_several_teams_a_refusal_is_of_that_queue_alone(plugin, api):
    api.live(live("top", 4), live("old", 1, parent="top"))
    api.answers[f"{PATH}#wrong"] = (403, {"message": "denied by a policy"})
    api.answers[f"{PATH}/old"] = (403, {"message": "old has children"})
    given = shared(top=spec(4), wrong=spec(1, "top"), right=spec(1, "top"))
    before = shared(top=spec(4), old=spec(1, "top"))
    state = plugin.update(ID, before, given | api.access)
    assert state["refused"] == {
        "wrong": "queue wrong: denied by a policy",
        "old": "queue old: old has children",
    }
    assert state["queues"].keys() == {"top", "right", "old"}, "what is there to delete is known"


def test_what_fails_for_every_queue_fails_a_tree_of_several_teams(plugin, api):
    api.answers[f"{PATH}#top"] = (500, {"message": "etcdserver: no space"})
    error = plugin.fails(plugin.create, shared(top=spec(4)) | api.access)
    assert reported(error) == "queue top: etcdserver: no space"


def test_a_label_that_a_tenant_may_write_takes_no_queue_into_the_tree(plugin, api):
    theirs, gone = live("lab-x", 1, parent="top"), live("lab-eu", 1, parent="top")
    api.live(live("top", 4), theirs, gone, live("labs", 1))
    given, known = shared("lab", top=spec(4)), shared("lab", top=spec(4), **{"lab-eu": spec(1)})
    for name in ("lab-eu", "labs"):
        api.answers[f"{PATH}/{name}"] = (200, {})
    plugin.update(ID, known, given | api.access)
    deleted = {path.rpartition("/")[2] for verb, path in api.asked if verb == "DELETE"}
    assert deleted == {"lab-eu", "labs"}, "what the state has, and what a killed run left"
    assert plugin.read(ID, given, given | api.access)[1]["queues"].keys() == {"top", "labs"}
    api.live(theirs)
    api.asked.clear()
    plugin.delete(ID, given, given | api.access)
    assert read_only(api)


def test_a_ring_of_queues_that_others_made_is_deleted_too(plugin, api):
    api.live(live("a", 1, parent="b"), live("b", 1, parent="a"))
    for name in ("a", "b"):
        api.answers[f"{PATH}/{name}"] = (200, {})
    plugin.update(ID, tree(), tree() | api.access)
    assert {path for verb, path in api.asked if verb == "DELETE"} == {f"{PATH}/a", f"{PATH}/b"}


def test_a_check_fails_with_the_refusal_that_it_is_given(plugin, monkeypatch):
    urn = "urn:pulumi:stack::project::kai-fleet:index:Team$kai-fleet:index:QueueCheck::lab-queue"
    monkeypatch.setattr(plugin, "urn", urn)
    well, ill = ({"queues": ["lab-eu"], "refusal": text} for text in ("", "queue lab-eu is …"))
    assert plugin.create(well) == ("lab-queue", well)
    assert plugin.create(ill, preview=True) == ("", ill)
    assert plugin.diff(well, ill)[0] == {"refusal": KIND.UPDATE}
    for call in ((plugin.create, ill), (plugin.update, "lab-queue", well, ill)):
        assert reported(plugin.fails(*call)) == "queue lab-eu is …"
    assert plugin.read("lab-queue", well, well) == ("lab-queue", well, well)
    plugin.delete("lab-queue", well, well)


@pytest.mark.parametrize("answer", [(200, {"items": []}), (404, {})])
def test_a_tree_that_is_not_there_is_told_as_absent(plugin, api, answer):
    api.answers[PATH] = answer
    assert plugin.read(ID, tree(top=spec(4)), tree() | api.access) == ("", {}, {})


def test_a_refresh_of_a_cluster_that_is_gone_is_a_sentence_and_soon(plugin):
    begun = time.monotonic()
    error = plugin.fails(plugin.read, ID, tree(top=spec(4)), tree() | {"kubeconfig": NOBODY})
    assert time.monotonic() - begun < 6
    assert reported(error).startswith(
        "cluster lab/ml at http://127.0.0.1:1: the API does not answer: "
    )
    assert reported(error).endswith(
        "See that kubectl reaches it, then run the same command again. If that cluster is gone for"
        " good: PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh"
    )


def test_what_was_in_a_cluster_that_is_gone_for_good_leaves_the_state():
    inputs = tree(top=spec(4)) | {"kubeconfig": NOBODY}
    with started(PULUMI_K8S_DELETE_UNREACHABLE="true") as plugin:
        assert plugin.read(ID, tree(top=spec(4)), inputs) == ("", {}, {})


def test_a_removal_reaches_the_cluster_by_the_inputs_children_first(plugin, api):
    there = [live("top", 4), live("train", 2, parent="top")]

    def left(_):
        gone = {path.rpartition("/")[2] for verb, path in api.asked if verb == "DELETE"}
        return {"items": [item for item in there if item["metadata"]["name"] not in gone]}

    api.answers |= {PATH: (200, left)}
    api.answers |= {f"{PATH}/{name}": (200, {}) for name in ("top", "train")}
    state = tree(top=spec(4), train=spec(2, "top"))
    plugin.delete(ID, state, state | api.access)
    deleted = [path for verb, path in api.asked if verb == "DELETE"]
    assert deleted == [f"{PATH}/train", f"{PATH}/top"]


def test_the_engine_ends_it_at_once_and_without_a_word(api):
    api.delay = 20.0
    with started() as plugin, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(plugin.fails, plugin.create, tree(top=spec(4)) | api.access)
        while not api.asked:
            time.sleep(0.05)
        plugin.process.send_signal(signal.SIGINT)
        assert plugin.process.wait(timeout=3) != 0
        waiting.result()
        assert plugin.process.stderr.read() == ""
