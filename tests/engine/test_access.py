"""A vCluster behind a LoadBalancer: its kubeconfig works, and may be given anew."""

from __future__ import annotations

import pytest
import yaml

from tests.engine.product import Product, api, namespaces, project

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("access") / "project")
    (directory / "Pulumi.reached.yaml").write_text((directory / "Pulumi.sandbox.yaml").read_text())
    product = Product.of("reached", sandbox, directory)

    def one_team(config):
        config["kai-fleet:cluster"]["name"] = "reached"
        config["kai-fleet:gpu"]["provider"] = "none"
        config["kai-fleet:vcluster"]["access"] = {"type": "LoadBalancer"}
        team = {"scheduler": {"mode": "default"}, "nodePool": {"kai-fleet/pool": "nlp"}, "gpus": 1}
        config["kai-fleet:teams"] = {"balanced": team}

    product.edit(one_team)
    yield product
    product.stack.destroy()


def test_a_load_balancers_address_is_the_server(product):
    run = product.up()
    kubeconfig = run.outputs["kubeconfigs"]["balanced"]
    server = yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"]
    assert server == run.outputs["teams"]["balanced"]["server"]
    assert server.endswith(":443") or server.rpartition(":")[2].isdigit()
    # The certificate is checked against that name.
    assert "kube-system" in namespaces(api(kubeconfig))
    assert kubeconfig not in run.printed


def test_a_second_update_changes_nothing(product):
    assert product.up().changed == {}
