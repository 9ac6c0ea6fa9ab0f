"""A slip in a stack file is a sentence that says what to write, and never the end of a team."""

import json
from contextvars import ContextVar
from pathlib import Path

import pytest
from pulumi.runtime import config

from kai_fleet_cli.errors import UserError
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.reading import parse
from kai_fleet_stack import settings, validation
from kai_fleet_stack.settings import read_config
from kai_fleet_stack.settings.files import yaml_file
from kai_fleet_stack.settings.mistakes import form_of
from kai_usage.quantities import QUANTITY

SETTINGS = Path(settings.__file__).parent
CLUSTER = {"name": "prod", "context": "prod"}
HEAD = "config:\n  kai-fleet:cluster: {name: prod, context: prod}\n"
OTHER_NUMBERS = (
    *("010", "0o17", "0x1F", "0O1", "0o-17", "1_000", "1_0e4", "-_.9", "4e1282", ".nan", "-.inf"),
    *("2026-11-21", "2026-01-01T00:00:00Z", "123456789012345678"),
)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("kai-flet:teams", "kai-fleet:teams"),
        ("kaifleet:vcluster", "kai-fleet:vcluster"),
        ("fleet:teamStacks", "kai-fleet:teamStacks"),
        ("teams", "kai-fleet:teams"),
        ("kai-fleet/teams", "kai-fleet:teams"),
        ("ml", "kai-fleet:ml, or indent it"),
    ],
)
def test_a_misspelt_prefix_is_refused_with_the_key_that_was_meant(key, meant):
    with pytest.raises(UserError) as refusal:
        parse(f"{HEAD}  {key}: {{}}\n", "Pulumi.prod.yaml")
    assert f"{key} " in str(refusal.value)
    assert f"write {meant}" in str(refusal.value)


@pytest.mark.parametrize("key", ["teams", "kai-fleet:teams", "Config"])
def test_a_key_beside_config_is_refused(key):
    with pytest.raises(UserError, match=f"{key} is not read by Pulumi; write config: and"):
        parse(f"{HEAD}{key}: {{}}\n", "Pulumi.prod.yaml")
    assert parse(f"encryptionsalt: v1:x\nenvironment: [a]\n{HEAD}", "Pulumi.prod.yaml")


def test_keys_of_other_programs_are_theirs():
    text = HEAD + "  aws:region: eu-west-1\n  kubernetes:context: x\n  mine:colour: red\n"
    assert set(parse(text, "Pulumi.prod.yaml")) == {"cluster"}


def test_the_program_refuses_a_misspelt_prefix_too(monkeypatch):
    """What plain `pulumi up` hands over: every key of the file, as JSON text."""
    handed = '{"kai-fleet:cluster": "{}", "kai-flet:teams": "{}", "aws:region": "eu"}'
    monkeypatch.setenv("PULUMI_CONFIG", handed)
    monkeypatch.setattr(config, "CONFIG", ContextVar("config", default=None))
    raw, _, (mistake,) = read_config()
    assert raw == {"cluster": {}}
    assert mistake.path == "kai-flet:teams" and "write kai-fleet:teams" in mistake.message
    assert [p.path for p in validation.validate({"cluster": CLUSTER}, more=[mistake]).refused] == [
        "kai-flet:teams"
    ]


def in_values(value):
    return f"{HEAD}  kai-fleet:gpu: {{values: {{a: {value}}}}}\n"


ODD_VALUES = (
    *((number, "line 3 column 31: has '") for number in OTHER_NUMBERS),
    *(
        (tag, "has a tag")
        for tag in ('!!bool "yes"', "! 1", "!!binary R0lGOD", "{!!binary YQ==: 1}")
    ),
    *((mapping, "which is no text") for mapping in ("{2: 3}", "{null: 3}", "{? [a] : 3}")),
    ("&a/b 1", "is no YAML"),
    ('"\\0"', "control character"),
    ('"\\ud800"', "invalid Unicode"),
    ("&x [*x]", "line 3 column 35: has *x, no value above it"),
    ("{<<: [1]}", "merges what is no mapping"),
    ("[" * 3000, "levels deep"),
)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        *((in_values(value), reported) for value, reported in ODD_VALUES),
        ("", " is not a stack file; write config: and keys such as kai-fleet:clu"),
        ("a: 1\nconfig: [b]\n", " is not a stack file; write config:"),
        ("<<<<<<< HEAD\nconfig:\n  a: 1\n=======\n", "line 2 column 7: is no YAML: mapping values"),
        ("config:\n\tkai-fleet:teams: {}\n", "line 2 column 1: is no YAML: found character"),
        ("config:\n  a: 1\n    b: 2\n", "line 3 column 6: is no YAML: mapping values"),
        ("config:\n  a: 1\n  a: 2\n", "line 3 column 3: has the key 'a' again"),
        ("config:\n  a: *x\n", "line 2 column 6: has *x, no value above it"),
        ("config:\n  a: x\0y\n", " is no YAML: it has a control character"),
        ("config: {}\n---\nconfig: {}\n", " begins several documents (---); write one"),
    ],
)
def test_a_slip_in_the_yaml_is_named_with_its_place(text, reported):
    with pytest.raises(UserError) as refusal:
        parse(text, "Pulumi.prod.yaml")
    assert reported in str(refusal.value)
    assert str(refusal.value).startswith("Pulumi.prod.yaml") and "\n" not in str(refusal.value)


def test_anchors_are_read_as_the_engine_reads_them():
    text = f"{HEAD}  kai-fleet:teams:\n    a: &a {{gpus: 1}}\n    b: *a\n    c: {{<<: *a}}\n"
    teams = parse(text, "Pulumi.prod.yaml")["teams"]
    assert teams == {name: {"gpus": 1} for name in "abc"}


BAD_FILES = {"a list": b"- a\n", "not UTF-8": b"config:\n  a: \xe9\n", "twice": b"a: 1\na: 2\n"}
PLACES = {"a list": "is not a st", "not UTF-8": "cannot be", "twice": "line 2"}


@pytest.mark.parametrize("bad", BAD_FILES)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("plan", 2),
        ("teams", 1),
        ("team switch ml v0.16.8", 1),
        ("team add new --mode default --gpus 1", 1),
        ("team remove ml --yes", 1),
        ("team rollback ml", 1),
        ("team kubeconfig ml", 1),
        ("doctor", 2),
        ("report --html report.html", 1),
        ("team credentials ml", 1),
    ],
)
def test_every_command_says_what_is_wrong_with_the_file(project, command, code, bad):
    (project.root / "Pulumi.lab.yaml").write_bytes(BAD_FILES[bad])
    ran = project.run(*command.split(), "--stack", "lab")
    assert ran.code == code, ran.out
    reported = f"{ran.out}{ran.refusal}"
    assert f"Pulumi.lab.yaml {PLACES[bad]}" in reported
    assert "Traceback" not in reported
    assert project.engine.asked == []


def test_a_file_that_is_none_is_said_by_its_path_or_line(tmp_path):
    with pytest.raises(UserError, match=f"{tmp_path}/x.yaml is not there$"):
        reading.read(tmp_path / "x.yaml")
    with pytest.raises(UserError, match=r"cannot be read: .*Is a directory"):
        reading.read(tmp_path)


TEAM = {"scheduler": {"mode": "default"}, "gpus": 1}
HOST = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}}


@pytest.mark.parametrize(
    ("raw", "reported"),
    [
        (
            {"teams": {"a": {"sheduler": {"mode": "default"}}}},
            "teams.a.sheduler: key sheduler: is an unknown key; write scheduler",
        ),
        ({"cluster": {"name": "c", "context": ""}}, "is empty; write a value or drop the key"),
        ({"kai": {"version": 0.16}}, "is 0.16; write a version such as v0.16.8"),
        (
            {**HOST, "queues": {"a": {"gpu": 1, "preemptMinRuntime": 30}}},
            'is 30; write it in quotes: "30"',
        ),
        ({"teams": {"host": TEAM}}, "teams.host: key host: is what findings and metrics call"),
        ({"teamStacks": {"host": {"gpus": 1}}}, "key host: is what findings and metrics call"),
        (
            {"labels": {"acme.io/cost-centre": "a b"}},
            "labels.acme.io/cost-centre: key acme.io/cost-",
        ),
        (
            {"teams": {"ml.team": TEAM}},
            "key ml.team: has a name which does not fit; write lower-case",
        ),
        (
            {"teams": {"ml": {**TEAM, "nodePool": {"nvidia.com/gpu": ["a", "b"]}}}},
            "key nvidia.com/gpu: is a list; write one text, such as nvidia.com/gpu: 'a'",
        ),
        ({**HOST, "queues": {"a": {"gpu": {"overQuotaWeight": 2}}}}, "unknown key; write weight"),
        ({"gpu": {"provider": "none", "provders": 1}}, "unknown key; write provider"),
        (
            {**HOST, "queues": {"a": {"gpu": {"weight": "0.5"}}}},
            "is '0.5'; write it without quotes: 0.5",
        ),
        ({**HOST, "queues": {"a": {"priority": "7"}}}, "is '7'; write it without quotes: 7"),
        ({**HOST, "queues": {"a": {"priority": "7.5"}}}, "is '7.5'; write a valid integer"),
        (
            {"teams": {"ml": {**TEAM, "autoscaled": "true"}}},
            "is 'true'; write true or false, without quotes",
        ),
        (
            {"isolation": {"network": {"apiCidrs": ["10.20.0.1"]}}},
            "is '10.20.0.1', which does not fit; write a network with its mask: 10.20.0.0/16",
        ),
        (
            {"vcluster": {"storageClass": "Fast"}},
            "is 'Fast', which does not fit; write lower-case letters, digits, dashes and dots",
        ),
    ],
)
def test_a_slip_in_a_key_or_a_value_is_one_sentence(raw, reported):
    problems = validation.validate({"cluster": CLUSTER, **raw}).refused
    assert [problem for problem in problems if reported in str(problem)]


def patterns_in(schema):
    """The patterns of texts in a JSON schema."""
    if isinstance(schema, list):
        return [found for each in schema for found in patterns_in(each)]
    if not isinstance(schema, dict):
        return []
    here = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    return [*here, *(found for each in schema.values() for found in patterns_in(each))]


def test_every_form_of_a_text_is_said_in_words():
    own = (f"^({QUANTITY.pattern})$", yaml_file.PATH["pattern"])  # said by what reads them
    schema = json.loads((SETTINGS / "stack.schema.json").read_text())
    patterns = set(patterns_in(schema)).difference(own)
    assert len(patterns) > 15
    for pattern in patterns:
        assert form_of(pattern)


@pytest.mark.parametrize(
    "value", ["0", "-1", "0.5", "1e3", "'010'", "yes", ".8e1", "12:30", "v1.2.3", "a_1", "!!str 1"]
)
def test_plain_values_pass(value):
    assert "gpu" in parse(in_values(value), "x")


def test_anchors_that_stand_for_billions_are_refused_at_once():
    lines = ["  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    with pytest.raises(UserError, match="stands for more than"):
        parse("config:\n" + "\n".join(lines), "Pulumi.prod.yaml")


def test_anchors_that_stand_for_thousands_of_levels_are_refused():
    deep = "[" * 150, "]" * 150
    lines = ["  a0: &a0 1"]
    lines += [f"  a{i}: &a{i} {deep[0]}*a{i - 1}{deep[1]}" for i in range(1, 30)]
    with pytest.raises(UserError, match="line 4 column 161: is 200 levels deep; write it flatter"):
        parse("config:\n" + "\n".join(lines), "Pulumi.prod.yaml")


def test_an_anchor_that_stands_twice_is_the_last_one_above():
    assert yaml_file.load("[&a 1, *a, &a 2, *a]") == [1, 1, 2, 2]


@pytest.mark.parametrize("text", ["a\nb", "a\u202eb", "a\x1b[31mb", "9" * 5000])
def test_a_message_about_an_odd_text_is_one_short_line(text):
    queues = {"a": {"gpu": 1, "preemptMinRuntime": text}}
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, "queues": queues}
    (problem,) = validation.validate(raw).refused
    assert str(problem).isprintable() and len(str(problem)) < 1000


def test_durations_that_overflow_are_refused():
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8", "fairshare": {"window": "2562048h"}}}
    (problem,) = validation.validate(raw).refused
    assert "write 168h for a week" in problem.message


def test_a_provider_with_a_wrong_key_is_one_mistake_and_not_one_more_for_each_group():
    groups = {"groups": {"all": "view"}}
    oidc = {"issuer": "http://id.example.com", "clientId": "kubernetes"}
    teams = {name: {**TEAM, "vcluster": groups} for name in ("ml", "nlp")}
    raw = {"cluster": CLUSTER, "vcluster": {"oidc": oidc, **groups}, "teams": teams}
    (problem,) = validation.validate(raw).refused
    assert problem.path == "kai-fleet:vcluster.oidc.issuer"
