"""Registries' credentials under the real engine: each Secret, a new password, and the end.

A ciphertext that somebody copied to another key is decrypted for nobody.
"""

import base64
import json

import pytest
import yaml
from kubernetes import client
from pulumi import automation

from kai_fleet_cli.engine.operation import POLICY_PACK
from tests.engine.product import Product, api, project
from tests.engine.sandbox_commands import pulumi

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

MIRROR, OWN = "mirror.example.com", "own.example.com:5000/ml"
STACK_PULL_SECRET, TEAM_PULL_SECRET = "kai-fleet-registries", "kai-fleet-team-registries"
ON_HOST = {
    ("nvidia-device-plugin", STACK_PULL_SECRET): MIRROR,
    ("team-ml", STACK_PULL_SECRET): MIRROR,
    ("team-ml", TEAM_PULL_SECRET): OWN,
    ("kai-scheduler", STACK_PULL_SECRET): MIRROR,
    ("kai-resource-reservation", STACK_PULL_SECRET): MIRROR,
}


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("registries") / "project")
    product = Product.of("sandbox-host", sandbox, directory)

    def one_team(config):
        config["kai-fleet:gpu"]["provider"] = "device-plugin"
        ml = {**config["kai-fleet:teams"]["vision"], "registries": {OWN: {"username": "ml"}}}
        config["kai-fleet:teams"] = {"ml": ml}
        config["kai-fleet:registries"] = {MIRROR: {"username": "robot"}}

    product.edit(one_team, named=False)
    write(product, f'registries["{MIRROR}"]', "first-Of-Mirror")
    write(product, f'teams.ml.registries["{OWN}"]', "first-Of-Team")
    return product


def write(product, place, password):
    """As `pulumi config set --secret --path` does."""
    value = automation.ConfigValue(password, secret=True)
    product.stack.set_config(f"kai-fleet:{place}.password", value, path=True)


def found(cluster, places):
    """The UID and the password of each Secret, which has its type."""
    result = {}
    for (namespace, name), registry in places.items():
        secret = client.CoreV1Api(cluster).read_namespaced_secret(name, namespace)
        assert secret.type == "kubernetes.io/dockerconfigjson"
        auths = json.loads(base64.b64decode(secret.data[".dockerconfigjson"]))["auths"]
        result[namespace, name] = secret.metadata.uid, auths[registry]["password"]
    return result


def test_each_secret_is_made_and_kept_up_to_date_in_place(product, host):
    first = product.up()
    inside = api(first.outputs["kubeconfigs"]["ml"])
    every = client.CoreV1Api(inside).list_secret_for_all_namespaces().items
    assert not [secret for secret in every if secret.type == "kubernetes.io/dockerconfigjson"]
    before = found(host, ON_HOST)
    by_name = {STACK_PULL_SECRET: "first-Of-Mirror", TEAM_PULL_SECRET: "first-Of-Team"}
    assert all(password == by_name[name] for (_, name), (_, password) in before.items())

    write(product, f'registries["{MIRROR}"]', "second-Of-Mirror")
    second = product.up()
    changed = {name: op for name, op in second.changed.items() if not name.startswith("Stack ")}
    assert set(changed.values()) == {"update"}
    assert {name.split()[0] for name in changed} == {"Secret"} and len(changed) == 4
    after = found(host, ON_HOST)
    by_name[STACK_PULL_SECRET] = "second-Of-Mirror"
    assert all(password == by_name[name] for (_, name), (_, password) in after.items())
    assert {place: uid for place, (uid, _) in after.items()} == {
        place: uid for place, (uid, _) in before.items()
    }
    state = json.dumps(product.stack.export_stack().deployment)
    for text in (first.printed, second.printed, state):
        assert "Of-Mirror" not in text and "Of-Team" not in text


COPIED = (
    "kai-fleet:workloads.ml.0: key 0: is encrypted, at a key for",
    "kai-fleet:registries.evil.example.com.password: key password: is the same ciph",
    "kai-fleet:labels.value.read: key read: is encrypted in Pulumi.yaml",
)


@pytest.fixture
def copied(product):
    """The ciphertext of the team's password where others would read it, until the test ends."""
    files = {file: file.read_text() for file in (product.file, product.file.parent / "Pulumi.yaml")}
    stack, project_file = map(yaml.safe_load, files.values())
    config = stack["config"]
    ciphertext = config["kai-fleet:teams"]["ml"]["registries"][OWN]["password"]
    config["kai-fleet:workloads"] = {"ml": [ciphertext]}
    evil = {"username": "u", "password": ciphertext}
    config["kai-fleet:registries"]["evil.example.com"] = evil
    project_file["config"] = {"kai-fleet:labels": {"value": {"read": ciphertext}}}
    for file, content in zip(files, (stack, project_file), strict=True):
        file.write_text(yaml.safe_dump(content))
    yield
    for file, text in files.items():
        file.write_text(text)


@pytest.mark.parametrize("pack", [(), ("--policy-pack", POLICY_PACK)], ids=["program", "pack"])
def test_a_copied_ciphertext_ends_the_preview(product, sandbox, copied, pack):
    ran = pulumi(sandbox, product.file.parent, "preview", "--stack", "sandbox-host", *pack)
    reported = ran.stdout + ran.stderr
    assert ran.returncode != 0
    assert [words for words in COPIED if words not in reported] == [], reported
    assert "first-Of-Team" not in reported
    assert ("program exited" in reported) == (not pack), "a pack is asked before the program"


def test_without_credentials_all_of_them_go(product, host):
    def without(config):
        config.pop("kai-fleet:registries")
        config["kai-fleet:teams"]["ml"].pop("registries")

    product.edit(without)
    product.up()
    every = client.CoreV1Api(host).list_secret_for_all_namespaces().items
    assert not [secret for secret in every if secret.type == "kubernetes.io/dockerconfigjson"]
