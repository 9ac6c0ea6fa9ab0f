import base64

import pytest
import yaml

from components.kubeconfig import decoded, pointed_at

KUBECONFIG = {
    "clusters": [
        {
            "name": "c",
            "cluster": {"server": "https://localhost:8443", "certificate-authority-data": "Q0E="},
        }
    ],
    "users": [{"name": "u", "user": {"token": "t"}}],
}


def test_the_address_is_replaced_and_nothing_else():
    there = yaml.safe_load(pointed_at(yaml.safe_dump(KUBECONFIG), "https://10.0.0.1:443"))
    assert there["clusters"][0]["cluster"] == {
        "server": "https://10.0.0.1:443",
        "certificate-authority-data": "Q0E=",
    }
    assert there["users"] == KUBECONFIG["users"]


def test_the_secrets_content_is_read():
    assert decoded({"config": base64.b64encode(b"text").decode()}) == "text"


def test_a_secret_without_a_kubeconfig_is_refused():
    with pytest.raises(ValueError, match="no readable key 'config'"):
        decoded({})
