"""Helm's records of a vCluster's release, read as what a tenant may have written.

Before Helm removes or upgrades a release it reads every Secret of its namespace with the labels
`owner=helm,name=NAME`, whatever its type and name (pkg/storage/driver/secrets.go of Helm 3). It
runs the hooks of the newest one, and deletes what that one's manifest names, in any namespace, with
the rights of whoever runs it. Pulumi's `disableWebhooks` does not reach that: Release.Delete of its
plugin sets no such option (provider/pkg/provider/helm_release.go, July 2026).

So a record is held against what vCluster's chart makes: no hook (no chart of the table has one),
and only objects of the release, by kind and name, in its namespace. What is read here in another
way than Helm reads it would be a way around, so whatever is odd is refused: keys in another
spelling, keys twice, aliases and types in YAML, a separator with something behind it.
"""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import yaml

SELECTOR: Final = "owner=helm,name={}"
_MOST_BYTES: Final = 8 << 20  # of a record; that of vCluster's chart is below 1 MiB
_MOST_OF_MANIFEST: Final = 1 << 20
_MOST_LEVELS: Final = 64
_GZIP: Final = b"\x1f\x8b\x08"
_KEYS: Final = frozenset(
    {"name", "info", "chart", "config", "manifest", "hooks", "version", "namespace"}
)
_ODD: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_SEPARATOR: Final = re.compile(r"^---[ \t]*\S", re.MULTILINE)  # Helm takes it for one
# What the chart makes, by group and kind, in every version and with every value that is let in.
_KINDS: Final = frozenset(
    {
        *(("", kind) for kind in ("ServiceAccount", "Secret", "ConfigMap", "Service")),
        *(("apps", kind) for kind in ("StatefulSet", "Deployment")),
        *(("rbac.authorization.k8s.io", kind) for kind in ("Role", "RoleBinding")),
        ("policy", "PodDisruptionBudget"),
        ("networking.k8s.io", "Ingress"),
        ("gateway.networking.k8s.io", "TLSRoute"),
        ("monitoring.coreos.com", "ServiceMonitor"),
    }
)
# What an object of these kinds has. Kubernetes takes an object with `items` for a list of others,
# whatever its kind, and Helm then deletes those.
_FIELDS: Final = frozenset(
    {"apiVersion", "kind", "metadata", "spec", "data", "stringData", "type", "immutable"}
    | {"rules", "roleRef", "subjects", "secrets", "imagePullSecrets"}
    | {"automountServiceAccountToken"}
)
# From before the platform gave the vCluster its rights.
_OF_CLUSTER: Final = frozenset(
    ("rbac.authorization.k8s.io", kind) for kind in ("ClusterRole", "ClusterRoleBinding")
)
_STR: Final = "tag:yaml.org,2002:str"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Forged:
    """A record that is not of vCluster's chart: its Secret's name, and why, as a verb phrase."""

    secret: str
    why: str


class _NotOfTheChartError(Exception):
    """Why a record is refused, as a verb phrase."""


def forged(secrets: Iterable[Mapping[str, Any]], release: str, namespace: str) -> list[Forged]:
    """Those of a release's records that vCluster's chart did not make.

    The reasons may stand on a terminal: of what is written in a record they have ASCII only.
    """
    records = []
    for secret in secrets:
        try:
            _judge(secret, release, namespace)
        except _NotOfTheChartError as error:
            records.append(Forged(str(secret["metadata"]["name"]), str(error)))
    return records


def sentence(records: Iterable[Forged], release: str, namespace: str) -> str:
    """What is wrong, and the command that mends it."""
    records = list(records)
    which = "; ".join(f"Secret {it.secret} {it.why}" for it in records)
    names = " ".join(it.secret for it in records)
    return (
        f"Helm's record of release {release} in namespace {namespace} is not what vCluster's chart"
        f" makes: {which}. Helm would do what it says, with your rights. Find out who wrote it"
        f" (kubectl get --show-managed-fields), then delete it: kubectl -n {namespace} delete"
        f" secret {names}"
    )


def _judge(secret: Mapping[str, Any], release: str, namespace: str) -> None:
    record = _decoded((secret.get("data") or {}).get("release"))
    if odd := sorted(set(record) - _KEYS):
        raise _NotOfTheChartError(f"has the key {_shown(odd[0])}")
    if record.get("name") != release or record.get("namespace") != namespace:
        where = f"{record.get('namespace')}/{record.get('name')}"
        raise _NotOfTheChartError(f"is of another release, {_shown(where)}")
    if hooks := record.get("hooks"):
        first = hooks[0] if isinstance(hooks, list) and isinstance(hooks[0], dict) else {}
        raise _NotOfTheChartError(
            f"has a hook, {_shown(first.get('kind'))} {_shown(first.get('name'))}"
        )
    manifest = record.get("manifest", "")
    if not isinstance(manifest, str):
        raise _NotOfTheChartError("has a manifest that is no text")
    for group, kind, name, of in _objects(manifest):
        known = (group, kind) in _KINDS and of in (None, namespace) and _is_own(name, release)
        cluster = f"vc-{release}-v-{namespace}"[:63].rstrip("-")
        if not known and not ((group, kind) in _OF_CLUSTER and name == cluster):
            there = f" of namespace {_shown(of)}" if of is not None else ""
            raise _NotOfTheChartError(f"names {_shown(kind)} {_shown(name)}{there}")


def _is_own(name: str, release: str) -> bool:
    """A name of the chart's, and none of what the platform makes in the namespace."""
    own = name == release or name.startswith((f"{release}-", "vc-"))
    return own and not name.startswith("kai-fleet")


def _decoded(data: object) -> dict[str, Any]:
    try:
        inner = base64.b64decode(str(data or ""), validate=True)
        inner = base64.b64decode(inner.replace(b"\r", b"").replace(b"\n", b""), validate=True)
    except (binascii.Error, ValueError):
        raise _NotOfTheChartError("cannot be read: it is no base64") from None
    if inner.startswith(_GZIP):
        inner = _unpacked(inner)
    if len(inner) > _MOST_BYTES:
        raise _NotOfTheChartError(f"is larger than {_MOST_BYTES >> 20} MiB")
    try:
        record = json.loads(inner.decode(), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _NotOfTheChartError("cannot be read: it is no JSON") from None
    if not isinstance(record, dict):
        raise _NotOfTheChartError("cannot be read: it is no release")
    return record


def _unpacked(packed: bytes) -> bytes:
    unpack, content = zlib.decompressobj(wbits=31), b""
    with suppress(zlib.error):
        content = unpack.decompress(packed, _MOST_BYTES + 1)
    if len(content) <= _MOST_BYTES and (not unpack.eof or unpack.unused_data):
        raise _NotOfTheChartError("cannot be read: it is not packed as Helm packs")
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise _NotOfTheChartError("has a key twice")
    return content


def _objects(manifest: str) -> Iterator[tuple[str, str, str, str | None]]:
    """Group, kind, name and namespace of each object that a manifest names."""
    if len(manifest) > _MOST_OF_MANIFEST:
        raise _NotOfTheChartError(f"has a manifest of more than {_MOST_OF_MANIFEST >> 20} MiB")
    if odd := _ODD.search(manifest) or _SEPARATOR.search(manifest):
        raise _NotOfTheChartError(f"has a manifest with {odd[0]!a}")
    try:
        _plain(manifest)
        for document in yaml.compose_all(manifest, Loader=_LOADER):
            if document is not None and document.tag != "tag:yaml.org,2002:null":
                yield _object(document)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise _NotOfTheChartError("has a manifest that is no YAML") from None


def _plain(manifest: str) -> None:
    """Nothing that stands for something else, and not too deep: before anything is built."""
    depth = 0
    for event in yaml.parse(manifest, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _NotOfTheChartError("has a manifest with aliases")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MOST_LEVELS:
            raise _NotOfTheChartError(f"has a manifest of more than {_MOST_LEVELS} levels")


def _object(document: yaml.Node) -> tuple[str, str, str, str | None]:
    top = _entries(document)
    if odd := sorted(set(top) - _FIELDS):
        raise _NotOfTheChartError(f"has a manifest with the key {_shown(odd[0])}")
    metadata = _entries(top.get("metadata"))
    version, kind, name = (
        _text(of.get(key)) for of, key in ((top, "apiVersion"), (top, "kind"), (metadata, "name"))
    )
    namespace = metadata.get("namespace")
    group = version.rpartition("/")[0]
    return group, kind, name, None if namespace is None else _text(namespace)


def _entries(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise _NotOfTheChartError("has a manifest with something that is no object")
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        named = _text(key)
        if named in entries:
            raise _NotOfTheChartError(f"has a manifest with the key {_shown(named)} twice")
        entries[named] = value
    return entries


def _text(node: yaml.Node | None) -> str:
    if not isinstance(node, yaml.ScalarNode) or node.tag != _STR:
        raise _NotOfTheChartError("has a manifest with something that is no object")
    return str(node.value)


def _shown(text: object) -> str:
    """A tenant's text on a terminal, in ASCII and short."""
    name = str(text)
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9./_-]{0,62}", name, re.ASCII)
    return name if plain else ascii(name if len(name) <= 40 else f"{name[:37]}...")
