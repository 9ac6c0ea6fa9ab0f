"""Under the engine, a copied ciphertext is decrypted for nobody: preview ends before anything."""

import os
import subprocess

import pytest
import yaml
from pulumi import automation

from kai_fleet_cli.engine.runs import POLICY_PACK
from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.product import Product, project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

PASSWORD = "of-ml-alone"
PLACE = 'kai-fleet:teams.ml.registries["ml.example.com"].password'


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    folder = project(tmp_path_factory.mktemp("secret-keys") / "project")
    found = Product.of("sandbox", sandbox, folder)

    def one_team(config):
        config.pop("kai-fleet:teamStacks")
        ml = config["kai-fleet:teams"]["ml"]
        ml["registries"] = {"ml.example.com": {"username": "ml"}}
        config["kai-fleet:teams"] = {"ml": ml}

    found.edit(one_team, named=False)
    secret = automation.ConfigValue(PASSWORD, secret=True)
    found.stack.set_config(PLACE, secret, path=True)
    return found


@pytest.fixture
def preview(product, sandbox):
    """Plain `pulumi preview` of an edit of the file and of `Pulumi.yaml`, which are put back."""
    files = {file: file.read_text() for file in (product.file, product.file.parent / "Pulumi.yaml")}

    def run(change, *more):
        stack, project_file = map(yaml.safe_load, files.values())
        account = stack["config"]["kai-fleet:teams"]["ml"]["registries"]["ml.example.com"]
        change(stack["config"], project_file, account["password"])
        for file, content in zip(files, (stack, project_file), strict=True):
            file.write_text(yaml.safe_dump(content))
        path = os.pathsep.join([sandbox.env()["PATH"], str(ROOT / ".venv" / "bin")])
        return subprocess.run(
            ["pulumi", "preview", "--stack", "sandbox", "--non-interactive", *more],
            cwd=product.file.parent,
            env={**os.environ, **sandbox.env(), "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    yield run
    for file, text in files.items():
        file.write_text(text)


def to_a_pod(config, _, ciphertext):
    config["kai-fleet:workloads"] = {"ml": [ciphertext]}


def to_the_host(config, _, ciphertext):
    config["kai-fleet:registries"] = {"evil.example.com": {"username": "u", "password": ciphertext}}


def to_all_stacks(_, project_file, ciphertext):
    labels = {"value": {"read": ciphertext}}
    project_file["config"] = {"kai-fleet:labels": labels}


ATTACKS = [
    (to_a_pod, "kai-fleet:workloads.ml.0: key 0: is encrypted, at a key for"),
    (to_the_host, "kai-fleet:registries.evil.example.com.password: key password: is the same ciph"),
    (to_all_stacks, "kai-fleet:labels.value.read: key read: is encrypted in Pulumi.yaml"),
]


@pytest.mark.parametrize("pack", [(), ("--policy-pack", POLICY_PACK)], ids=["program", "pack"])
@pytest.mark.parametrize(("change", "says"), ATTACKS)
def test_a_copied_ciphertext_ends_the_preview(preview, change, says, pack):
    ran = preview(change, *pack)
    assert ran.returncode != 0
    assert says in ran.stdout
    assert PASSWORD not in ran.stdout
    assert ("create" in ran.stdout) == (not pack), "a pack is asked before the program"


def test_without_a_copy_it_passes(preview):
    ran = preview(lambda *_: None, "--policy-pack", POLICY_PACK)
    assert ran.returncode == 0, ran.stdout
    assert "ml-namespace" in ran.stdout
