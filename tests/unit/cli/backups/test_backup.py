"""A backup's file: whole or refused, and what a restore would lose."""

import io
import json
import tarfile

import pytest
from pyrage.x25519 import Identity

from kai_fleet_cli.backups import backup as backups
from kai_fleet_cli.errors import UserError
from sandbox.vcluster.store import archive

UID = "11111111-2222-3333-4444-555555555555"
JOB = "aaaaaaaa-2222-3333-4444-555555555555"
CERTIFICATES = {"ca.crt": "Q0E=", "sa.key": "S0VZ"}
KEY = Identity.generate()
STORE = {
    "/registry/namespaces/kube-system": b'k8s\0\n\x0bkube-system"\x24' + UID.encode(),
    "/registry/pods/default/train-0": b"k8s\0" + JOB.encode(),
    "/registry/scheduling.run.ai/queues/train": b"{}",
    "/registry/events/default/train-0.1": b"k8s",
    "/vcluster/mappings/v1/pods": b"{}",
}


def taken(**more):
    snapshot = archive(STORE | more.pop("store", {}))
    return backups.of_snapshot("ml", "team-ml", "0.36.1", snapshot, CERTIFICATES, "a: 1\n")


def test_it_is_read_as_it_was_written():
    backup = taken()
    read = backups.unpacked(backups.packed(backup, KEY), "ml.backup", KEY)
    assert read == backup
    assert read.record["cluster"] == UID
    assert read.record["keys"] == len(STORE)


def test_nothing_of_it_is_readable_without_the_key():
    packed = backups.packed(taken(), KEY)
    assert backups.is_encrypted(packed)
    assert b"kube-system" not in packed and b"Q0E=" not in packed
    with pytest.raises(UserError, match="cannot be decrypted"):
        backups.unpacked(packed, "ml.backup", Identity.generate())


@pytest.mark.parametrize("length", [10, 100, 500, -1])
def test_a_cut_file_is_refused(length):
    packed = backups.packed(taken(), KEY)
    with pytest.raises(UserError, match=r"ml\.backup"):
        backups.unpacked(packed[:length], "ml.backup", KEY)


@pytest.mark.parametrize("place", [0.3, 0.6, 0.9])
def test_a_changed_byte_is_refused(place):
    packed = bytearray(backups.packed(taken(), KEY))
    packed[int(len(packed) * place)] ^= 1
    with pytest.raises(UserError, match=r"ml\.backup"):
        backups.unpacked(bytes(packed), "ml.backup", KEY)


def clear_tar(**files):
    """A tar in clear of a backup's files, as a scheduled backup hands them out."""
    backup = taken()
    contents = {
        "backup.json": json.dumps(backup.record).encode(),
        "certs.json": b"{}",
        "config.yaml": b"",
        "snapshot.tar.gz": backup.snapshot,
    }
    contents |= files
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in contents.items():
            if content is not None:
                member = tarfile.TarInfo(f"/work/ml/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return written.getvalue()


def test_the_files_may_be_in_any_folder():
    assert backups.unpacked(clear_tar(), "the bucket").record["team"] == "ml"


OTHER = {"/registry/namespaces/kube-system": b"another", "/registry/pods/x/y": b""}


@pytest.mark.parametrize(
    "files",
    [
        {"snapshot.tar.gz": archive(OTHER)},
        {"snapshot.tar.gz": archive(STORE)[:-30]},
        {"snapshot.tar.gz": b""},
        {"snapshot.tar.gz": None},
        {"backup.json": b"[]"},
        {"backup.json": b"{}"},
        {"certs.json": b"\xff"},
    ],
)
def test_what_is_no_whole_backup_is_refused(files):
    with pytest.raises(UserError, match="the bucket is"):
        backups.unpacked(clear_tar(**files), "the bucket")


@pytest.mark.parametrize("store", [{}, {"/registry/namespaces/kube-system": b""}])
def test_an_empty_store_is_no_backup(store):
    with pytest.raises(UserError, match="it is empty"):
        backups.of_snapshot("ml", "team-ml", "0.36.1", archive(store), {}, "")


def test_a_cut_snapshot_is_no_backup():
    with pytest.raises(UserError, match="no whole archive"):
        backups.of_snapshot("ml", "team-ml", "0.36.1", archive(STORE)[:-40], {}, "")


def test_pods_that_the_backup_lacks_would_go():
    on_host = {
        "default/train-0": JOB,
        "default/train-1": UID,
        "kube-system/train-0": JOB,
    }
    gone = backups.pods_that_would_go(taken(), on_host)
    assert gone == ["default/train-1", "kube-system/train-0"]
    assert backups.pods_that_would_go(taken(), {"default/train-0": UID}) == ["default/train-0"]


def test_what_is_newer_is_counted_by_resource():
    newer = {
        "/registry/pods/default/train-1": b"",
        "/registry/pods/default/train-2": b"",
        "/registry/scheduling.run.ai/queues/serve": b"",
        "/registry/services/specs/default/web": b"",
        "/registry/events/default/new": b"",
        "/registry/leases/kube-node-lease/new": b"",
        "/vcluster/mappings/v1/new": b"",
    }
    counts = taken(store=newer).newer_than_in(taken())
    assert backups.counted(counts) == "2 pods, 1 queues, 1 services"
