"""A kubeconfig's certificates and keys: used, checked, and never left in a file."""

import base64
import os
import ssl
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler

import pytest
import urllib3
import yaml
from kubernetes import config

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import UnreachableError, UnusableKubeconfigError
from sandbox.control_plane.certificates import Authority
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
    text = kubeconfig(address, authority, authority)
    api = Api.of_kubeconfig(text)
    assert list(folder.iterdir()) == []
    assert api.get("/") == {"user": "ada"}
    again = Api.of_kubeconfig(text)
    assert again.get("/") == {"user": "ada"}
    assert list(folder.iterdir()) == []


def test_a_file_of_the_user_with_paths_in_it_stays(address, authority, folder, tmp_path):
    pair = authority.client("ada", "ada", "admins")
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    trusted = {"certificate-authority": str(authority.pair.certificate)}
    file = tmp_path / "kubeconfig"
    file.write_text(canned_api.kubeconfig(address, user=user, **trusted))
    assert Api.of_context(str(file), "lab").get("/") == {"user": "ada"}
    assert pair.certificate.exists()
    assert pair.key.exists()


def test_the_files_of_somebody_elses_client_stay(address, authority, folder):
    text = kubeconfig(address, authority, authority)
    other = config.new_client_from_config_dict(yaml.safe_load(text))
    Api.of_kubeconfig(text)
    assert other.rest_client.request("GET", f"{address}/").status == 200
    assert len(list(folder.iterdir())) == 3, "it removes them itself"


def test_what_a_killed_run_left_is_removed_by_the_next(address, authority, folder):
    left = folder / "kai-fleet-kubeconfig-abc"
    recent = folder / "kai-fleet-kubeconfig-def"
    for each in (left, recent):
        each.mkdir()
        (each / "key").write_text("a key")
    os.utime(left, (time.time() - 3600,) * 2)
    Api.of_kubeconfig(kubeconfig(address, authority, authority))
    assert list(folder.iterdir()) == [recent], "of another run that is about to read it"


def test_clients_made_at_once_do_not_take_each_others_files(address, authority, folder):
    text = kubeconfig(address, authority, authority)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: Api.of_kubeconfig(text), range(24)))
    assert [api.get("/")["user"] for api in made] == ["ada"] * 24


def test_a_server_of_another_authority_is_refused(address, authority, folder, tmp_path):
    other = Authority(tmp_path / "other")
    other.ensure("another cluster")
    for trusted in (other, None):
        with pytest.raises(UnreachableError, match=r"certificate is not accepted: .*VERIFY_FAILED"):
            Api.of_kubeconfig(kubeconfig(address, authority, trusted)).get("/")


def test_a_cluster_without_verification_is_asked_as_its_kubeconfig_says(address, authority):
    lax = kubeconfig(address, authority, **{"insecure-skip-tls-verify": True})
    with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
        assert Api.of_kubeconfig(lax).get("/") == {"user": "ada"}


def test_another_name_of_the_server_is_checked(address, authority, folder):
    named = kubeconfig(address, authority, authority, **{"tls-server-name": "another.example"})
    with pytest.raises(UnreachableError, match=r"another\.example|doesn't match|mismatch"):
        Api.of_kubeconfig(named).get("/")


def test_a_certificate_that_is_none_is_unusable_and_leaves_no_file(address, authority, folder):
    text = yaml.safe_load(kubeconfig(address, authority, authority))
    broken = base64.b64encode(b"no certificate").decode()
    text["users"][0]["user"]["client-certificate-data"] = broken
    with pytest.raises(UnusableKubeconfigError, match="cannot be used"):
        Api.of_kubeconfig(yaml.safe_dump(text))
    assert list(folder.iterdir()) == []
