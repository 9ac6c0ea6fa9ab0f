"""The Secret with a vCluster's authorities in the sandbox: as vCluster treats it when it starts."""

import base64

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.x509 import load_pem_x509_certificate as load

from kai_fleet.cluster.client_authority import succeed
from sandbox.control_plane.command_lines import ControlPlane
from sandbox.control_plane.etcd import Etcd
from sandbox.control_plane.ports import FIRST, Ports
from sandbox.vcluster import certs_secret


def has_issued(authority, certificate):
    try:
        load(certificate).verify_directly_issued_by(load(authority))
    except (InvalidSignature, ValueError):  # of another kind of key
        return False
    return True


METADATA = {"name": "ml-certs"}


class Host:
    """Secrets by path."""

    def __init__(self):
        self.secrets = {}

    def find(self, path):
        return self.secrets.get(path)

    def ensure(self, path, body):
        self.secrets[f"{path}/{body['metadata']['name']}"] = body

    def patch(self, path, body):
        self.secrets[path] = {**self.secrets[path], **body}

    @property
    def data(self):
        (secret,) = self.secrets.values()
        return secret["data"]


@pytest.fixture
def host():
    return Host()


@pytest.fixture
def start(host, tmp_path):
    etcd = Etcd(tmp_path, Ports(FIRST))
    plane = ControlPlane("team-ml.ml", tmp_path / "ml", "127.0.0.1", 1, etcd)

    def start(version="v0.36.1"):
        changed = certs_secret.prepare(host, "team-ml", plane, METADATA, version)
        return changed, plane.authority.path("admin").certificate.read_bytes()

    return start


def decoded(host, key):
    return base64.b64decode(host.data[key])


def renew(host):
    old = decoded(host, "client-ca.crt")
    new = succeed(old)
    for name in ("ca", "client-ca"):
        host.data[f"{name}.crt"] = base64.b64encode(new["crt"]).decode()
        host.data[f"{name}.key"] = base64.b64encode(new["key"]).decode()
    del host.data["apiserver-kubelet-client.crt"]
    return old, new["crt"]


def test_a_new_authority_in_the_secret_issues_new_certificates_and_keeps_the_rest(host, start):
    _, admin = start()
    server, tokens = decoded(host, "server-ca.crt"), decoded(host, "sa.key")
    old, new = renew(host)
    changed, after = start()
    assert changed
    assert has_issued(old, admin)
    assert has_issued(new, after)
    assert not has_issued(old, after)
    assert (decoded(host, "server-ca.crt"), decoded(host, "sa.key")) == (server, tokens)
    assert start() == (False, after)


def test_a_deleted_secret_renews_nothing(host, start):
    _, admin = start()
    before = dict(host.data)
    host.secrets.clear()
    assert start() == (False, admin)
    assert host.data == before


def test_an_old_version_issues_nothing_anew_from_its_secret(host, start):
    _, admin = start("v0.30.5")
    renew(host)
    assert start("v0.30.5") == (True, admin)  # nobody gets in
