"""What is asked of clusters that may not answer, and what becomes of their silence."""

import pytest
import yaml

from kai_fleet_cli.cluster_reader import NoAnswerError, gpus_held
from kai_fleet_cli.recovery import clusters
from kai_fleet_cli.recovery.state import ExportedState
from tests.unit import vcluster_secrets
from tests.unit.canned_api import kubeconfig, serving


@pytest.fixture
def server():
    with serving() as both:
        yield both


def test_the_words_of_a_silence(server):
    api, url = server
    api.answers["/api/v1/pods"] = (403, {})
    for content, words in (
        (kubeconfig(url), "^403 Forbidden$"),
        (
            kubeconfig("http://127.0.0.1:1"),
            r"^it cannot be connected to: \[Errno \d+\] Connection refused$",
        ),
        ("{}", "^the kubeconfig cannot be used: it has no current-context"),
    ):
        with pytest.raises(NoAnswerError, match=words):
            gpus_held(content)


def test_a_vclusters_kubeconfig_in_a_state_is_used_for_its_certificates_only():
    """It may be what a tenant wrote, where the stack is the team's own."""
    document = vcluster_secrets.config(server="https://10.0.0.1:443")

    def read(user):
        document["users"][0]["user"] |= user
        outputs = {"kubeconfigs": {"ml": yaml.safe_dump(document)}}
        state = {"urn": "x", "type": "pulumi:pulumi:Stack", "outputs": outputs}
        return ExportedState({"resources": [state]}).kubeconfig("ml")

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


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"items": 3}, "no Kubernetes API"),
        ({"items": [], "metadata": "x"}, "no Kubernetes API"),
        (
            {"items": [{"metadata": {"name": "a"}, "spec": {"containers": "x"}}]},
            "it answers no pods",
        ),
    ],
)
def test_what_are_no_pods_is_a_silence(server, answer, words):
    api, url = server
    api.answers["/api/v1/pods"] = (200, answer)
    with pytest.raises(NoAnswerError, match=words):
        gpus_held(kubeconfig(url))
