import base64

import pytest
import yaml

from kai_fleet.components.cluster.kubeconfig import NoKubeconfig, of_secret

KUBECONFIG = {
    "clusters": [
        {
            "name": "c",
            "cluster": {"server": "https://localhost:8443", "certificate-authority-data": "Q0E="},
        }
    ],
    "users": [{"name": "u", "user": {"token": "t"}}],
}


def secret(text):
    return {"config": base64.b64encode(text.encode()).decode()}


def test_the_address_is_replaced_and_nothing_else():
    there = yaml.safe_load(of_secret(secret(yaml.safe_dump(KUBECONFIG)), "https://10.0.0.1:443"))
    assert there["clusters"][0]["cluster"] == {
        "server": "https://10.0.0.1:443",
        "certificate-authority-data": "Q0E=",
    }
    assert there["users"] == KUBECONFIG["users"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "has no key 'config'"),
        ({"config": "?"}, "holds no kubeconfig"),
        (secret("{"), "holds no kubeconfig"),
        (secret(""), "holds no kubeconfig"),
        (secret("clusters: [{name: c}]"), "holds no kubeconfig"),
        ({"config": base64.b64encode(b"\xff\xfe").decode()}, "holds no kubeconfig"),
    ],
    ids=["none", "no base64", "no YAML", "empty", "no cluster", "no text"],
)
def test_a_secret_without_a_kubeconfig_is_refused(data, says):
    with pytest.raises(NoKubeconfig, match=says):
        of_secret(data, "https://10.0.0.1:443")
