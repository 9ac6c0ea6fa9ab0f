"""The provider of queue trees, over gRPC as the engine asks it; no cluster is reached."""

from __future__ import annotations

import pytest
import yaml

from fleet.stack_file import ROOT
from provider.protocol import provider_pb2
from provider.queue_plugin import QueuePlugin
from provider.queue_specs import packed, unpacked
from provider.tokens import QUEUES
from provider.wire import UNKNOWN, Secret
from tests.unit.provider_harness import driven

KIND = provider_pb2.PropertyDiff


def spec(quota: float, parent: str | None = None, **more: object) -> dict[str, object]:
    gpu = {"quota": quota, "limit": -1, "overQuotaWeight": 1}
    return {"resources": {"gpu": gpu}, **({"parentQueue": parent} if parent else {}), **more}


def tree(**queues: object) -> dict[str, object]:
    return {"cluster": "lab/ml", "tree": "ml-queues", "queues": packed(queues)}


@pytest.fixture(scope="module")
def plugin():
    with driven(QueuePlugin) as driver:
        driver.token = QUEUES
        yield driver


def diff(plugin, old, new):
    answer = plugin.diff(old, new)
    return {path: item.kind for path, item in answer.detailedDiff.items()}, list(answer.replaces)


def test_a_change_is_shown_at_its_place(plugin):
    old = tree(top=spec(4), train=spec(2, "top"), gone=spec(1, "top"))
    new = tree(top=spec(4), train=spec(3, "top", priority=7), **{"a.b": spec(1, "top")})
    changes, replaces = diff(plugin, old, new)
    assert changes == {
        "queues.train": KIND.UPDATE,
        "queues.gone": KIND.DELETE,
        'queues["a.b"]': KIND.ADD,
    }
    assert not replaces


def test_a_state_from_before_queues_were_text_is_the_same_tree(plugin):
    specs = {"top": spec(4.0), "train": spec(0.5, "top")}
    old = tree() | {"queues": specs}
    assert diff(plugin, old, tree(**specs)) == ({}, [])
    changes, _ = diff(plugin, old, tree(top=spec(4), train=spec(1, "top")))
    assert changes == {"queues.train": KIND.UPDATE}


def test_the_same_spec_is_the_same_text_whoever_wrote_it():
    # Ours, and as Kubernetes answers: in another order, and whole numbers without a point.
    ours = {"resources": {"gpu": {"quota": 2.0, "limit": -1}}, "parentQueue": "top"}
    theirs = {"parentQueue": "top", "resources": {"gpu": {"limit": -1, "quota": 2}}}
    assert packed({"a": ours}) == packed({"a": theirs})
    assert unpacked(packed({"a": ours})) == {"a": ours}


def test_rotated_credentials_change_nothing(plugin):
    new = tree(top=spec(4)) | {"kubeconfig": Secret("another"), "context": "other"}
    assert diff(plugin, tree(top=spec(4)), new) == ({}, [])


def test_another_cluster_makes_it_anew(plugin):
    changes, replaces = diff(plugin, tree(top=spec(4)), tree(top=spec(4)) | {"cluster": "lab/x"})
    assert changes == {"cluster": KIND.UPDATE_REPLACE}
    assert replaces == ["cluster"]


def test_a_first_preview_asks_nobody_and_keeps_the_kubeconfig_out_of_the_state(plugin):
    given = tree(top=spec(4)) | {"kubeconfig": UNKNOWN}
    assert plugin.create(given, preview=True) == ("", tree(top=spec(4)))


def test_a_kubeconfig_that_is_none_is_one_sentence(plugin):
    said = plugin.fails(plugin.create, tree(top=spec(4)) | {"kubeconfig": Secret("nonsense: [")})
    assert said.startswith("the kubeconfig of the cluster cannot be used")
    assert "Traceback" not in said


def test_the_engine_finds_the_plugin_by_the_project_file():
    declared = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["plugins"]["providers"]
    folder = ROOT / next(it["path"] for it in declared if it["name"] == "kai-fleet")
    assert (folder / "pulumi-resource-kai-fleet").stat().st_mode & 0o111
