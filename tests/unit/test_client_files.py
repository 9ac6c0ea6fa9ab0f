"""A kubeconfig's certificates and keys: used, checked, and never left in a file."""

import base64
import ssl
import tempfile
from http.server import BaseHTTPRequestHandler

import pytest
import urllib3
import yaml
from kubernetes import config

from provider.cluster_client import UNUSABLE, cluster_client
from provider.http_api import HttpApi
from sandbox.certificates import Authority
from tests.unit import canned_api, http_server


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        subject = dict(part[0] for part in self.connection.getpeercert()["subject"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f'{{"user": "{subject["commonName"]}"}}'.encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def authority(tmp_path):
    made = Authority(tmp_path / "ca")
    made.ensure("cluster")
    return made


@pytest.fixture
def address(authority):
    """A server that lets in only who has a certificate of the authority's."""
    pair = authority.server("api", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    context.load_verify_locations(authority.pair.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with http_server.listening(Answer, context) as server:
        yield f"https://127.0.0.1:{server.server_port}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files go."""
    found = tmp_path / "temporary"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


def kubeconfig(address, authority, trusted=None, **cluster):
    def data(path):
        return base64.b64encode(path.read_bytes()).decode()

    pair = authority.client("ada", "ada", "admins")
    if trusted is not None:
        cluster["certificate-authority-data"] = data(trusted.pair.certificate)
    user = {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}
    return canned_api.kubeconfig(address, user=user, **cluster)


def test_a_client_shows_its_certificate_and_leaves_no_file(address, authority, folder):
    api = cluster_client(None, kubeconfig(address, authority, authority))
    assert list(folder.iterdir()) == []
    assert HttpApi(api).get("/") == {"user": "ada"}
    again = cluster_client(None, kubeconfig(address, authority, authority))
    assert HttpApi(again).get("/") == {"user": "ada"}
    assert list(folder.iterdir()) == []


def test_the_files_of_somebody_elses_client_stay(address, authority, folder):
    text = kubeconfig(address, authority, authority)
    other = config.new_client_from_config_dict(yaml.safe_load(text))
    cluster_client(None, text)
    assert HttpApi(other).get("/") == {"user": "ada"}
    assert len(list(folder.iterdir())) == 3, "it removes them itself"


def test_a_server_of_another_authority_is_refused(address, authority, folder, tmp_path):
    other = Authority(tmp_path / "other")
    other.ensure("another cluster")
    for trusted in (other, None):
        with pytest.raises(urllib3.exceptions.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            HttpApi(cluster_client(None, kubeconfig(address, authority, trusted))).get("/")


def test_a_cluster_without_verification_is_asked_as_its_kubeconfig_says(address, authority):
    lax = kubeconfig(address, authority, **{"insecure-skip-tls-verify": True})
    with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
        assert HttpApi(cluster_client(None, lax)).get("/") == {"user": "ada"}


def test_another_name_of_the_server_is_checked(address, authority, folder):
    named = kubeconfig(address, authority, authority, **{"tls-server-name": "another.example"})
    with pytest.raises(
        urllib3.exceptions.SSLError, match=r"another\.example|doesn't match|mismatch"
    ):
        HttpApi(cluster_client(None, named)).get("/")


def test_a_certificate_that_is_none_is_unusable_and_leaves_no_file(address, authority, folder):
    text = yaml.safe_load(kubeconfig(address, authority, authority))
    broken = base64.b64encode(b"no certificate").decode()
    text["users"][0]["user"]["client-certificate-data"] = broken
    with pytest.raises(UNUSABLE):
        cluster_client(None, yaml.safe_dump(text))
    assert list(folder.iterdir()) == []
