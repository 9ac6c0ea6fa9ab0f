"""A team stack on a platform in host mode: its queues below the granted one, by its own account."""

import pytest
import yaml
from kubernetes import client
from pulumi import automation

from kai_fleet_cli.engine.environment import SANDBOX_CONTEXT
from kai_fleet_cli.teams import kubeconfigs
from tests.engine.product import Product, api, cluster_roles, namespaces, project, queues

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(600)]

NLP = """\
config:
  kai-fleet:platform: {stack: sandbox-host}
  kai-fleet:team:
    name: nlp
    scheduler: {mode: host}
    queues:
      nlp:
        cpu: {quota: unlimited}
        memory: {quota: unlimited}
        gpu: {quota: 2}
        children:
          nlp-train:
            cpu: {quota: unlimited}
            memory: {quota: unlimited}
            gpu: {quota: 2}
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    found = project(tmp_path_factory.mktemp("team-stacks-host") / "project")
    salt = yaml.safe_load((found / "Pulumi.sandbox-host.yaml").read_text())["encryptionsalt"]
    (found / "Pulumi.sandbox-host-nlp.yaml").write_text(f"{NLP}encryptionsalt: {salt}\n")
    return found


@pytest.fixture(scope="module")
def platform(sandbox, directory):
    def edit(settings):
        settings["kai-fleet:teams"].clear()
        grant = {"gpus": 2, "parentQueue": "engineering-team"}
        settings["kai-fleet:teamStacks"] = {"nlp": grant}

    product = Product.of("sandbox-host", sandbox, directory)
    product.edit(edit)
    product.up()
    return product


@pytest.fixture(scope="module")
def host(sandbox):
    return api(sandbox.kubeconfig.read_text())


@pytest.fixture(scope="module")
def account(sandbox, platform):
    return kubeconfigs.of_account(
        "nlp", SANDBOX_CONTEXT, 1, "sandbox-host", str(sandbox.kubeconfig)
    )


@pytest.fixture(scope="module")
def nlp(sandbox, directory, account):
    product = Product.of("sandbox-host-nlp", sandbox, directory)
    secret = automation.ConfigValue(account, secret=True)
    product.stack.set_config("kai-fleet:cluster.kubeconfig", secret, path=True)
    return product


@pytest.fixture(scope="module")
def first(nlp):
    return nlp.up()


def test_its_queues_are_below_the_granted_one(first, host):
    found = {name: q["spec"].get("parentQueue") for name, q in queues(host).items()}
    assert found["nlp"] == "engineering-team"
    assert found["nlp-train"] == "nlp"
    assert first.outputs["teams"]["nlp"]["queues"] == ["nlp-train"]


def test_a_second_update_of_either_changes_nothing(first, platform, nlp):
    assert nlp.up().changed == {}
    assert platform.up().changed == {}


def test_it_is_removed_whole_by_its_account_and_the_tree_stays(first, nlp, host):
    nlp.stack.destroy()
    assert set(queues(host)) >= {"engineering-team", "project-alpha"}
    assert not {"nlp", "nlp-train"} & set(queues(host))
    assert "team-nlp" in namespaces(host), "the platform's, as is what bounds it"
    pods = client.CoreV1Api(host).list_namespaced_pod("team-nlp").items
    assert [pod.metadata.name for pod in pods] == []
    assert cluster_roles(host, "nlp") == set()
