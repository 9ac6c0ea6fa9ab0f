"""An OpenID Connect provider on this machine: discovery, keys, and the tokens that it signs."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

CLIENT = "kubernetes"


@dataclass(frozen=True)
class Provider:
    """`authority` is the PEM of who signed its certificate."""

    issuer: str
    authority: str
    key: rsa.RSAPrivateKey

    def token(self, user: str, *groups: str, **claims: Any) -> str:
        """An ID token of a user, good for ten minutes unless `claims` say another time."""
        now = int(time.time())
        body = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": user,
            "groups": list(groups),
            "iat": now,
            "exp": now + 600,
            **claims,
        }
        signed = f"{_encoded({'alg': 'RS256', 'kid': 'one'})}.{_encoded(body)}"
        signature = self.key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    def keys(self) -> dict[str, Any]:
        """Its public keys (JWKS)."""
        numbers = self.key.public_key().public_numbers()
        n, e = (
            _base64(item.to_bytes((item.bit_length() + 7) // 8)) for item in (numbers.n, numbers.e)
        )
        return {
            "keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": n, "e": e}]
        }


@contextmanager
def serving() -> Iterator[Provider]:
    """A provider that answers over https on a port of its own."""
    authority = trustme.CA(organization_name="an identity provider")
    answers: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path)
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    provider = Provider(
        f"https://127.0.0.1:{server.server_port}",
        authority.cert_pem.bytes().decode(),
        rsa.generate_private_key(65537, 2048),
    )
    answers["/.well-known/openid-configuration"] = {
        "issuer": provider.issuer,
        "jwks_uri": f"{provider.issuer}/keys",
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    answers["/keys"] = provider.keys()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()


def _encoded(part: dict[str, Any]) -> str:
    return _base64(json.dumps(part).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
