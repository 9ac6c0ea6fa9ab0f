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
from kai_fleet_stack.settings.files import yaml_file
from kai_fleet_stack.settings.mistakes import form_of
from kai_fleet_stack.settings.running_config import read_config
from kai_usage.quantities import QUANTITY

pytestmark = pytest.mark.texts("mistakes")

SETTINGS = Path(settings.__file__).parent
CLUSTER = {"name": "prod", "context": "prod"}
HEAD = "config:\n  kai-fleet:cluster: {name: prod, context: prod}\n"
FILE = "Pulumi.prod.yaml"
OTHER_NUMBERS = (
    *("010", "0o17", "0x1F", "0O1", "0o-17", "1_000", "1_0e4", "-_.9", "4e1282", ".nan", "-.inf"),
    *("2026-11-21", "2026-01-01T00:00:00Z", "123456789012345678"),
)


def refusal(text):
    """How a stack file with this text is refused."""
    with pytest.raises(UserError) as refused:
        parse(text, FILE)
    said = str(refused.value)
    assert said.startswith(FILE) and "\n" not in said
    return said


@pytest.mark.parametrize(
    "key",
    [
        *("kai-flet:teams", "kaifleet:vcluster", "fleet:teamStacks", "teams", "kai-fleet/teams"),
        "ml",
    ],
)
def test_parse_refuses_a_misspelt_prefix_with_the_key_that_was_meant(key, texts):
    texts(refusal(f"{HEAD}  {key}: {{}}\n"))


# Names that users choose, which are keys as well, where a key has an example.
NAMED_LIKE_KEYS = (
    *("teams: {queues: abc}", "teams: {version: [1]}", "teams: {cluster: 5}"),
    *("teamStacks: {tolerations: abc}",),
    "queues: {version: abc}",
    "teams: {ml: {scheduler: {mode: default}, nodePool: {version: 5}}}",
    "kai: {version: v0.16.8, shards: {queues: abc}}",
)


@pytest.mark.parametrize("text", NAMED_LIKE_KEYS)
def test_a_name_that_is_a_key_elsewhere_has_no_example_of_it(text, texts):
    raw = {"cluster": CLUSTER, **yaml_file.load(text)}
    found = validation.validate(raw).refused
    words = ("train: {gpu: 4}", "version such as", "context: prod", "mode: virtual", "NoSchedule")
    assert found and not [word for word in words if word in str(found)]
    texts(*found)


@pytest.mark.parametrize("key", ["teams", "kai-fleet:teams", "Config"])
def test_parse_refuses_a_key_beside_config(key, texts):
    texts(refusal(f"{HEAD}{key}: {{}}\n"))


def test_parse_keys_of_pulumis_beside_config_pass():
    assert parse(f"encryptionsalt: v1:x\nenvironment: [a]\n{HEAD}", FILE)


def test_parse_keys_of_other_programs_are_theirs():
    text = HEAD + "  aws:region: eu-west-1\n  kubernetes:context: x\n  mine:colour: red\n"
    assert set(parse(text, "Pulumi.prod.yaml")) == {"cluster"}


def test_read_config_refuses_a_misspelt_prefix_too(monkeypatch, texts):
    """What plain `pulumi up` hands over: every key of the file, as JSON text."""
    handed = '{"kai-fleet:cluster": "{}", "kai-flet:teams": "{}", "aws:region": "eu"}'
    monkeypatch.setenv("PULUMI_CONFIG", handed)
    monkeypatch.setattr(config, "CONFIG", ContextVar("config", default=None))
    raw, _, (mistake,) = read_config()
    assert raw == {"cluster": {}}
    (problem,) = validation.validate({"cluster": CLUSTER}, more=[mistake]).refused
    assert mistake.path == problem.path == "kai-flet:teams"
    texts(problem)


def in_values(value):
    return f"{HEAD}  kai-fleet:gpu: {{values: {{a: {value}}}}}\n"


ODD_VALUES = (
    *OTHER_NUMBERS,
    *('!!bool "yes"', "! 1", "!!binary R0lGOD", "{!!binary YQ==: 1}"),
    *("{2: 3}", "{null: 3}", "{? [a] : 3}"),
    *("&a/b 1", '"\\0"', '"\\ud800"', "&x [*x]", "{<<: [1]}"),
)
# Where YAML's own words begin, or the reader's: the line and the column.
PLACES = {
    "<<<<<<< HEAD\nconfig:\n  a: 1\n=======\n": "line 2 column 7",
    "config:\n\tkai-fleet:teams: {}\n": "line 2 column 1",
    "config:\n  a: 1\n    b: 2\n": "line 3 column 6",
    "config:\n  a: 1\n  a: 2\n": "line 3 column 3",
    "config:\n  a: *x\n": "line 2 column 6",
    in_values("[" * 3000): "line 3 column ",
}
WITHOUT_PLACE = (
    *("", "a: 1\nconfig: [b]\n", "config:\n  a: x\0y\n", "config: {}\n---\nconfig: {}\n"),
)


@pytest.mark.parametrize("value", ODD_VALUES)
def test_parse_refuses_an_odd_value(value, texts):
    said = refusal(in_values(value))
    assert said.startswith(f"{FILE} line 3 column ")
    texts(said)


@pytest.mark.parametrize(("text", "place"), PLACES.items(), ids=PLACES.values())
def test_parse_names_the_place_of_a_slip(text, place, texts):
    said = refusal(text)
    assert said.startswith(f"{FILE} {place}")
    texts(said)


@pytest.mark.parametrize("text", WITHOUT_PLACE, ids=["empty", "list", "NUL", "two documents"])
def test_parse_refuses_what_is_no_stack_file(text, texts):
    texts(refusal(text))


def test_parse_anchors_as_the_engine_does():
    text = f"{HEAD}  kai-fleet:teams:\n    a: &a {{gpus: 1}}\n    b: *a\n    c: {{<<: *a}}\n"
    teams = parse(text, "Pulumi.prod.yaml")["teams"]
    assert teams == {name: {"gpus": 1} for name in "abc"}


BAD_FILES = {"a list": b"- a\n", "not UTF-8": b"config:\n  a: \xe9\n", "twice": b"a: 1\na: 2\n"}
WRONG = {"a list": "is not a", "not UTF-8": "cannot be", "twice": "line 2"}


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
def test_commands_say_what_is_wrong_with_the_file(project, command, code, bad):
    (project.root / "Pulumi.lab.yaml").write_bytes(BAD_FILES[bad])
    ran = project.run(*command.split(), "--stack", "lab")
    assert ran.code == code, ran.out
    reported = f"{ran.out}{ran.refusal}"
    assert f"Pulumi.lab.yaml {WRONG[bad]}" in reported
    assert "Traceback" not in reported
    assert project.engine.asked == []


@pytest.mark.parametrize("bad", [*BAD_FILES, "absent", "folder"])
def test_read_says_what_is_wrong_with_the_file(tmp_path, bad, texts):
    file = tmp_path / FILE
    if bad == "folder":
        file.mkdir()
    if bad in BAD_FILES:
        file.write_bytes(BAD_FILES[bad])
    with pytest.raises(UserError) as refused:
        reading.read(file)
    texts(str(refused.value).replace(str(tmp_path), "FOLDER"))


TEAM = {"scheduler": {"mode": "default"}, "gpus": 1}
HOST = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}}


def queue(**share):
    return {**HOST, "queues": {"a": share}}


def team(**keys):
    return {"teams": {"ml": {**TEAM, **keys}}}


SLIPS = [
    (team(sheduler={"mode": "default"}), "teams.ml.sheduler"),
    ({"cluster": {"name": "c", "context": ""}}, "cluster.context"),
    ({"kai": {"version": 0.16}}, "kai.version"),
    (queue(gpu=1, preemptMinRuntime=30), "queues.a.preemptMinRuntime"),
    ({"teams": {"host": TEAM}}, "teams.host"),
    ({"teamStacks": {"host": {"gpus": 1}}}, "teamStacks.host"),
    ({"labels": {"acme.io/cost-centre": "a b"}}, "labels.acme.io/cost-centre"),
    ({"teams": {"ml.team": TEAM}}, "teams.ml.team"),
    (team(nodePool={"nvidia.com/gpu": ["a", "b"]}), "teams.ml.nodePool.nvidia.com/gpu"),
    (queue(gpu={"overQuotaWeight": 2}), "queues.a.gpu.overQuotaWeight"),
    ({"gpu": {"provider": "none", "provders": 1}}, "gpu.provders"),
    (queue(gpu={"weight": "0.5"}), "queues.a.gpu.weight"),
    (queue(priority="7"), "queues.a.priority"),
    (queue(priority="7.5"), "queues.a.priority"),
    (team(autoscaled="true"), "teams.ml.autoscaled"),
    ({"isolation": {"network": {"apiCidrs": ["10.20.0.1"]}}}, "isolation.network.apiCidrs.0"),
    ({"vcluster": {"storageClass": "Fast"}}, "vcluster.storageClass"),
    (
        {"kai": {"version": "v0.16.8", "fairshare": {"window": "2562048h"}}},
        "kai.fairshare.window",
    ),
]


@pytest.mark.parametrize(("raw", "path"), SLIPS, ids=[path for _, path in SLIPS])
def test_validate_a_slip_is_one_sentence_at_its_key(raw, path, texts):
    problems = validation.validate({"cluster": CLUSTER, **raw}).refused
    found = [each for each in problems if each.path == f"kai-fleet:{path}"]
    assert len(found) == 1, problems
    texts(*found)


def patterns_in(schema):
    """The patterns of texts in a JSON schema."""
    if isinstance(schema, list):
        return [found for each in schema for found in patterns_in(each)]
    if not isinstance(schema, dict):
        return []
    here = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    return [*here, *(found for each in schema.values() for found in patterns_in(each))]


def test_form_of_says_every_form_in_words():
    own = (f"^({QUANTITY.pattern})$", yaml_file.PATH["pattern"])  # said by what reads them
    schema = json.loads((SETTINGS / "stack.schema.json").read_text())
    patterns = set(patterns_in(schema)).difference(own)
    assert len(patterns) > 15
    for pattern in patterns:
        assert form_of(pattern)


@pytest.mark.parametrize(
    "value", ["0", "-1", "0.5", "1e3", "'010'", "yes", ".8e1", "12:30", "v1.2.3", "a_1", "!!str 1"]
)
def test_parse_plain_values_pass(value):
    assert "gpu" in parse(in_values(value), "x")


def test_parse_refuses_anchors_that_stand_for_billions(texts):
    lines = ["  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    texts(refusal("config:\n" + "\n".join(lines)))


def test_parse_refuses_anchors_that_stand_for_thousands_of_levels(texts):
    deep = "[" * 150, "]" * 150
    lines = ["  a0: &a0 1"]
    lines += [f"  a{i}: &a{i} {deep[0]}*a{i - 1}{deep[1]}" for i in range(1, 30)]
    texts(refusal("config:\n" + "\n".join(lines)))


def test_load_an_anchor_that_stands_twice_is_the_last_one_above():
    assert yaml_file.load("[&a 1, *a, &a 2, *a]") == [1, 1, 2, 2]


@pytest.mark.parametrize("text", ["a\nb", "a\u202eb", "a\x1b[31mb", "9" * 5000])
def test_validate_a_message_about_an_odd_text_is_one_short_line(text):
    queues = {"a": {"gpu": 1, "preemptMinRuntime": text}}
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, "queues": queues}
    (problem,) = validation.validate(raw).refused
    assert str(problem).isprintable() and len(str(problem)) < 1000


def test_validate_a_provider_with_a_wrong_key_is_one_mistake():
    groups = {"groups": {"all": "view"}}
    oidc = {"issuer": "http://id.example.com", "clientId": "kubernetes"}
    teams = {name: {**TEAM, "vcluster": groups} for name in ("ml", "nlp")}
    raw = {"cluster": CLUSTER, "vcluster": {"oidc": oidc, **groups}, "teams": teams}
    (problem,) = validation.validate(raw).refused
    assert problem.path == "kai-fleet:vcluster.oidc.issuer"
