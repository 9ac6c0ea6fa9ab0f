"""A secret stands only at a key for secrets, for one purpose and one team: asked by all who ask.

Somebody who edits a stack file and cannot decrypt copies a ciphertext to where he reads it.
"""

import base64
import copy
import json
import shlex
from contextvars import ContextVar

import pulumi
import pytest
import yaml
from pulumi.runtime import config

from docs.reference import schema
from kai_fleet.ownership.deployed import Deployed
from kai_fleet_cli.diff.report import compare
from kai_fleet_cli.display import as_text
from kai_fleet_cli.display.as_markdown import diff_page
from kai_fleet_cli.plan import offline
from kai_fleet_stack import validation
from kai_fleet_stack.settings.secrets import OUTPUT, digests_since, mistakes, takes_secret
from tests.unit.golden.compare import shown
from tests.unit.golden.history import git

TEXTS = {}  # what each ciphertext is of
MARK = "sealed"


def secure(text=f"{MARK} text"):
    """As the engine encrypts it; each time with another nonce."""
    nonce, content = f"nonce {len(TEXTS):06}", f"content: {text}"
    spelled = [base64.b64encode(entry.encode()).decode() for entry in (nonce, content)]
    created = f"v1:{spelled[0]}:{spelled[1]}"
    TEXTS[created] = text
    return {"secure": created}


def team(pool, **more):
    scheduler = {"mode": "virtual", "version": "v0.16.8"}
    queues = {"train": {"gpu": {"quota": 2}}}
    own = {"scheduler": scheduler, "nodePool": {"pool": pool}, "gpus": 2, "queues": queues}
    return own | {"registries": {f"{pool}.example.com": {"username": "u", **more}}}


def stack():
    return {
        "kai-fleet:cluster": {"name": "lab", "kubeconfig": secure()},
        "kai-fleet:registries": {"all.example.com": {"username": "u", "password": secure()}},
        "kai-fleet:teams": {
            "ml": team("ml", password=secure()),
            "nlp": team("nlp", password=secure()),
        },
        "other:token": secure(),
    }


def password(own, name="ml"):
    return own["kai-fleet:teams"][name]["registries"][f"{name}.example.com"]


NO_KEY, SAME = "at a key for no secret", "is the same ciphertext as kai-fleet:"
KUBECONFIG, ML, NLP = (
    ("kai-fleet:cluster", "kubeconfig"),
    *(
        ("kai-fleet:teams", name, "registries", f"{name}.example.com", "password")
        for name in ("ml", "nlp")
    ),
)


def at(own, place):
    for key in place:
        own = own[key]
    return own


def put(own, place, value):
    *above, last = place
    for key in above:
        own = own.setdefault(key, {})
    own[last] = value


def copied(source, *place, says=NO_KEY):
    """The attack that copies a ciphertext to a place."""

    def attack(own):
        put(own, place, at(own, source))
        return ".".join(place), says

    return attack


def to_a_list(own):
    own["kai-fleet:sources"] = {"images": [own["other:token"]]}
    return "kai-fleet:sources.images.0", NO_KEY


def a_whole_section(own):
    own["kai-fleet:labels"] = secure('{"a": "b"}')
    return "kai-fleet:labels", NO_KEY


def spelled_otherwise(own):
    """Go's reader of base64 drops line breaks and the bits that are left over."""
    version, nonce, content = at(own, ML)["secure"].split(":")
    rest = content.rstrip("=")
    last = chr(ord(rest[-1]) + 1) if len(rest) < len(content) else rest[-1]
    again = f"{version}:{nonce[:4]}\n{nonce[4:]}:{rest[:-1]}{last}{content[len(rest) :]}"
    TEXTS[again] = TEXTS[at(own, ML)["secure"]]
    put(own, NLP, {"secure": again})
    return ".".join(NLP), f"{SAME}teams.ml"


VALUES = ("kai-fleet:teams", "nlp", "scheduler", "values", "admission", "certSecretName")
ATTACKS = {
    "to a label": copied(ML, "kai-fleet:labels", "read"),
    "to chart values": copied(KUBECONFIG, *VALUES),
    "to a user's name": copied(ML, *NLP[:-1], "username"),
    "to another team": copied(ML, *NLP, says=f"{SAME}teams.ml.registries.ml.example.com.password"),
    "to another purpose": copied(KUBECONFIG, *NLP, says=f"{SAME}cluster.kubeconfig"),
    "to another program": copied(
        KUBECONFIG, "kubernetes:kubeconfig", says=f"{SAME}cluster.kubeconfig"
    ),
    **{each.__name__: each for each in (to_a_list, a_whole_section, spelled_otherwise)},
}


def decrypted(value):
    if isinstance(value, dict):
        if value.keys() == {"secure"}:
            return TEXTS[value["secure"]]
        return {key: decrypted(item) for key, item in value.items()}
    return [decrypted(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project of the stack that is set in this process, by whatever test was before."""
    (tmp_path / "Pulumi.yaml").write_text("name: kai-fleet\n")
    name = f"Pulumi.{pulumi.get_stack()}.yaml"

    class Folder:
        path, file = tmp_path, tmp_path / name

        def write(self, own, file=None):
            text = yaml.dump({"config": own}, Dumper=Plain)
            (tmp_path / (file or name)).write_text(text)

        def plan(self):
            found = offline.plan(pulumi.get_stack(), self.file).problems
            return [f"{entry.path}: {entry.message}" for entry in found]

        def program(self, own=None, known=None):
            """What the running program says, of what its engine decrypted.

            `known` is what the update before it had of this.
            """
            own = own or yaml.safe_load(self.file.read_text())["config"]
            whole = {key: decrypted(value) for key, value in own.items()}
            texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in whole.items()}
            secret = [key for key in own if whole[key] != own[key]]
            monkeypatch.setenv("PULUMI_CONFIG", json.dumps(texts))
            monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps(secret))
            monkeypatch.setattr(config, "CONFIG", ContextVar("config", default=None))
            monkeypatch.setattr(validation, "ROOT", tmp_path)
            try:
                outputs = {OUTPUT: known} if known else {}
                validation.checked_settings(Deployed(outputs=outputs), validation.no_platform)
            except pulumi.RunError as why:
                return str(why).splitlines()[1:]
            return []

    return Folder()


class Plain(yaml.SafeDumper):
    """Without anchors: a copied ciphertext is written out."""

    def ignore_aliases(self, data):
        return True


USERS = ("plan", "program")


@pytest.mark.parametrize("user", USERS)
def test_a_secret_at_each_of_its_keys_passes(folder, user):
    folder.write(stack())
    assert getattr(folder, user)() == []


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_ciphertext_elsewhere_is_refused_by_its_key(folder, user, attack):
    own = stack()
    path, says = ATTACKS[attack](own)
    folder.write(own)
    lines = [line for line in getattr(folder, user)() if path in line and says in line]
    assert len(lines) == 1
    assert "write it in clear" in lines[0] or "pulumi config set --secret --path" in lines[0]
    assert MARK not in lines[0]


@pytest.mark.parametrize("user", USERS)
def test_a_ciphertext_of_another_stack_is_refused(folder, user):
    other = stack()
    folder.write(other, "Pulumi.elsewhere.yaml")
    own = stack()
    own["kai-fleet:cluster"]["kubeconfig"] = other["kai-fleet:cluster"]["kubeconfig"]
    folder.write(own)
    (line,) = getattr(folder, user)()
    assert "same ciphertext as kai-fleet:cluster.kubeconfig in Pulumi.elsewhere.yaml" in line


@pytest.mark.parametrize("user", USERS)
def test_the_defaults_of_all_stacks_have_no_secret(folder, user):
    own = stack()
    folder.write(
        {"kai-fleet:kai": {"value": {"version": password(own)["password"]}}}, "Pulumi.yaml"
    )
    folder.write(own)
    (line,) = getattr(folder, user)()
    assert "kai-fleet:kai.value.version" in line and "is encrypted in Pulumi.yaml" in line


def test_what_an_environment_gives_in_secret_is_no_secret_of_another_key(folder):
    """The engine says of a whole key that it is secret: so all else stands in the stack's file."""
    own = stack()
    own["kai-fleet:registries"]["all.example.com"].pop("password")
    folder.write(own)
    merged = copy.deepcopy(own)
    merged["kai-fleet:registries"]["all.example.com"]["password"] = secure()
    assert folder.program(merged) == []
    merged["kai-fleet:teams"]["nlp"]["scheduler"]["values"] = {"global": secure()}
    (line,) = folder.program(merged)
    assert "kai-fleet:teams.nlp.scheduler.values: key values: is encrypted" in line


def test_a_file_that_the_engine_alone_reads_has_no_secrets(folder):
    own = stack()
    folder.write(own)
    folder.file.write_text(folder.file.read_text() + "  other:number: 010\n")
    lines = folder.program(own)
    assert {line.split(": ")[0].strip() for line in lines} == {
        f"kai-fleet:{key}" for key in ("cluster", "registries", "teams")
    }


def test_a_secret_in_clear_is_seen_beside_one_that_is_encrypted(folder):
    """The engine tells a program of a key only that some part of it is encrypted."""
    own = stack()
    password(own)["password"] = "hunter2"
    folder.write(own)
    (line,) = folder.program()
    place = 'kai-fleet:teams.ml.registries["ml.example.com"].password'
    assert f"'{place}' --stack {pulumi.get_stack()} " in f"{line} "
    assert "hunter2" not in line


def test_the_keys_for_secrets_are_those_of_the_models():
    definitions = schema()["$defs"]
    held = {
        (name, key)
        for name, definition in definitions.items()
        for key, field in definition.get("properties", {}).items()
        if '"password"' in json.dumps(field)
    }
    assert {key for _, key in held} == {"kubeconfig", "password", "dataSource"}
    access = "registries.R.password", "vcluster.store.dataSource"
    teams = (f"{team}.{key}" for team in ("team", "teams.T") for key in access)
    for place in ("cluster.kubeconfig", *access, *teams):
        assert takes_secret(tuple(place.split(".")))
    for place in ("teams.T.kubeconfig", "labels.password", "teams.T.scheduler.values.password"):
        assert not takes_secret(tuple(place.split(".")))


@pytest.fixture
def base(folder):
    """The stack at a commit, with code that makes no plan: its file is compared."""
    own = stack()
    folder.write(own)
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"]):
        git(folder.path, *command)
    return own


def compared(folder, own):
    folder.write(own)
    return compare(pulumi.get_stack(), "HEAD", folder.path)


def test_a_diff_names_the_keys_whose_secrets_differ(folder, base):
    own = copy.deepcopy(base)
    own["kai-fleet:cluster"]["kubeconfig"] = secure()
    own["kai-fleet:registries"].pop("all.example.com")
    put(own, (*ML[:-2], "new.example.com"), {"username": "u", "password": secure()})
    found = compared(folder, own)
    assert [(item.subject, item.words) for item in found.summary["secret"]] == [
        (
            "kai-fleet:cluster.kubeconfig",
            "is encrypted anew: only the engine can say if it changed",
        ),
        ("kai-fleet:registries.all.example.com.password", "has no secret any more"),
        ("kai-fleet:teams.ml.registries.new.example.com.password", "has a secret now"),
    ]
    assert found.exit_code == 3
    page, text = diff_page(found), " ".join(shown(as_text.show_diff, found).split())
    assert "kai-fleet:teams.ml.registries.new.example.com.password has a secret now" in page
    assert "kai-fleet:registries.all.example.com.password has no secret any more" in text


def to_another_account(own):
    password(own, "nlp")["password"] = password(own).pop("password")
    own["kai-fleet:teams"]["ml"].pop("registries")
    return "kai-fleet:teams.nlp.registries.nlp.example.com.password"


def with_the_registrys_name(own):
    accounts = own["kai-fleet:registries"]
    accounts["evil.example.com"] = accounts.pop("all.example.com")
    return "kai-fleet:registries.evil.example.com.password"


@pytest.mark.parametrize("move", [to_another_account, with_the_registrys_name])
def test_a_diff_refuses_a_ciphertext_that_moved(folder, base, move):
    """Only there it is seen: the file as it is has each once."""
    own = copy.deepcopy(base)
    path = move(own)
    found = compared(folder, own)
    (problem,) = found.now.problems
    assert (problem.path, found.exit_code, found.verdict) == (path, 1, "refused")
    assert "is a ciphertext that stood at kai-fleet:" in problem.message
    assert path in [item.subject for item in found.summary["secret"]]
    assert f"**refused** `config` `{path}`" in diff_page(found)
    assert MARK not in diff_page(found) and "v1:" not in diff_page(found)


def test_a_diff_refuses_a_ciphertext_that_moved_to_another_stack(folder, base):
    own = copy.deepcopy(base)
    taken = password(own).pop("password")
    own["kai-fleet:teams"]["ml"].pop("registries")
    folder.write(own)
    folder.write({**stack(), "other:token": taken}, "Pulumi.elsewhere.yaml")
    (problem,) = compare("elsewhere", "HEAD", folder.path).now.problems
    assert problem.path == "other:token"
    assert f"ml.example.com.password in {folder.file.name}" in problem.message


def swapped(own):
    one, other = password(own), password(own, "nlp")
    one["password"], other["password"] = other["password"], one["password"]
    return ".".join(ML)


def to_another_program(own):
    own["kubernetes:kubeconfig"] = own["kai-fleet:cluster"].pop("kubeconfig")
    own["kai-fleet:cluster"]["context"] = "lab"
    return "kubernetes:kubeconfig"


def written_otherwise(own):
    to_another_account(own)
    own["kai-fleet:teams"]["ml"].update(registries={})
    put(own, NLP, {"secure": spelled(at(own, NLP)["secure"])})
    return ".".join(NLP)


def spelled(ciphertext):
    again = ciphertext.replace(":", ":\n")
    TEXTS[again] = TEXTS[ciphertext]
    return again


MOVES = (to_another_account, with_the_registrys_name, swapped, to_another_program)
MOVES += (written_otherwise,)


def updated(folder, own, known=None):
    """The outputs of an update with that file, that the one before it lets pass."""
    folder.write(own)
    assert folder.program(own, known) == []
    return digests_since(known or {}, folder.file)


@pytest.mark.parametrize("move", MOVES)
def test_an_update_refuses_a_ciphertext_that_moved(folder, move):
    """Plain `pulumi up`, too, and without a base to compare with: by the last update's outputs."""
    own = stack()
    known = updated(folder, own)
    path = move(own)
    folder.write(own)
    lines = [line for line in folder.program(own, known) if line.strip().startswith(f"{path}: ")]
    assert len(lines) == 1
    assert "is a ciphertext that an update had at kai-fleet:" in lines[0]
    assert "pulumi config set --secret --path" in lines[0]


@pytest.mark.parametrize("move", MOVES)
def test_it_remembers_what_an_update_had_before_the_last(folder, move):
    """As one from git's history: the file of the last update does not have it any more."""
    own = stack()
    known = updated(folder, own)
    again = stack()  # each is encrypted anew
    known = updated(folder, again, known)
    assert folder.program(again, known) == []
    folder.write(own)
    assert folder.program(own, known) == []  # an edit that is reverted
    path = move(own)
    folder.write(own)
    assert [line for line in folder.program(own, known) if path in line]


def test_outputs_of_a_stack_have_no_ciphertext(folder):
    own = stack()
    known = updated(folder, own)
    assert known.keys() == {
        "kai-fleet:cluster.kubeconfig",
        'kai-fleet:registries["all.example.com"].password',
        'kai-fleet:teams.ml.registries["ml.example.com"].password',
        'kai-fleet:teams.nlp.registries["nlp.example.com"].password',
        "other:token",
    }
    assert updated(folder, own, known) == known, "the second update changes no output"
    text = json.dumps(known)
    assert not [part for part in TEXTS for entry in part.split(":")[1:] if entry in text]
    for _ in range(120):
        own["other:token"] = secure()
        known = updated(folder, own, known)
    assert len(known["other:token"]) == 100


SALT = {"encryptionsalt": "v1:c2FsdA==:v1:bm9uY2U=:Y29udGVudA=="}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("key", ["encryptionsalt", "encryptedkey"])
def test_two_stacks_with_secrets_have_no_key_in_common(folder, user, key):
    """With the salt of another stack and its passphrase, what is encrypted there is decrypted here:
    also what its file does not have any more.
    """
    text = json.dumps({"config": stack(), key: SALT["encryptionsalt"]})
    (folder.path / "Pulumi.other.yaml").write_text(text)
    own = stack()
    folder.file.write_text(json.dumps({"config": own, key: SALT["encryptionsalt"]}))
    (line,) = getattr(folder, user)()
    assert f"{key}: " in line and f"same ciphertext as {key} in Pulumi.other.yaml" in line
    assert "set those secrets again" in line
    own = {"kai-fleet:cluster": {"name": "lab", "context": "lab"}}
    folder.file.write_text(json.dumps({"config": own, key: SALT["encryptionsalt"]}))
    assert getattr(folder, user)() == []


STYLES = {
    "flow": "{secure: X}",
    "in quotes": '{"secure": "X"}',
    "with an escape": '{"\\x73ecure": X}',
    "as a question": "\n        ? secure\n        : X",
    "folded": "\n        secure: >-\n          X",
    "an alias": "*a",
    "merged": "{<<: *a}",
    "an alias inside": "{secure: *b}",
}


@pytest.mark.parametrize("style", STYLES)
def test_a_ciphertext_is_one_in_every_style_of_yaml(folder, style):
    ciphertext = secure()["secure"]
    folder.file.write_text(
        "config:\n  kai-fleet:cluster: {name: lab, context: lab}\n"
        f"  other:token: &a {{secure: &b '{ciphertext}'}}\n"
        "  kai-fleet:registries:\n    r.example.com:\n      username: u\n"
        f"      password: {STYLES[style].replace('X', ciphertext)}\n"
    )
    lines = [line for line in folder.plan() if "same ciphertext as other:token" in line]
    assert len(lines) == 1 and "r.example.com" in lines[0]


def test_a_merge_in_quotes_is_refused_because_the_engine_has_a_key_of_that_name(folder):
    folder.file.write_text('config:\n  kai-fleet:labels: {"<<": {secure: X}, a: b}\n')
    (line,) = folder.plan()
    assert "has << in quotes" in line


KUBECONFIG_TEXT = "apiVersion: v1\nkind: Config\nclusters: []\n"
DATABASE = "mysql://root:hunter2@tcp(db.example.com:3306)/ml"
GOOGLE = '{"type": "service_account", "private_key": "hunter2", "token_uri": "https://example.com"}'
WRONG = {
    ("password", KUBECONFIG_TEXT),
    ("password", json.dumps(yaml.safe_load(KUBECONFIG_TEXT))),
    ("password", "{apiVersion: v1, kind: Config}"),
    ("password", DATABASE),
    ("password", "https://user:hunter2@example.com"),
    ("password", "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----\n"),
    ("dataSource", KUBECONFIG_TEXT),
    ("dataSource", "hunter2"),
    ("dataSource", GOOGLE),
    ("dataSource", f"{DATABASE}\n{KUBECONFIG_TEXT}"),
}


def with_secret(key, text):
    own = stack()
    if key == "password":
        password(own)["password"] = secure(text)
    else:
        store = {"type": "external", "dataSource": secure(text)}
        own["kai-fleet:teams"]["ml"]["vcluster"] = {"licensed": True, "store": store}
    return own


@pytest.mark.parametrize(("key", "text"), sorted(WRONG))
def test_a_secret_of_another_kind_is_refused_once_it_is_decrypted(folder, key, text):
    """One from git's history that nobody remembers: tenants read their registries' passwords."""
    own = with_secret(key, text)
    folder.write(own)
    assert folder.plan() == []  # nobody has decrypted it
    lines = folder.program(own)
    assert [line for line in lines if f".{key}: " in line and "; write " in line]
    assert "hunter2" not in "".join(lines) and "apiVersion" not in "".join(lines)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *(("password", text) for text in ("hunter2", "correct horse", "aGk=:/+", "x\n", GOOGLE)),
        *(("dataSource", text) for text in (DATABASE, "postgres://u:p@db:5432/ml?sslmode=require")),
    ],
)
def test_a_secret_of_its_own_kind_passes(folder, key, text):
    own = with_secret(key, text)
    folder.write(own)
    assert folder.program(own) == []


def test_the_command_has_a_path_that_shell_and_pulumi_read_as_the_key():
    """A key with a quote ends no argument, and its quotes count as characters of the key."""
    team = "a';touch x;'"
    raw = {"teams": {team: {"registries": {"ghcr.io": {"password": "x"}}}}}
    (finding,) = mistakes(raw, "prod")
    command = finding.message.partition("the command asks for the value: ")[2]
    words = shlex.split(command)
    path = words[words.index("--path") + 1]
    assert path == f'kai-fleet:teams["{team}"].registries["ghcr.io"].password'
    assert words[-2:] == ["--stack", "prod"]
