"""A queue tree in a file of its own is the tree itself, wherever `queues:` may stand."""

import json

import pytest

from kai_fleet_stack.settings.files import yaml_file
from kai_fleet_stack.settings.loading import load

TREE = {"top": {"gpu": {"quota": 4}, "children": {"train": {"gpu": {"quota": 4}}}}}
ML = {"scheduler": {"mode": "virtual", "version": "v0.16.8"}, "nodePool": {"pool": "ml"}}
CLUSTER = {"name": "lab", "context": "lab"}
HOST = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_file, "ROOT", tmp_path)
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / "lab.yaml").write_text(json.dumps(TREE))
    return tmp_path


@pytest.mark.parametrize(
    "with_queues",
    [
        lambda queues: HOST | {"queues": queues},
        lambda queues: {"cluster": CLUSTER, "teams": {"ml": {**ML, "gpus": 4, "queues": queues}}},
    ],
    ids=["host", "team"],
)
def test_a_file_is_read_in_place_of_the_tree(folder, with_queues):
    raw = with_queues("queues/lab.yaml")
    filed, inline = load(raw), load(with_queues(TREE))
    assert filed.mistakes == inline.mistakes == ()
    assert filed.settings.model_dump() == inline.settings.model_dump()
    assert raw == with_queues("queues/lab.yaml"), "what was handed in stays as it is"


def test_a_mistake_in_the_file_is_named_as_if_it_stood_in_the_stack_file(folder):
    (folder / "queues" / "lab.yaml").write_text("top: {gpu: {qouta: 4}}")
    (mistake,) = load(HOST | {"queues": "queues/lab.yaml"}).mistakes
    assert (mistake.path, mistake.message) == (
        "kai-fleet:queues.top.gpu.qouta",
        "is an unknown key; write quota",
    )


NO_FILE = "which is no YAML file below this project's folder; write one that is"


@pytest.mark.parametrize(
    ("named", "content", "says"),
    [
        ("queues/none.yaml", None, "names queues/none.yaml, which is not there; write the path"),
        ("../outside.yaml", None, f"names ../outside.yaml, {NO_FILE}"),
        ("/etc/passwd", None, f"names /etc/passwd, {NO_FILE}"),
        ("a\0.yaml", None, rf"names a\x00.yaml, {NO_FILE}"),
        ("circle.yaml", None, "names circle.yaml, which cannot be read: "),
        ("a.yaml", "top: {gpu: 1", "names a.yaml, line 2 column 1: is no YAML"),
        ("a.yaml", "- top", "is a list; write names of queues with a mapping each"),
        (
            "a.yaml",
            "top: &a {children: *a}",
            "names a.yaml, line 1 column 20: has *a, no v",
        ),
        ("a.yaml", "top: 2026-01-01", "names a.yaml, line 1 column 6: has '2026-01-01'"),
        ("a.yaml", b"\xff\xfe\x00", "names a.yaml, which cannot be read:"),
    ],
)
def test_a_file_that_holds_no_tree_is_one_sentence(folder, named, content, says):
    (folder / "circle.yaml").symlink_to(folder / "circle.yaml")
    if content is not None:
        (folder / named).write_bytes(content if isinstance(content, bytes) else content.encode())
    (mistake,) = load(HOST | {"queues": named}).mistakes
    assert mistake.path == "kai-fleet:queues"
    assert mistake.message.startswith(says)
