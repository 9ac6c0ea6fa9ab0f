"""A kubeconfig's certificates and keys: used, checked, and never left in a file."""

import base64
import json
import os
import ssl
import sys
import tempfile
from http.server import BaseHTTPRequestHandler

import pytest
import yaml

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.kube.errors import UnreachableError, UnusableKubeconfigError
from kai_fleet.cluster.kube.kubeconfig import connection
from sandbox.control_plane.certificates import Authority
from tests.unit.components.cluster import canned_api, http_server


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
    created = Authority(tmp_path / "ca")
    created.ensure("cluster")
    return created


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
    assert Api.of_kubeconfig(file=str(file), context="lab").get("/") == {"user": "ada"}
    assert pair.certificate.exists()
    assert pair.key.exists()


def test_a_server_of_another_authority_is_refused(address, authority, folder, tmp_path):
    other = Authority(tmp_path / "other")
    other.ensure("another cluster")
    for trusted in (other, None):
        with pytest.raises(UnreachableError, match=r"certificate is not accepted: .*VERIFY_FAILED"):
            Api.of_kubeconfig(kubeconfig(address, authority, trusted)).get("/")


def test_a_certificate_that_is_none_is_unusable_and_leaves_no_file(address, authority, folder):
    text = yaml.safe_load(kubeconfig(address, authority, authority))
    broken = base64.b64encode(b"no certificate").decode()
    text["users"][0]["user"]["client-certificate-data"] = broken
    with pytest.raises(UnusableKubeconfigError, match="cannot be used"):
        Api.of_kubeconfig(yaml.safe_dump(text))
    assert list(folder.iterdir()) == []


def test_one_that_has_only_a_comment_has_no_context():
    """What the provider of a vCluster gets that was never ready."""
    with pytest.raises(UnusableKubeconfigError, match="it has no current-context"):
        connection("# vCluster ml is not ready")


class Headers(BaseHTTPRequestHandler):
    """Answers the headers of a request, each with all its values."""

    def do_GET(self):
        pairs = {key.lower(): self.headers.get_all(key) for key in self.headers}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(pairs).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def echo():
    with http_server.listening(Headers) as server:
        yield f"http://127.0.0.1:{server.server_port}"


def file_of(tmp_path, address, user, **cluster):
    file = tmp_path / "kubeconfig"
    file.write_text(canned_api.kubeconfig(address, user=user, **cluster))
    return str(file)


def sent(file, context="lab"):
    return Api.of_kubeconfig(file=file, context=context).get("/")


def plugin(tmp_path, lines):
    command = tmp_path / "plugin"
    command.write_text(f"#!{sys.executable}\n{lines}\n")
    command.chmod(0o755)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": "./plugin", "env": None}}


def hands_out(status):
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(answer)!r})"


def test_a_token_file_ends_in_a_line_end_and_lies_beside_the_kubeconfig(echo, tmp_path):
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs/token").write_text("abc\n")
    file = file_of(tmp_path, echo, {"tokenFile": "certs/token"})
    assert sent(file)["authorization"] == ["Bearer abc"]
    (tmp_path / "certs/token").write_text("\n")
    with pytest.raises(UnusableKubeconfigError, match="its token is empty"):
        sent(file)
    (tmp_path / "certs/token").unlink()
    with pytest.raises(UnusableKubeconfigError, match="No such file"):
        sent(file)


def test_a_plugin_beside_the_kubeconfig_hands_out_a_token_and_renews_it(echo, tmp_path):
    count = tmp_path / "count"
    lines = f"with open({str(count)!r}, 'a') as file: file.write('x')\n" + hands_out(
        {"token": "t0", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    )
    file = file_of(tmp_path, echo, plugin(tmp_path, lines))
    api = Api.of_kubeconfig(file=file)
    assert api.get("/")["authorization"] == ["Bearer t0"]
    assert count.read_text() == "xx", "it had run out, and was renewed"


@pytest.mark.parametrize(
    "lines", ["import sys; sys.exit('not logged in')", "print('hello')", hands_out({})]
)
def test_a_plugin_that_is_logged_out_is_named_and_nothing_is_sent(tmp_path, lines):
    with canned_api.serving() as (api, url):
        file = file_of(tmp_path, url, plugin(tmp_path, lines))
        with pytest.raises(UnusableKubeconfigError, match="plugin plugin of user me gives nothing"):
            Api.of_kubeconfig(file=file)
        assert api.asked == []


@pytest.mark.parametrize("more", [{"as": "ada"}, {"as-groups": ["ops"]}, {"as-uid": "7"}])
def test_a_user_that_acts_as_another_is_refused(echo, tmp_path, more):
    with pytest.raises(UnusableKubeconfigError, match=r"user me has as.*; use one with rights"):
        sent(file_of(tmp_path, echo, {"token": "t", **more}))


def test_a_proxy_that_is_not_there_or_none_is_a_sentence(tmp_path):
    def asked(proxy):
        sent(file_of(tmp_path, "https://10.1.2.3:6443", {"token": "t"}, **{"proxy-url": proxy}))

    with pytest.raises(UnreachableError, match=r"cannot be connected to: .*(refused|proxy)"):
        asked("http://127.0.0.1:1")
    for wrong in ("ftp://127.0.0.1:1", "127.0.0.1:1"):
        with pytest.raises(UnusableKubeconfigError, match="cannot be used"):
            asked(wrong)


def test_of_several_files_the_first_that_has_a_name_counts(echo, tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(canned_api.kubeconfig(echo, token="one"))
    second.write_text(canned_api.kubeconfig("http://127.0.0.1:1").replace(": lab", ": other"))
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (tmp_path / "no", first, second))))
    assert sent(None, "lab")["authorization"] == ["Bearer one"]


@pytest.mark.parametrize(
    ("server", "proxy"), [("10.1.2.3", "http://proxy:3128"), ("127.0.0.1", "")]
)
def test_the_environments_proxy_is_used_but_for_this_machine(monkeypatch, server, proxy):
    for name in ("HTTPS_PROXY", "NO_PROXY", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    client = connection(canned_api.kubeconfig(f"https://{server}:6443")).client
    pool = client.rest_client.pool_manager
    assert str(getattr(pool, "proxy", None) or "") == proxy
