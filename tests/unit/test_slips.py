"""A slip in a stack file is a sentence that says what to write, and never the end of a team."""

import re
import subprocess
from contextvars import ContextVar

import pytest
from pulumi.runtime import config

from kai_fleet.fleet.resolve import platform_facts
from kai_fleet.settings import load, read_config
from kai_fleet_cli.engine.environment import sandbox_variables
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.reading import ROOT, StackFileError, parse
from kai_fleet_cli.stack_file.write import Edit, restore
from kai_fleet_policies import validation

CLUSTER = {"name": "prod", "context": "prod"}
HEAD = "config:\n  kai-fleet:cluster: {name: prod, context: prod}\n"
HF = "hf_" + "a1B2" * 8


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("kai-flet:teams", "kai-fleet:teams"),
        ("kai-Fleet:teams", "kai-fleet:teams"),
        ("kaifleet:vcluster", "kai-fleet:vcluster"),
        ("kai_fleet:queues", "kai-fleet:queues"),
        ("fleet:teamStacks", "kai-fleet:teamStacks"),
        ("teams", "kai-fleet:teams"),
        ("kai-fleet/teams", "kai-fleet:teams"),
        ("kai-fleet.teams", "kai-fleet:teams"),
        ("kai-fleet-teams", "kai-fleet:teams"),
        ("kai-fleet", "kai-fleet:teams and the like"),
        ("ml", "kai-fleet:ml, or indent it"),
    ],
)
def test_a_misspelt_prefix_is_refused_with_the_key_that_was_meant(key, meant):
    with pytest.raises(StackFileError) as refusal:
        parse(f"{HEAD}  {key}: {{}}\n", "Pulumi.prod.yaml")
    assert f"{key} " in str(refusal.value)
    assert f"write {meant}" in str(refusal.value)


@pytest.mark.parametrize("key", ["teams", "kai-flet:teams", "queues"])
def test_a_key_beside_config_is_refused(key):
    with pytest.raises(StackFileError, match=f"write kai-fleet:{key.rpartition(':')[2]} there"):
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


def test_team_for_teams_is_one_mistake():
    (problem,) = validation.validate({"cluster": CLUSTER, "team": {"ml": {}}, "gpu": {}}).refused
    assert problem.path == "kai-fleet:team" and "write kai-fleet:teams" in problem.message


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ({"cluster": {"name": "p", "kubeconfig": "apiVersion: v1"}}, "cluster.kubeconfig"),
        ({"registries": {"a.b": {"password": HF}}}, 'registries["a.b"].password'),
    ],
)
def test_a_secret_in_clear_is_refused_with_the_command_that_encrypts_it(raw, place):
    said = [str(p) for p in validation.validate({"cluster": CLUSTER, **raw}).refused]
    command = f"pulumi config set --secret --path 'kai-fleet:{place}' --stack STACK"
    assert len([line for line in said if command in line]) == 1
    assert not any(HF in line for line in said), "the secret itself is not shown"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("registry", {"password": "p"}),
        ("auth", [{"apiToken": "p"}]),
        ("args", f"--key {HF}"),
        ("args", f"nvapi-{'a1B2' * 8}"),
        ("env", {"AWS_SECRET_ACCESS_KEY": "p"}),
        ("env", [{"name": "HF_TOKEN", "value": "p"}]),
        ("password", 12345678),
        ("licenseKey", "abc"),
        ("dockerconfigjson", "eyJhdXRocyI6e319"),
        ("registry", '{"auths": {"r.example": {}}}'),
        ("proxy", "http://me:hunter2@proxy.example:3128"),
        ("webhook", "xoxb-" + "1" * 12),
        ("args", ["--password=hunter2"]),
        ("args", ["--api-key", "hunter2"]),
    ],
)
def test_other_secrets_in_clear_are_refused(key, value):
    refused = validation.validate({"cluster": CLUSTER, "gpu": {"values": {key: value}}}).refused
    (problem,) = (it for it in refused if it.check == validation.CONFIG_RULE)
    assert "is a secret in clear, at a key for none" in problem.message
    assert not any(it in str(refused) for it in ("hunter2", "auths", HF))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", True),
        ("maxTokens", 4096),
        ("proxy", "http://proxy.example:3128/a@b"),
        ("proxy", "http://$(USER):$(PASSWORD)@proxy.example"),
        ("args", ["--token=$(TOKEN)", "--token-file=/t", "--password=/run/p", "--use-token=true"]),
        ("args", ["--token", "$(TOKEN)", "--use-token", "true", "--token", "--verbose", "x"]),
    ],
)
def test_what_only_looks_like_a_secret_passes(key, value):
    assert validation.validate({"cluster": CLUSTER, "gpu": {"values": {key: value}}}).refused == []


def test_what_is_only_named_is_no_secret_in_clear():
    values = {"env": [{"name": "PORT", "value": "80"}, {"name": "A_TOKEN", "valueFrom": {}}]}
    values |= {"existingSecret": "s", "imagePullSecrets": "s", "token": ""}
    assert validation.validate({"cluster": CLUSTER, "gpu": {"values": values}}).refused == []


def test_files_are_put_back_unless_somebody_else_wrote_them(tmp_path):
    mine, theirs = tmp_path / "mine.yaml", tmp_path / "theirs.yaml"
    edits = [Edit(mine, "before", "after"), Edit(theirs, "before", "after")]
    mine.write_text("after")
    theirs.write_text("something else")
    assert restore(edits) == ["theirs.yaml"]
    assert mine.read_text() == "before"
    assert theirs.read_text() == "something else"


def test_kubeconfigs_are_ignored_by_git():
    asked = ["git", "check-ignore", "--no-index", "--quiet", "ml.kubeconfig"]
    assert subprocess.run(asked, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("010", "another number for Pulumi"),
        ("0o17", "another number for Pulumi"),
        ("0x1F", "another number for Pulumi"),
        ("0O1", "another number for Pulumi"),
        ("0o-17", "another number for Pulumi"),
        (".8e1", "another number for Pulumi"),
        ('"\\nx"', "begins with a line break"),
        ("1_000", "without _"),
        ("1E_4", "without _"),
        ("-_.9", "without _"),
        ("4e1282", "no number"),
        ('!!bool "yes"', "the type"),
        ("! 1", "the type"),
        ("&a/b 1", "the anchor"),
        ("\u20282", "line separator"),
        ("12:30:45", "in quotes"),
        ("2026-11-21", "the date"),
        (".nan", "no number"),
        ("-.inf", "no number"),
        ("123456789012345678", "more digits"),
        ("!!binary R0lGOD", "the type"),
        ("!custom {a: 1}", "the type"),
        ('"\\0"', "control character"),
        ('"\\ud800"', "lone surrogate"),
        ("{2: 3}", "no text"),
        ("{null: 3}", "no text"),
        ("&x [*x]", "contains itself"),
        ("[" * 3000, "levels deep"),
    ],
)
def test_an_odd_value_is_refused_by_its_line(value, said):
    with pytest.raises(StackFileError) as refusal:
        parse(f"{HEAD}  kai-fleet:gpu: {{values: {{a: {value}}}}}\n", "Pulumi.prod.yaml")
    assert said in str(refusal.value)
    assert "line 3" in str(refusal.value) or "kai-fleet:gpu.values" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<<<<<<< HEAD\nconfig:\n  a: 1\n=======\n", "line 1: has a merge conflict"),
        ("config:\n\tkai-fleet:teams: {}\n", "line 2: has a tab"),
        ("config:\n  kai-fleet:teams:\n      ml: {}\n    b: {}\n", "line 4: is indented otherwise"),
        ("config:\n  a: 1\n    b: 2\n", "line 3: a key where none can be"),
        ("config:\n  kai-fleet:teams:\n    ml: {}\n    ml: {}\n", "line 4: has the key ml again"),
        ("config:\n  a:\n    <<<<<<< HEAD\n    b: 1\n", "line 3: has a merge conflict"),
        ("config:\n  a: 1\n=======\n  a: 2\n", "line 3: has a merge conflict (=======)"),
        ("config:\n  a: 1\n||||||| base\n  a: 2\n", "line 3: has a merge conflict (|||||||)"),
        ("config:\n  gpus:8\n  a: 1\n", "line 2: has no space after the colon; write gpus: 8"),
        ("config:\n  a: 1\n  gpus:8\n", "line 3: has no space after the colon; write gpus: 8"),
        ("config:\n  a: 1\n  gpus = 8\n", "line 3: is no key with a value; write `key: value`"),
        ("config:\n  a: 'x\n  b: 1\n", "line 2: has a quote that is not closed"),
        ("config:\n  a: {x: 1\n  b: 1\n", "line 2: has a { or [ that is not closed"),
        ("config:\n  a: {x: 1}}\n", "line 2: has a } or ] too many"),
        ("config:\n  a: {x: ", "line 2: has a { or [ that is not closed"),
        ("config:\n  a: @x\n", "line 2: begins a value with a character of YAML's own"),
        ("config:\n  a: *\n", "line 2: has * or & without a name"),
        ("config:\n  a: *x\n", "line 2: names *x, and no &x stands above it"),
        ("config: {}\n---\nconfig: {}\n", "line 2: begins a second document (---); keep one"),
        (
            "config:\n  a:\u00a01\n  b: 1\n",
            "line 2: has a character that looks like a space (U+00A0)",
        ),
        ("config:\n  a: x\0y\n", "line 2: has a control character"),
        ("Config:\n  kai-fleet:teams: {}\n", "Config is not read; write config"),
        (
            "config:\n  kai-fleet:gpu: {}\nkai-fleet:teams: {}\n",
            "kai-fleet:teams is not below config",
        ),
    ],
)
def test_a_slip_in_the_yaml_says_what_to_do(text, said):
    with pytest.raises(StackFileError) as refusal:
        parse(text, "Pulumi.prod.yaml")
    assert str(refusal.value).startswith("Pulumi.prod.yaml")
    assert said in re.sub(r" column [0-9]+", "", str(refusal.value))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; write config: and keys such as kai-fleet:cluster below it"),
        ("# nothing yet\n", "is empty; write config:"),
        ("# ours\n- a\n- b\n", "line 2 column 1: is a list, not a stack file; write config:"),
        ("---\nhello\n", "line 2 column 1: is one value, not a stack file; write"),
        ("a: 1\nconfig: [b]\n", "line 2 column 1: is not a stack file, config has no keys;"),
        ("config:\n\tkai-fleet:teams: {}\n", "line 2 column 1: has a tab; indent with spaces"),
        ("config:\n  a: 1\n  a: 2\n", "line 3 column 3: has the key a again"),
        ("config:\n  a: *x\n", "line 2 column 6: names *x, and no &x stands above it"),
        ("config:\n  a: &x [*x]\n", "line 2 column 10: contains itself (*x)"),
        ("config:\n  gpus:8\n  a: 1\n", "line 2 column 7: has no space after the colon"),
        ("config:\n  a: 010\n", "line 2 column 6: has '010', which is another number"),
        ("config:\n  a: x\0y\n", "line 2 column 7: has a control character"),
    ],
)
def test_the_place_in_the_file_is_named(text, said):
    with pytest.raises(StackFileError) as refusal:
        parse(text, "Pulumi.prod.yaml")
    assert str(refusal.value).startswith(f"Pulumi.prod.yaml {said}")


def test_anchors_are_read_as_the_engine_reads_them():
    text = f"{HEAD}  kai-fleet:teams:\n    a: &a {{gpus: 1}}\n    b: *a\n    c: {{<<: *a}}\n"
    teams = parse(text, "Pulumi.prod.yaml")["teams"]
    assert teams == {name: {"gpus": 1} for name in "abc"}


BAD_FILES = {
    "empty": b"",
    "list": b"- a\n",
    "not UTF-8": b"config:\n  a: \xe9\n",
    "tab": b"config:\n\tkai-fleet:teams: {}\n",
    "twice": b"config:\n  a: 1\n  a: 2\n",
    "no anchor": b"config:\n  a: *x\n",
}


@pytest.mark.parametrize("bad", BAD_FILES)
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("plan", 2),
        ("teams", 1),
        ("team switch ml v0.16.8", 1),
        ("team add new", 1),
        ("team remove ml --yes", 1),
        ("team rollback ml", 1),
        ("team kubeconfig ml", 1),
        ("releases", 1),
        ("doctor", 2),
        ("report --html report.html", 1),
        ("team credentials ml", 1),
    ],
)
def test_every_command_says_what_is_wrong_with_the_file(project, command, code, bad):
    (project.root / "Pulumi.lab.yaml").write_bytes(BAD_FILES[bad])
    ran = project.run(*command.split(), "--stack", "lab")
    assert ran.code == code, ran.out
    said = f"{ran.out}{ran.refusal}"
    place = "is empty" if bad == "empty" else "line "
    assert f"Pulumi.lab.yaml {place}" in said
    assert "Traceback" not in said
    assert project.engine.asked == []


def test_a_file_that_is_none_is_said_by_its_path_or_line(tmp_path):
    with pytest.raises(StackFileError, match=f"{tmp_path}/x.yaml is not there$"):
        reading.read(tmp_path / "x.yaml")
    with pytest.raises(StackFileError, match=f"{tmp_path} cannot be read: Is a directory$"):
        reading.read(tmp_path)
    (tmp_path / "y.yaml").write_bytes(b"config:\n  a: \xe9\n")
    with pytest.raises(StackFileError, match="line 2 column 6: is no UTF-8; save it as UTF-8"):
        reading.read(tmp_path / "y.yaml")


TEAM = {"scheduler": {"mode": "default"}, "gpus": 1}
HOST = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"teams": {"a": {"sheduler": {"mode": "default"}}}},
            "teams.a.sheduler: key sheduler: is an unknown key; write scheduler",
        ),
        (
            {"cluster": {"name": "c", "contxt": "x"}},
            "cluster.contxt: key contxt: is an unknown key; write context",
        ),
        (
            {"teams": {"a": {"scheduler": {"mode": "virtual", "verson": "v0.16.8"}}}},
            "teams.a.scheduler.verson: key verson: is an unknown key; write version",
        ),
        ({"teams": {"a": {**TEAM, "GPUs": 1}}}, "key GPUs: is an unknown key; write gpus"),
        (
            {"cluster": {"name": "c", "context": ""}},
            "cluster.context: key context: is empty; write a value or drop the key",
        ),
        ({"kai": {"version": 0.16}}, "is 0.16; write a version such as v0.16.8"),
        ({"vcluster": {"version": 0.36}}, "is 0.36; write a version such as v0.36.1"),
        ({"gpu": {"version": 25}}, 'is 25; write it in quotes: "25"'),
        (
            {**HOST, "queues": {"a": {"gpu": 1, "preemptMinRuntime": 30}}},
            "is 30; write a duration such as 4h",
        ),
        (
            {"teams": {"a": {**TEAM, "nodePool": {"pool": True}}}},
            'is True; write it in quotes: "true"',
        ),
        ({"removed": [7]}, 'key 0: is 7; write it in quotes: "7"'),
        ({**HOST, "queues": {"a": {"cpu": "16Gi"}}}, "16Gi is 17,179,869,184 cores"),
        ({**HOST, "queues": {"a": {"memory": "64m"}}}, "write 64Gi or 64M"),
        ({"gpu": {"systemPriorities": True}}, "with provider none nothing is installed that needs"),
        ({"teams": {"host": TEAM}}, "teams.host: key host: is what findings and metrics call"),
        ({"teamStacks": {"host": {"gpus": 1}}}, "key host: is what findings and metrics call"),
    ],
)
def test_a_slip_in_a_key_or_a_value_is_one_sentence(raw, said):
    (problem,) = validation.validate({"cluster": CLUSTER, **raw}).refused
    assert said in str(problem)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"teams": {"a": {**TEAM, "storageClass": "fast"}}},
            "it belongs in vcluster: write kai-fleet:teams.a.vcluster.storageClass",
        ),
        (
            {"teams": {"a": {**TEAM, "storageclass": "fast"}}},
            "it belongs in vcluster: write kai-fleet:teams.a.vcluster.storageClass",
        ),
        (
            {"gpu": {"provider": "none", "tolerations": []}},
            "it belongs at the top: write kai-fleet:tolerations",
        ),
        (
            {"teams": {"a": {"scheduler": {"mode": "default", "gpus": 1}}}},
            "it belongs in a: write kai-fleet:teams.a.gpus",
        ),
        (
            {"teams": {"a": {**TEAM, "version": "v0.16.8"}}},
            "it belongs in scheduler or in vcluster: write kai-fleet:teams.a.scheduler.version or"
            " kai-fleet:teams.a.vcluster.version",
        ),
        (
            {"teams": {"a": {**TEAM, "isolation": {"internet": False}}}},
            "it belongs in network: write kai-fleet:teams.a.isolation.network.internet",
        ),
        (
            {"teams": {"a": {**TEAM, "sources": {}}}},
            "it belongs at the top: write kai-fleet:sources",
        ),
        ({"teams": {"a": {**TEAM, "nodesPool": {}}}}, "is an unknown key; write nodePool"),
        ({"teams": {"a": {**TEAM, "colour": 1}}}, "is an unknown key; the keys here are "),
        (
            {"teamStacks": {"a": {"scheduler": {"mode": "default"}}}},
            "it belongs to the team's own stack file: write kai-fleet:team.scheduler there",
        ),
        (
            {"teamStacks": {"a": {"storageClass": "fast"}}},
            "it belongs to the team's own stack file: write kai-fleet:team.vcluster.storageClass",
        ),
    ],
)
def test_a_key_of_another_place_is_told_with_the_section_it_belongs_to(raw, said):
    (problem,) = validation.validate({"cluster": CLUSTER, **raw}).refused
    assert said in str(problem)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (
            "parentQueue",
            "to the platform's stack file: write kai-fleet:teamStacks.NAME.parentQueue",
        ),
        ("guard", "to the platform's stack file: write kai-fleet:guard there"),
        ("storageClass", "in vcluster: write kai-fleet:team.vcluster.storageClass"),
    ],
)
def test_in_a_team_stack_a_key_of_the_platform_is_told_so(key, said):
    team = {"name": "a", **TEAM, key: "x"}
    facts = platform_facts(load({**HOST, "teamStacks": {"a": {"gpus": 1}}}).settings)
    raw = {"platform": {"stack": "prod"}, "team": team}
    (problem,) = validation.validate(raw, facts_of=lambda _: facts).refused
    assert f"is an unknown key; it belongs {said}" in str(problem)


def test_a_label_without_a_space_after_its_colon_says_so():
    raw = {"cluster": CLUSTER, "teams": {"a": {**TEAM, "nodePool": {"kai-fleet/pool:ml": None}}}}
    said = str(validation.validate(raw).refused[0])
    assert "has no space after its colon; write kai-fleet/pool: ml" in said


@pytest.mark.parametrize(
    "value", ["0", "-1", "0.5", "1e3", "'010'", "yes", "v1.2.3", "1.30.4", "a_1", "!!str 1"]
)
def test_plain_values_pass(value):
    assert "gpu" in parse(f"{HEAD}  kai-fleet:gpu: {{values: {{a: {value}}}}}\n", "x")


def test_anchors_that_stand_for_billions_are_refused_at_once():
    lines = ["  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    with pytest.raises(StackFileError, match="stands for more than"):
        parse("config:\n" + "\n".join(lines), "Pulumi.prod.yaml")


@pytest.mark.parametrize("text", ["१२", "٣"])
def test_digits_of_other_scripts_are_no_numbers(text):
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, "queues": {"a": {"gpu": text}}}
    (problem,) = validation.validate(raw).refused
    assert "is no Kubernetes quantity" in problem.message
    raw["kai"] = {"version": f"v0.{text}.8"}
    assert any(p.path == "kai-fleet:kai.version" for p in validation.validate(raw).refused)


@pytest.mark.parametrize("text", ["a\nb", "a\u202eb", "a\x1b[31mb", "9" * 5000])
def test_a_message_about_an_odd_text_is_one_short_line(text):
    queues = {"a": {"gpu": 1, "preemptMinRuntime": text}}
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, "queues": queues}
    (problem,) = validation.validate(raw).refused
    assert str(problem).isprintable() and len(str(problem)) < 1000


@pytest.mark.parametrize("duration", ["2562048h", "9" * 40 + "h", "9" * 5000 + "s"])
def test_durations_that_overflow_are_refused(duration):
    queues = {"a": {"gpu": 1, "preemptMinRuntime": duration}}
    raw = {"cluster": CLUSTER, "kai": {"version": "v0.16.8"}, "queues": queues}
    (problem,) = validation.validate(raw).refused
    assert "2562047h" in problem.message
    raw["queues"] = {"a": {"gpu": 1}}
    raw["kai"]["fairshare"] = {"window": duration}
    (problem,) = validation.validate(raw).refused
    assert "2562047h" in problem.message


def test_every_shipped_file_is_read():
    for stack in reading.stacks():
        assert reading.read(reading.path_of(stack))


@pytest.mark.parametrize(
    ("cluster", "refused"),
    [
        ({"context": "prod"}, "context: cluster c: is prod"),
        ({"kind": {}}, "kind: cluster c: makes a cluster of its own"),
        ({"kubeconfig": "[secret]"}, "kubeconfig: cluster c: is of another cluster"),
        ({"context": "kai-fleet-sandbox"}, None),
    ],
)
def test_the_sandboxs_state_takes_no_stack_of_another_cluster(
    tmp_path, monkeypatch, cluster, refused
):
    """In a shell after `eval "$(fleet sandbox env)"` prod's state would go there."""
    in_the_sandboxs_shell(tmp_path, monkeypatch, f"file://{tmp_path}/state")
    problems = sandbox_problems(cluster)
    if refused is None:
        assert problems == []
        return
    (problem,) = problems
    assert "and make down deletes it" in problem
    assert f"kai-fleet:cluster.{refused}" in problem


@pytest.mark.parametrize(
    ("cluster", "refused"),
    [
        ({"context": "prod"}, True),
        ({"kind": {}}, True),
        ({"kubeconfig": "[secret]"}, False),  # whose it is cannot be read
        ({"context": "kai-fleet-sandbox"}, False),
    ],
)
def test_the_sandboxs_plugins_serve_no_other_cluster(tmp_path, monkeypatch, cluster, refused):
    """After `unset PULUMI_BACKEND_URL` alone its stand-ins would still be used."""
    in_the_sandboxs_shell(tmp_path, monkeypatch, "s3://states")
    if refused:
        (problem,) = sandbox_problems(cluster)
        assert "the sandbox's plugins, a stand-in among them, would run" in problem
        monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    assert sandbox_problems(cluster) == []


def in_the_sandboxs_shell(tmp_path, monkeypatch, backend):
    (tmp_path / "kubeconfig").touch()
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "pulumi-home"))
    monkeypatch.setenv("PULUMI_BACKEND_URL", backend)


def sandbox_problems(cluster):
    settings = load({"cluster": {"name": "c", **cluster}}).settings
    return [str(problem) for problem in sandbox_variables(settings)]
