"""Certificates of the sandbox, as TLS itself judges them."""

import socket
import ssl
import stat
import threading
from pathlib import Path

import pytest

from sandbox.control_plane.certificates import Authority, Pair


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    created = Authority(tmp_path)
    created.ensure("test")
    return created


def handshake(authority: Authority, server: Pair, client: Pair | None, name: str) -> None:
    """Raise what TLS raises when the two ends meet."""
    inner = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.pair.certificate)
    inner.verify_mode = ssl.CERT_REQUIRED
    inner.load_cert_chain(server.certificate, server.key)
    outer = ssl.create_default_context(cafile=authority.pair.certificate)
    if client is not None:
        outer.load_cert_chain(client.certificate, client.key)
    ours, theirs = socket.socketpair()
    failures: list[Exception] = []

    def serve() -> None:
        try:
            with inner.wrap_socket(theirs, server_side=True) as wrapped:
                wrapped.sendall(b"x")
        except Exception as why:
            failures.append(why)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with outer.wrap_socket(ours, server_hostname=name) as wrapped:
            wrapped.recv(1)
    finally:
        thread.join()
    if failures:
        raise failures[0]


def test_another_name_is_refused(authority: Authority) -> None:
    server = authority.server("server", ["ml"])
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(authority, server, authority.client("admin", "a", "b"), "research")


def test_a_client_of_another_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    other.ensure("test")
    server = authority.server("server", ["ml"])
    with pytest.raises(ssl.SSLError):
        handshake(authority, server, other.client("admin", "a", "b"), "ml")


def test_certificates_stay_until_the_names_change(authority: Authority) -> None:
    first = authority.server("server", ["a", "127.0.0.1"]).certificate.read_bytes()
    assert authority.server("server", ["127.0.0.1", "a"]).certificate.read_bytes() == first
    assert authority.server("server", ["a", "b"]).certificate.read_bytes() != first


def test_keys_are_private(authority: Authority) -> None:
    authority.server("server", ["ml"])
    for key in authority.directory.glob("*.key"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
