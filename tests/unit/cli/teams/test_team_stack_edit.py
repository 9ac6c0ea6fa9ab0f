"""Edits of a stack file: what is asked for changes, and every other byte stays."""

import pytest
from ruamel.yaml import YAML

from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.edit import GONE, with_value
from kai_fleet_cli.stack_file.reading import ROOT, stacks
from kai_fleet_cli.teams.changes import Change, StackFile

TEAMS = ("config", "kai-fleet:teams")
FILE = """\
# the head
config:
  kai-fleet:cluster: { name: "lab",  context: lab }   # odd spacing stays
  kai-fleet:teams:
    # a comment before ml
    ml:
      scheduler: {mode: virtual, version: v0.9.3}  # the version
      gpus:   8   # eight
      queues: {train: {gpu: {quota: 8}}}

    # a comment before dev
    dev:
        scheduler:
            mode: 'default'
        gpus: 2
  # what others may have
  kai-fleet:teamStacks: {}
encryptionsalt: v1:abc=
"""
NEW = {"scheduler": {"mode": "default"}, "gpus": 1, "queues": {"all": {"gpu": 1, "children": {}}}}


def put(text, keys, value):
    return with_value(text, (*TEAMS, *keys), value, "Pulumi.lab.yaml")


def edit(path, before, after):
    return Change(StackFile("lab", path, before, {}, {}, False), after, "lab", "", "")


def load(text):
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize(
    ("keys", "value", "old", "new"),
    [
        (("ml", "scheduler", "version"), "v0.16.8", "v0.9.3}  #", "v0.16.8} #"),
        (("ml", "gpus"), 4, "gpus:   8   # eight", "gpus: 4     # eight"),
        (("dev", "scheduler", "mode"), "host", "'default'", "'host'"),
    ],
)
def test_a_value_is_one_line_with_its_quotes_and_comment(keys, value, old, new):
    assert put(FILE, keys, value) == FILE.replace(old, new)


def test_a_team_goes_behind_the_last_one_and_comes_out_again():
    with_new = put(FILE, ("new",), NEW)
    lines = "    new:\n      scheduler:\n        mode: default\n      gpus: 1\n      queues:\n"
    above, below = FILE.split("  # what others may have\n")
    assert with_new.startswith(above + lines)
    assert with_new.endswith("  # what others may have\n" + below)
    assert put(with_new, ("new",), GONE) == FILE


def test_a_team_is_taken_out_with_its_lines_only():
    ml = FILE[FILE.index("    ml:") : FILE.index("\n    # a comment before dev")]
    assert put(FILE, ("ml",), GONE) == FILE.replace(ml, "")


@pytest.mark.parametrize(
    "text",
    [
        "config:\n",
        "config:\n  kai-fleet:teams:\n",
        "config:\n  kai-fleet:teams: {}",
        "config: {kai-fleet:cluster: {name: x}}\n",
        "config:\n    kai-fleet:cluster:\n        name: ü\n",
        "config:\n  other: |\n    text\n    # text\n\n  kai-fleet:teams:\n    b:\n    - 1\n",
        "\ufeffconfig:\n  kai-fleet:teams:\n    b:\n      gpus:\nencryptionsalt: x\n",
    ],
)
def test_a_team_is_added_to_any_file_and_nothing_else_changes(text):
    expected = load(text)
    expected["config"] = expected["config"] or {}
    expected["config"]["kai-fleet:teams"] = (expected["config"].get("kai-fleet:teams") or {}) | {
        "a": NEW
    }
    after = put(text, ("a",), NEW)
    assert load(after) == expected
    assert after.startswith("\ufeff") == text.startswith("\ufeff")


@pytest.mark.parametrize("value", ["abc", "[a]", "[]", "''", "0", "false", "5", "true", "0.0"])
@pytest.mark.parametrize("change", ["v0.16.8", GONE])
@pytest.mark.parametrize(
    "text",
    [
        "config:\n  kai-fleet:teams: {{ml: {{scheduler: {}}}}}\n",
        "config:\n  kai-fleet:teams: {{ml: {}}}\n",
        "config:\n  kai-fleet:teams: {}\n",
        "config: {}\n",
    ],
)
def test_a_value_above_that_is_no_mapping_is_never_replaced(text, change, value):
    with pytest.raises(AttributeError):
        put(text.format(value), ("ml", "scheduler", "version"), change)


@pytest.mark.parametrize(
    "text",
    [
        "config:\n  kai-fleet:teams:\n    ml: &a {gpus: 1}\n    dev: *a\n",
        "config:\n  x: &a {kai: {v: 1}}\n  kai-fleet:teams:\n    dev: {<<: *a}\n    ml: *a\n",
    ],
)
def test_what_an_anchor_shares_is_not_edited(text):
    with pytest.raises(
        UserError, match=r"Pulumi\.lab\.yaml shares values with other keys by YAML anch"
    ):
        put(text, ("ml", "gpus"), 4)


@pytest.mark.parametrize("stack", stacks())
def test_every_stack_file_of_this_project_changes_in_its_own_lines_only(stack):
    path = ROOT / f"Pulumi.{stack}.yaml"
    text = path.read_text()
    config = load(text)["config"]
    for name, team in config.get("kai-fleet:teams", {}).items():
        after = put(text, (name, "gpus"), 99)
        assert len(edit(path, text, after).lines()) == 2
        assert put(put(text, ("one-more",), team), ("one-more",), GONE) == text
    if "kai-fleet:team" in config:
        keys = ("config", "kai-fleet:team", "scheduler", "version")
        assert len(edit(path, text, with_value(text, keys, "v9.9.9", path.name)).lines()) == 2


def test_a_file_that_changed_meanwhile_is_neither_overwritten_nor_put_back(tmp_path):
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text("before")
    change = edit(file, "before", "after")
    file.write_text("a colleague's")
    assert not change.write()
    assert not change.undo()
    assert file.read_text() == "a colleague's"
