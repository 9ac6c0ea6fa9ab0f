"""The one cluster of a provider: which it is, whether it is the sandbox's, what it serves."""

from __future__ import annotations

import base64
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography import x509

from kai_fleet.kube.errors import KubeError, Refused, UnusableKubeconfig
from kai_fleet.kube.kubeconfig import connection
from sandbox.control_plane.certificates import ORGANIZATION
from sandbox.control_plane.kube_api import Api, Object
from sandbox.providers.official_words import officially


class UnreachableError(Exception):
    """The cluster cannot be used; the official plugin's words for why."""


class NoMatchError(KubeError):
    """The API server does not serve a kind."""


@dataclass(frozen=True)
class Kind:
    """A kind of object, such as `apps/v1` and `Deployment`."""

    api_version: str
    name: str

    @property
    def group(self) -> str:
        """The API group; "" for the core kinds."""
        return self.api_version.rpartition("/")[0]


@dataclass(frozen=True)
class Target:
    """What a context of a kubeconfig leads to; `cluster` is the kubeconfig's entry for it."""

    kubeconfig: str
    context: str
    cluster: dict[str, Any]
    namespace: str


def target(given: str, context: str = "") -> Target:
    """Where a kubeconfig, given as content or path, leads. Raises UnreachableError."""
    text, config = _read(given)
    name = context or str(config.get("current-context") or "")
    chosen = _entry(config, "context", name)
    if chosen is None:
        said = f'context "{name}" does not exist'
        raise UnreachableError(officially("unusable_kubeconfig", why=said))
    cluster = _entry(config, "cluster", str(chosen.get("cluster"))) or {}
    return Target(text, name, cluster, str(chosen.get("namespace") or "default"))


def active_cluster(given: Any, context: Any) -> dict[str, Any] | None:
    """The entry of the cluster that these settings of a provider name; None where none does."""
    if not isinstance(given, str) or not given:
        return None
    try:
        return target(given, context).cluster or None
    except UnreachableError:
        return None


def _read(given: str) -> tuple[str, dict[str, Any]]:
    if not given:
        given = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    try:
        path = Path(given).expanduser()
        text = path.read_text() if "\n" not in given and path.is_file() else given
        config = yaml.safe_load(text)
    except (OSError, yaml.YAMLError) as why:
        text, config = "", type(why).__name__  # a parser's own words quote the text, with its keys
    if not isinstance(config, dict):
        raise UnreachableError(officially("unparsable_kubeconfig", why=config))
    return text, config


def _entry(config: dict[str, Any], kind: str, name: str) -> dict[str, Any] | None:
    listed = config.get(f"{kind}s") or []
    return next((it.get(kind) or {} for it in listed if it.get("name") == name), None)


def in_sandbox(where: Target) -> bool:
    """Whether a cluster's certificates come from a sandbox of kai-fleet."""
    checked = not where.cluster.get("insecure-skip-tls-verify")
    try:
        data = base64.b64decode(where.cluster.get("certificate-authority-data") or "")
        subject = x509.load_pem_x509_certificate(data).subject
    except (ValueError, TypeError):
        return False
    named = subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)
    return checked and ORGANIZATION in [it.value for it in named]


class Cluster(Api):
    """Its API as one user, and what it serves."""

    def __init__(self, where: Target, namespace: str) -> None:
        try:
            super().__init__(connection(where.kubeconfig, context=where.context))
        except UnusableKubeconfig as why:
            raise UnreachableError(officially("unusable_kubeconfig", why=why)) from None
        self.where, self.namespace = where, namespace
        self._served: dict[str, dict[str, tuple[str, bool]]] = {}
        self._lock = threading.Lock()

    def probe(self) -> None:
        """Raise UnreachableError unless it answers this user."""
        try:
            self.get("/api/v1")
        except KubeError as why:
            status, said = status_of(why), words(why)
            if status == 0:
                if "refused" in said:
                    said = f"dial tcp {urlsplit(self.host).netloc}: connect: connection refused"
                said = f'Get "{self.host}/openapi/v2?timeout=32s": {said}'
            elif status == 401:
                said = officially("no_credentials")
            if status != 403:
                raise UnreachableError(officially("no_schema", why=said)) from None

    def is_namespaced(self, kind: Kind) -> bool:
        """Whether objects of a kind have a namespace. Raises NoMatchError."""
        return self._find(kind)[1]

    def path(self, kind: Kind, namespace: str, name: str = "") -> str:
        """Where objects of a kind are, or one of them. Raises NoMatchError."""
        plural, namespaced = self._find(kind)
        parts = ["apis" if kind.group else "api", kind.api_version]
        if namespaced:
            parts += ["namespaces", namespace or self.namespace]
        return "/" + "/".join([*parts, plural, *([name] if name else [])])

    def live(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The object; None where it, or its kind, is not there."""
        try:
            return self.find(self.path(kind, namespace, name))
        except NoMatchError:
            return None

    def forget(self, group: str) -> None:
        """Ask anew for a group's kinds: a CRD of it came or went."""
        with self._lock:
            self._served = {v: k for v, k in self._served.items() if v.rpartition("/")[0] != group}

    def _find(self, kind: Kind) -> tuple[str, bool]:
        with self._lock:
            served = self._served.get(kind.api_version, {})
            if kind.name not in served:
                listed = self.find(f"/{'apis' if kind.group else 'api'}/{kind.api_version}") or {}
                served = self._served[kind.api_version] = {
                    entry["kind"]: (entry["name"], bool(entry["namespaced"]))
                    for entry in listed.get("resources") or []
                    if "/" not in entry["name"]  # a subresource, such as pods/status
                }
        if kind.name not in served:
            said = officially("no_match", kind=kind.name, version=kind.api_version)
            raise NoMatchError(said)
        return served[kind.name]


def status_of(why: KubeError) -> int:
    """HTTP's status of a refusal; 0 where there was no answer."""
    return why.status if isinstance(why, Refused) else 0


def words(why: KubeError) -> str:
    """The server's own words, or what stood between here and it."""
    return why.message or str(why) if isinstance(why, Refused) else str(why)
