"""The provider of queue trees, started and asked over gRPC as by the engine."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml
from pulumi.runtime import rpc
from pulumi.runtime.proto import provider_pb2

from kai_fleet.provider.values import packed, plain, unpacked
from kai_fleet_cli.stack_file.reading import ROOT
from tests.unit.canned_api import kubeconfig, serving
from tests.unit.plugin_process import LAUNCHER, partial, said, started

KIND = provider_pb2.PropertyDiff
ID = "lab/ml/ml-queues"
PATH = "/apis/scheduling.run.ai/v2/queues"
TREE = "kai-fleet/tree"
NOBODY = kubeconfig("http://127.0.0.1:1")


def spec(quota: float, parent: str | None = None, **more: object) -> dict[str, object]:
    gpu = {"quota": quota, "limit": -1, "overQuotaWeight": 1}
    return {"resources": {"gpu": gpu}, **({"parentQueue": parent} if parent else {}), **more}


def tree(**queues: object) -> dict[str, object]:
    return {"cluster": "lab/ml", "tree": "ml-queues", "queues": packed(queues)}


@pytest.fixture(scope="module")
def plugin():
    with started() as plugin:
        yield plugin


def live(name, quota, tree="ml-queues", parent=None, **labels):
    """A queue as an API server has it."""
    return {
        "metadata": {"name": name, "resourceVersion": "7", "labels": {TREE: tree, **labels}},
        "spec": spec(quota, parent),
    }


def listed(*queues):
    return {PATH: (200, {"items": list(queues)})}


def test_a_change_is_shown_at_its_place(plugin):
    old = tree(top=spec(4), train=spec(2, "top"), gone=spec(1, "top"))
    new = tree(top=spec(4), train=spec(3, "top", priority=7), **{"a.b": spec(1, "top")})
    changes, replaces = plugin.diff(old, new)
    assert changes == {
        'queues["train"]': KIND.UPDATE,
        'queues["gone"]': KIND.DELETE,
        'queues["a.b"]': KIND.ADD,
    }
    assert not replaces


def test_the_same_spec_is_the_same_text_whoever_wrote_it():
    # Ours, and as Kubernetes answers: in another order, and whole numbers without a point.
    ours = {"resources": {"gpu": {"quota": 2.0, "limit": -1}}, "parentQueue": "top"}
    theirs = {"parentQueue": "top", "resources": {"gpu": {"limit": -1, "quota": 2}}}
    assert packed({"a": ours}) == packed({"a": theirs})
    assert unpacked(packed({"a": ours})) == {"a": ours}


def test_rotated_credentials_change_nothing(plugin):
    new = tree(top=spec(4)) | {"kubeconfig": "another", "context": "other"}
    assert plugin.diff(tree(top=spec(4)), new) == ({}, [])


def test_another_cluster_makes_it_anew(plugin):
    changes, replaces = plugin.diff(tree(top=spec(4)), tree(top=spec(4)) | {"cluster": "lab/x"})
    assert changes == {"cluster": KIND.UPDATE_REPLACE}
    assert replaces == ["cluster"]


def test_a_first_preview_asks_nobody_and_keeps_the_kubeconfig_out_of_the_state(plugin):
    given = tree(top=spec(4)) | {"kubeconfig": rpc.UNKNOWN}
    assert plugin.create(given, preview=True) == ("", tree(top=spec(4)))


def test_a_kubeconfig_that_is_none_is_one_sentence(plugin):
    for given in ("nonsense: [", "{}"):
        text = said(plugin.fails(plugin.create, tree(top=spec(4)) | {"kubeconfig": given}))
        assert text.startswith("cluster lab/ml: the kubeconfig cannot be used: ")
        assert "Traceback" not in text and "File" not in text and "\n" not in text


def test_a_tree_is_made_parents_first_and_another_time_not_touched(plugin):
    with serving() as (api, url):
        given = tree(top=spec(4), train=spec(2, "top")) | {"kubeconfig": kubeconfig(url)}
        api.answers |= {PATH: (200, {"items": []})}
        assert plugin.create(given) == (ID, tree(top=spec(4), train=spec(2, "top")))
        assert [body["metadata"]["name"] for body in api.bodies] == ["top", "train"]
        assert api.bodies[0]["metadata"]["labels"] == {TREE: "ml-queues"}
        api.bodies.clear()
        api.answers |= listed(live("top", 4), live("train", 2, parent="top"))
        plugin.update(ID, given, given)
        assert api.bodies == []


def test_what_was_made_in_part_is_kept_with_the_words_of_the_refusal(plugin):
    with serving() as (api, url):
        given = tree(top=spec(4), wrong=spec(9, "top")) | {"kubeconfig": kubeconfig(url)}
        refusal = {"message": "quota of wrong is above its parent's"}
        api.answers |= listed(live("top", 4)) | {f"{PATH}#wrong": (422, refusal)}
        error = plugin.fails(plugin.create, given)
    assert said(error) == "queue wrong: quota of wrong is above its parent's"
    kept = partial(error)
    assert (kept.id, plain(kept.properties)) == (ID, tree(top=spec(4)))
    assert plain(kept.inputs) == given
    assert list(kept.reasons) == [said(error)]


def test_one_that_differs_gets_its_whole_spec_whatever_kai_writes_meanwhile(plugin):
    with serving() as (api, url):
        given = tree(top=spec(4)) | {"kubeconfig": kubeconfig(url)}
        api.answers |= listed(live("top", 2, mine="yes"))
        plugin.update(ID, tree(top=spec(2)), given)
        (changes,) = api.bodies
        assert {change["path"]: change["value"] for change in changes} == {
            "/spec": spec(4),
            "/metadata/labels": {"mine": "yes", TREE: "ml-queues"},
        }
        api.answers[f"{PATH}/top#patch"] = (422, {"message": "quota is above its parent's"})
        error = plugin.fails(plugin.update, ID, tree(top=spec(2)), given)
        assert said(error) == "queue top: quota is above its parent's"


def test_a_refresh_sees_what_is_there(plugin):
    given = tree(top=spec(4), train=spec(2, "top")) | {"labels": {"top": {"pool": "a"}}}
    with serving() as (api, url):
        inputs = given | {"kubeconfig": kubeconfig(url)}
        api.answers |= listed(live("top", 5, pool="b"), live("other", 1, tree="other-queues"))
        identity, state, news = plugin.read(ID, given, inputs)
    assert identity == ID
    assert state == tree(top=spec(5)) | {"labels": {"top": {"pool": "b"}}}
    assert news == state | {"kubeconfig": inputs["kubeconfig"]}


def of_a_chart(name, quota, parent=None):
    """A default queue that a KAI's chart made, and keeps when it is uninstalled."""
    notes = {"helm.sh/resource-policy": "keep"}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec(quota, parent)}


def test_default_queues_of_a_kai_that_fit_are_used_and_stay(plugin):
    wanted = {"default-parent-queue": spec(-1), "default-queue": spec(-1, "default-parent-queue")}
    there = [
        of_a_chart("default-parent-queue", -1),
        of_a_chart("default-queue", -1, "default-parent-queue"),
    ]
    with serving() as (api, url):
        api.answers |= listed(*there)
        given = tree(**wanted) | {"kubeconfig": kubeconfig(url)}
        plugin.create(given)
        plugin.update(ID, tree(**wanted), given)
        assert plugin.read(ID, tree(**wanted), given)[1] == tree(**wanted)
        plugin.delete(ID, tree(**wanted), given)
        assert {verb for verb, _ in api.asked} == {"GET"}


def test_one_that_differs_is_named_with_what_differs(plugin):
    with serving() as (api, url):
        api.answers |= listed(of_a_chart("default-queue", -1))
        given = tree(**{"default-queue": spec(4)}) | {"kubeconfig": kubeconfig(url)}
        words = said(plugin.fails(plugin.create, given))
        assert {verb for verb, _ in api.asked} == {"GET"}
    assert "differs: resources.gpu.quota is -1 there, and 4 here" in words
    assert words.endswith("kubectl label queue default-queue kai-fleet/tree=ml-queues")


@pytest.mark.parametrize("answer", [(200, {"items": []}), (404, {})])
def test_a_tree_that_is_not_there_is_told_as_absent(plugin, answer):
    with serving() as (api, url):
        api.answers[PATH] = answer
        found = plugin.read(ID, tree(top=spec(4)), tree() | {"kubeconfig": kubeconfig(url)})
    assert found == ("", {}, {})


def test_a_refresh_of_a_cluster_that_is_gone_is_a_sentence_and_soon(plugin):
    begun = time.monotonic()
    error = plugin.fails(plugin.read, ID, tree(top=spec(4)), tree() | {"kubeconfig": NOBODY})
    assert time.monotonic() - begun < 6
    assert said(error).startswith("cluster lab/ml at http://127.0.0.1:1: the API does not answer: ")
    assert said(error).endswith(
        "See that kubectl reaches it, then run the same command again. If that cluster is gone for"
        " good: PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh"
    )


def test_what_was_in_a_cluster_that_is_gone_for_good_leaves_the_state():
    inputs = tree(top=spec(4)) | {"kubeconfig": NOBODY}
    with started(PULUMI_K8S_DELETE_UNREACHABLE="true") as plugin:
        assert plugin.read(ID, tree(top=spec(4)), inputs) == ("", {}, {})


def test_a_removal_reaches_the_cluster_by_the_inputs_children_first(plugin):
    with serving() as (api, url):
        there = [live("top", 4), live("train", 2, parent="top")]

        def left(_):
            gone = {path.rpartition("/")[2] for verb, path in api.asked if verb == "DELETE"}
            return {"items": [it for it in there if it["metadata"]["name"] not in gone]}

        api.answers |= {PATH: (200, left)}
        api.answers |= {f"{PATH}/{name}": (200, {}) for name in ("top", "train")}
        state = tree(top=spec(4), train=spec(2, "top"))
        plugin.delete(ID, state, state | {"kubeconfig": kubeconfig(url)})
        deleted = [path for verb, path in api.asked if verb == "DELETE"]
    assert deleted == [f"{PATH}/train", f"{PATH}/top"]


def test_a_failure_of_the_plugin_itself_is_told_as_such(plugin):
    error = plugin.fails(plugin.create, {"tree": "ml-queues", "queues": {}})
    assert said(error) == "the plugin failed at Create: KeyError('cluster')"


def test_the_engine_ends_it_at_once_and_without_a_word():
    with serving() as (api, url):
        api.delay = 20.0
        api.answers |= listed()
        with (
            started() as plugin,
            ThreadPoolExecutor(1) as thread,
        ):
            given = tree(top=spec(4)) | {"kubeconfig": kubeconfig(url)}
            waiting = thread.submit(plugin.fails, plugin.create, given)
            while not api.asked:
                time.sleep(0.05)
            plugin.process.send_signal(signal.SIGINT)
            assert plugin.process.wait(timeout=3) != 0
            waiting.result()
            assert plugin.process.stderr.read() == ""


def test_another_resource_is_refused_by_name(plugin):
    class Other(type(plugin)):
        urn = "urn:pulumi:stack::project::kai-fleet:index:Nosuch::x"

    error = plugin.fails(Other(plugin._stub, plugin.process).check, {})
    assert said(error) == "the plugin kai-fleet serves no resource kai-fleet:index:Nosuch"


def test_an_import_is_refused_with_what_to_do(plugin):
    error = plugin.fails(plugin.read, ID, {}, {})
    assert said(error).endswith(f"kubectl label queue NAME kai-fleet/tree={ID}")


def test_the_engine_finds_the_plugin_by_the_project_file():
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["plugins"]["providers"]
    folder = ROOT / next(it["path"] for it in declared if it["name"] == "kai-fleet")
    assert folder / "pulumi-resource-kai-fleet" == LAUNCHER
    assert LAUNCHER.stat().st_mode & 0o111


def test_a_queue_that_a_project_makes_is_left_to_it(plugin):
    """KAI Resource Management takes a queue of a Project's name, ours too, and writes it anew."""
    taken = live("train", 1)
    taken["metadata"]["ownerReferences"] = [
        {"apiVersion": "kai.resources/v1alpha1", "kind": "Project", "name": "research"}
    ]
    with serving() as (api, url):
        api.answers |= listed(taken)
        wanted = tree(train=spec(2)) | {"kubeconfig": kubeconfig(url)}
        text = said(plugin.fails(plugin.create, wanted))
        assert text.startswith("queue train is Project research's")
        assert "allowExternalQueues: true" in text
        assert {verb for verb, _ in api.asked} == {"GET"}
