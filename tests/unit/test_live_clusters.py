"""What is asked of clusters that may not answer, and what becomes of their silence."""

import json
from types import SimpleNamespace

import pytest
import yaml

from kai_fleet_cli.recovery import clusters
from kai_fleet_cli.recovery.clusters import NoAnswerError
from kai_fleet_cli.recovery.state import kubeconfig as kubeconfig_of
from tests.unit import vcluster_secrets
from tests.unit.canned_api import kubeconfig, serving


@pytest.fixture
def server():
    with serving() as both:
        yield both


def test_a_vclusters_kubeconfig_in_a_state_is_used_for_its_certificates_only():
    """It may be what a tenant wrote, where the stack is the team's own."""
    document = vcluster_secrets.config(server="https://10.0.0.1:443")

    def read(user):
        document["users"][0]["user"] |= user
        done = SimpleNamespace(stdout=json.dumps({"ml": yaml.safe_dump(document)}))
        cli = SimpleNamespace(run=lambda *_: done)
        workspace = SimpleNamespace(pulumi_command=cli, work_dir=".", env_vars={})
        return kubeconfig_of(SimpleNamespace(name="prod", workspace=workspace), "ml")

    assert yaml.safe_load(read({}))["users"] == document["users"]
    says = r"its kubeconfig in the state has in its key config what vCluster does not write there"
    with pytest.raises(NoAnswerError, match=says):
        read({"exec": vcluster_secrets.USER["exec"]})


@pytest.mark.parametrize("odd", [{"metadata": "x"}, {"metadata": {}, "status": "x"}])
def test_what_is_no_object_is_a_silence(server, odd):
    api, url = server
    api.answers["/api/v1/namespaces/kai-scheduler"] = (200, {"kind": "x", **odd})
    with pytest.raises(NoAnswerError, match=r"^it answers what no Kubernetes does"):
        clusters.held_in(kubeconfig(url), "kai-scheduler")
