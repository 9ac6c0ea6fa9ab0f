"""Edits of a stack file: what is asked for changes, and every other byte stays."""

import difflib
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file.edit import GONE, changed
from kai_fleet_cli.stack_file.reading import ROOT

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

    dev:
        scheduler:
            mode: 'default'
        gpus: 2
    # a comment after dev
encryptionsalt: v1:abc=
"""


def with_value(text, keys, value):
    return changed(text, {keys: value}, "Pulumi.lab.yaml")


def without(text, keys):
    return changed(text, {keys: GONE}, "Pulumi.lab.yaml")


def changed_lines(old, new):
    return [
        line
        for line in difflib.ndiff(old.splitlines(True), new.splitlines(True))
        if line[0] in "+-"
    ]


def load(text):
    return YAML(typ="safe", pure=True).load(text)


def test_a_version_is_one_line():
    new = with_value(FILE, (*TEAMS, "ml", "scheduler", "version"), "v0.16.8")
    assert new == FILE.replace("v0.9.3", "v0.16.8")


def test_a_number_keeps_its_spacing_and_its_comment():
    assert with_value(FILE, (*TEAMS, "ml", "gpus"), 4) == FILE.replace("gpus:   8", "gpus:   4")


def test_quotes_stay():
    new = with_value(FILE, (*TEAMS, "dev", "scheduler", "mode"), "host")
    assert new == FILE.replace("'default'", "'host'")


def test_a_team_goes_behind_the_last_one():
    team = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "x"}, "gpus": 1}
    new = with_value(FILE, (*TEAMS, "new"), team)
    added = "    new:\n      scheduler: {mode: default}\n      nodePool: {pool: x}\n      gpus: 1\n"
    assert new == FILE.replace("        gpus: 2\n", "        gpus: 2\n" + added)


def test_a_team_is_taken_out_with_its_lines_only():
    new = without(FILE, (*TEAMS, "dev"))
    assert new == FILE.replace(
        "    dev:\n        scheduler:\n            mode: 'default'\n        gpus: 2\n", ""
    )
    assert list(load(new)["config"]["kai-fleet:teams"]) == ["ml"]


def test_the_last_team_leaves_an_empty_mapping_that_takes_another_one():
    text = "config:\n  kai-fleet:teams:   # all\n    a: {gpus: 1, x: {}}\n"
    empty = without(text, (*TEAMS, "a"))
    assert empty == "config:\n  kai-fleet:teams: {}   # all\n"
    again = with_value(empty, (*TEAMS, "a"), {"gpus": 1, "x": {}})
    assert load(again) == load(text)
    assert "# all" in again


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "config:\n",
        "config: {}\n",
        "config:\n  kai-fleet:teams:\n",
        "config:\n  kai-fleet:teams: null # none yet\n",
        "config:\n  kai-fleet:teams: {}",
        "config:\r\n  kai-fleet:teams:\r\n    b: {gpus: 1}\r\n",
        "config: {kai-fleet:teams: {b: {gpus: 1}}}\n",
        "config: {'kai-fleet:teams': {b: {gpus: 1,},},}\n",
        "config:\n  kai-fleet:teams:\n    b: {gpus: 1}",
        "config:\n  other: |\n    text\n\n  kai-fleet:teams:\n    b:\n      - 1\n      - 2\n",
        "\ufeffconfig:\n  kai-fleet:cluster:\n    name: ü\n",
        "config:\n  kai-fleet:teams:\n    b:\n      gpus:\nencryptionsalt: x\n",
    ],
)
def test_any_layout_takes_a_team_and_gives_it_back(text):
    team = {"scheduler": {"mode": "virtual", "version": "v0.16.8"}, "gpus": 2}
    new = with_value(text, (*TEAMS, "a"), team)
    assert load(new)["config"]["kai-fleet:teams"]["a"] == team
    assert ("\r\n" in text) == ("\r\n" in new)
    assert "\n" not in new.replace("\r\n", "") or "\r\n" not in text
    gone = without(new, (*TEAMS, "a"))
    assert "a" not in load(gone)["config"]["kai-fleet:teams"]


def test_a_byte_order_mark_and_tabs_behind_values_stay():
    text = "\ufeffconfig:\t\n  kai-fleet:teams:\n    b: {gpus: 1}\t# one\n"
    new = with_value(text, (*TEAMS, "b", "gpus"), 2)
    assert new == text.replace("1}", "2}")
    assert without(new, (*TEAMS, "b")) == "\ufeffconfig:\t\n  kai-fleet:teams: {}\n"


@pytest.mark.parametrize(
    "text",
    [
        "config:\n  kai-fleet:teams:\n    a: &x {gpus: 1}\n    b: *x\n",
        "config:\n  kai-fleet:teams:\n    a: &x {gpus: 1}\n    b: {<<: *x}\n",
        "config:\n  kai-fleet:teams: [1]\n",
        "config:\n  kai-fleet:teams: {a: {gpus: 1 # one\n  }, b: {c: 2}}\n",
        "- 1\n",
        "a: b: c",
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text):
    with pytest.raises(UserError, match="by hand"):
        with_value(text, (*TEAMS, "b", "gpus"), 3)
        with_value(text, (*TEAMS, "a", "new"), 3)


# Stack files as people write them: comments and blank lines anywhere, block and flow mixed.
names = st.from_regex(r"[a-z][a-z0-9-]{0,6}[a-z0-9]", fullmatch=True)
comments = st.sampled_from(["", "  # why", " # ü: {x", "   "])
versions = st.sampled_from(["v0.7.11", "v0.9.3", '"v0.16.8"', "'v0.14.7'"])
noise = st.sampled_from(["", "\n", "    # note: {not} a: key\n", "  # left\n", "\n\n"])


@st.composite
def teams(draw, name):
    version, tail = draw(versions), draw(comments)
    if draw(st.booleans()):
        inner = f"scheduler: {{mode: virtual, version: {version} }}{tail}\n"
        return f"{draw(noise)}    {name}:{draw(comments)}\n      {inner}      gpus: 3{tail}\n"
    return (
        f"{draw(noise)}    {name}:\n      scheduler:{tail}\n          mode: virtual\n"
        f"          version:  {version}{tail}\n{draw(noise)}      gpus:  3\n"
    )


@st.composite
def files(draw):
    there = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    text = draw(noise) + "config:\n  kai-fleet:teams:\n"
    text += "".join(draw(teams(name)) for name in there)
    return text + draw(noise) + draw(st.sampled_from(["", "other: 1\n"])), there


@settings(max_examples=60, deadline=None)
@given(files(), st.data())
def test_any_edit_changes_its_own_lines_only(file, data):
    text, there = file
    name = data.draw(st.sampled_from(there))
    switched = with_value(text, (*TEAMS, name, "scheduler", "version"), "v0.17.0")
    lines = changed_lines(text, switched)
    assert [line[0] for line in lines if line[0] != "?"] == ["-", "+"]
    assert len(switched.splitlines()) == len(text.splitlines())
    expected = load(text)
    expected["config"]["kai-fleet:teams"][name]["scheduler"]["version"] = "v0.17.0"
    assert load(switched) == expected

    added = with_value(text, (*TEAMS, "zz-new"), {"scheduler": {"mode": "default"}, "gpus": 0})
    assert {line[0] for line in changed_lines(text, added)} == {"+"}
    assert without(added, (*TEAMS, "zz-new")) == text if text.endswith("\n") else True

    gone = without(text, (*TEAMS, name))
    kept = list(io.StringIO(gone))
    assert all(line in text for line in kept if "{}" not in line)
    assert name not in load(gone)["config"]["kai-fleet:teams"]


@pytest.mark.parametrize("stack", ["sandbox", "sandbox-host", "dev", "prod"])
def test_every_stack_file_of_this_project_can_be_edited(stack):
    text = (ROOT / f"Pulumi.{stack}.yaml").read_text()
    for name, team in load(text)["config"]["kai-fleet:teams"].items():
        new = with_value(text, (*TEAMS, name, "gpus"), team["gpus"] + 1)
        assert len(changed_lines(text, new)) == 2
        assert without(with_value(text, (*TEAMS, "one-more"), team), (*TEAMS, "one-more")) == text
