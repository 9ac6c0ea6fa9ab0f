"""What is in a backup of a vCluster, and its file: a tar, encrypted by age with a key."""

import hashlib
import io
import json
import re
import tarfile
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TypedDict

import pyrage
from pyrage.x25519 import Identity

from kai_fleet_cli.errors import UserError

# Files of a backup. The snapshot is vCluster's own archive: a member for each key of the store.
SNAPSHOT = "snapshot.tar.gz"
CERTIFICATES = "certs.json"
CONFIG = "config.yaml"
RECORD = "backup.json"
_FILES = (SNAPSHOT, CERTIFICATES, CONFIG, RECORD)
_ENCRYPTED = b"age-encryption.org/"
_UID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_KUBE_SYSTEM = "/registry/namespaces/kube-system"
# Keys that change all the time: what they hold is of no use after a restore.
_SHORT_LIVED = ("/registry/events/", "/registry/leases/", "/registry/masterleases/")
_BROKEN_ARCHIVE = (tarfile.TarError, EOFError, OSError, zlib.error, KeyError)


class Record(TypedDict):
    """What a backup says of itself."""

    team: str
    namespace: str
    """Of the vCluster on the host."""
    taken: str
    """When, as RFC 3339 in UTC."""
    vcluster: str
    """The chart's version, such as `0.36.1`."""
    cluster: str
    """The UID of its namespace kube-system."""
    keys: int
    """How many keys the snapshot has."""
    sha256: str
    """Of the snapshot."""


@dataclass(frozen=True)
class Backup:
    """A backup of a team's vCluster: all keys of its store, its certificates and configuration.

    Attributes:
        record: What it says of itself.
        snapshot: vCluster's archive of the store.
        certificates: The data of Secret `NAME-certs`, base64 by file name: without them every
            kubeconfig and token of the vCluster is void.
        config: The configuration that vCluster ran with, YAML.
    """

    record: Record
    snapshot: bytes = field(repr=False)
    certificates: Mapping[str, str] = field(repr=False)
    config: str = field(repr=False)

    @cached_property
    def store(self) -> Mapping[str, bytes]:
        """The values of the store by key. Raises one of _BROKEN_ARCHIVE."""
        with tarfile.open(fileobj=io.BytesIO(self.snapshot), mode="r:gz") as archive:
            return {member.name: _content(archive, member) for member in archive}

    def newer_than_in(self, earlier: "Backup") -> Counter[str]:
        """How many objects it has that an earlier backup has not, by resource."""
        new = sorted(self.store.keys() - earlier.store.keys())
        return Counter(_resource(key) for key in new if _is_lasting(key))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


def _is_lasting(key: str) -> bool:
    return key.startswith("/registry/") and not key.startswith(_SHORT_LIVED)


def _resource(key: str) -> str:
    """The resource of a key such as `/registry/pods/NAMESPACE/NAME`.

    Custom resources and those of aggregated groups have the group before it.
    """
    first, second = key.split("/")[2:4]
    return second if "." in first else first


def of_snapshot(
    team: str,
    namespace: str,
    vcluster: str,
    snapshot: bytes,
    certificates: Mapping[str, str],
    config: str,
) -> Backup:
    """The backup of a snapshot that was taken now. Raises UserError for a cut or empty snapshot."""
    record: Record = {
        "team": team,
        "namespace": namespace,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "vcluster": vcluster,
        "cluster": "",
        "keys": 0,
        "sha256": hashlib.sha256(snapshot).hexdigest(),
    }
    backup = Backup(record, snapshot, certificates, config)
    try:
        uid = _UID.search(backup.store.get(_KUBE_SYSTEM, b""))
    except _BROKEN_ARCHIVE as error:
        raise UserError(f"the snapshot of team {team} is no whole archive: {error}") from None
    if uid is None:
        raise UserError(f"the snapshot of team {team} has no namespace kube-system: it is empty")
    record["cluster"] = uid.group().decode()
    record["keys"] = len(backup.store)
    return backup


def packed(backup: Backup, identity: Identity) -> bytes:
    """A backup as a file that only this identity reads; `age --decrypt` does with it, too."""
    files = {
        RECORD: json.dumps(backup.record).encode(),
        CERTIFICATES: json.dumps(backup.certificates).encode(),
        CONFIG: backup.config.encode(),
        SNAPSHOT: backup.snapshot,
    }
    packed_files = io.BytesIO()
    with tarfile.open(fileobj=packed_files, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return bytes(pyrage.encrypt(packed_files.getvalue(), [identity.to_public()]))


def is_encrypted(data: bytes) -> bool:
    """Whether a file is encrypted by age."""
    return data.startswith(_ENCRYPTED)


def unpacked(data: bytes, place: str, identity: Identity | None = None) -> Backup:
    """The backup in a file, or in a tar of its files in any folder.

    Args:
        data: The content.
        place: Where it comes from, for messages.
        identity: Whom it is encrypted for; None for a tar in clear.

    Raises:
        UserError: It is encrypted for somebody else, or it is no backup, or not a whole one.
    """
    if identity is not None:
        try:
            data = bytes(pyrage.decrypt(data, [identity]))
        except pyrage.DecryptError as error:
            raise UserError(
                f"{place} cannot be decrypted: {error}. Give the key with which it was made; if"
                " that is the one, the file is damaged: take another"
            ) from None
    try:
        files = _files(data)
        record: Record = json.loads(files[RECORD])
        backup = Backup(
            record,
            snapshot=files[SNAPSHOT],
            certificates=json.loads(files[CERTIFICATES]),
            config=files[CONFIG].decode(),
        )
        is_whole = len(backup.store) == record["keys"]
        is_whole &= hashlib.sha256(backup.snapshot).hexdigest() == record["sha256"]
    except (*_BROKEN_ARCHIVE, ValueError, TypeError) as error:
        raise UserError(f"{place} is no backup of a team, or a cut one: {error}") from None
    if not is_whole:
        raise UserError(f"{place} is not what was backed up: its checksum differs; take another")
    return backup


def _files(data: bytes) -> dict[str, bytes]:
    """The files of a backup by name, from a tar. Raises KeyError if one is missing."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        contents = {
            member.name.rpartition("/")[2]: _content(archive, member)
            for member in archive
            if member.isfile()
        }
    return {name: contents[name] for name in _FILES}


def counted(resources: Counter[str]) -> str:
    """Numbers by resource as a phrase, the largest first: `12 pods, 3 secrets`."""
    return ", ".join(f"{number} {resource}" for resource, number in resources.most_common())


def pods_that_would_go(backup: Backup, on_host: Mapping[str, str]) -> list[str]:
    """The pods, as NAMESPACE/NAME, that vCluster deletes on the host after a restore.

    The backup lacks them, or has another one of that name. `on_host` has the UIDs inside by name.
    """
    return [
        name
        for name, uid in on_host.items()
        if uid.encode() not in backup.store.get(f"/registry/pods/{name}", b"")
    ]
