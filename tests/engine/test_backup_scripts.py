"""The scripts of backups against real restic and a real S3 server: each failure says what to do."""

import json
import random
import re

import pytest

from tests.engine.backup_scripts import (
    KEYS,
    KINE,
    KUBECTL,
    UID,
    VCLUSTER,
    Jobs,
    archive,
    copy_of,
    program,
    s3_server,
)

pytestmark = [pytest.mark.engine, pytest.mark.restic]
POD = "ml-0 True\n"


@pytest.fixture
def bucket(tmp_path):
    folder = tmp_path / "s3" / "bucket"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def jobs(tmp_path, bucket):
    with s3_server(bucket.parent) as address:
        yield Jobs(
            tmp_path,
            RESTIC_REPOSITORY=f"{address}/bucket/ml",
            AWS_ACCESS_KEY_ID="key",
            AWS_SECRET_ACCESS_KEY="secret",
            BACKUP=str(copy_of(tmp_path / "backup")),
        )


def test_the_last_ones_are_kept_and_the_message_has_size_and_snapshot(jobs):
    for _ in range(3):
        assert jobs.run("keep.sh") == 0
    kept = jobs.restic("snapshots")
    assert len(kept) == 2
    message = json.loads(jobs.said)
    assert message["snapshot"] == kept[-1]["id"]
    assert message["kilobytes"] > 0
    assert kept[-1]["hostname"] == "ml"


def test_none_is_deleted_where_credentials_could_not(jobs):
    for _ in range(3):
        assert jobs.run("keep.sh", KEEP=0) == 0
    assert len(jobs.restic("snapshots")) == 3


def test_a_backup_comes_back_as_it_was(jobs, tmp_path):
    assert jobs.run("keep.sh") == 0
    again = tmp_path / "again"
    assert jobs.run("verify.sh", BACKUP=again) == 0
    for file in (tmp_path / "backup").iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"RESTIC_PASSWORD": "another"},
            "RESTIC_PASSWORD in Secret kai-fleet-backup is not the password of this repository;"
            " write the one with which the first backup was made",
        ),
        ({"AWS_SECRET_ACCESS_KEY": "x"}, "refuses the credentials; write others into Secret"),
        ({"AWS_ACCESS_KEY_ID": "x"}, "refuses the credentials; write others into Secret"),
        ({"RESTIC_REPOSITORY": "s3:http://127.0.0.1:1/bucket/ml"}, "is not reached: "),
    ],
    ids=["password", "secret", "key", "address"],
)
def test_what_keeps_a_backup_from_its_store_is_said(jobs, variables, sentence):
    assert jobs.run("keep.sh") == 0
    assert jobs.run("keep.sh", **variables) == 1
    assert jobs.said.startswith("the repository cannot be opened: ")
    assert sentence in jobs.said
    assert jobs.said.count("\n") == 1
    assert jobs.run("verify.sh", **variables) == 1
    assert sentence in jobs.said


def test_no_bucket_is_made_by_a_wrong_address(jobs, bucket):
    wrong = jobs.variables["RESTIC_REPOSITORY"].replace("/bucket/", "/buckets/")
    assert jobs.run("keep.sh", RESTIC_REPOSITORY=wrong) == 1
    assert "there is no bucket" in jobs.said
    assert [folder.name for folder in bucket.parent.iterdir()] == ["bucket"]


def test_a_full_volume_is_said_and_what_is_there_stays_whole(jobs, tmp_path):
    volume = tmp_path / "volume"
    volume.mkdir()
    (tmp_path / "backup" / "certs.json").write_bytes(random.Random(1).randbytes(1 << 20))
    mounted = f"mount -t tmpfs -o size=200k none {volume} && exec " + '"$@"'
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, "sh"]
    assert jobs.run("keep.sh", *inside, RESTIC_REPOSITORY=volume / "ml") == 1
    assert "the target is full; give it more room, or keep fewer: backup.keep" in jobs.said


def damage(bucket, change):
    """Change the largest object of data, which has the archive."""
    pack = max((bucket / "ml" / "data").glob("*/*"), key=lambda path: path.stat().st_size)
    pack.write_bytes(change(pack.read_bytes()))


def flipped(content):
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


@pytest.mark.parametrize("change", [flipped, lambda content: content[:-100]], ids=["bit", "cut"])
def test_a_changed_object_is_found(jobs, bucket, tmp_path, change):
    assert jobs.run("keep.sh") == 0
    damage(bucket, change)
    assert jobs.run("verify.sh", BACKUP=tmp_path / "again") == 1
    assert "is not what was written there" in jobs.said
    assert not (tmp_path / "again").exists()


def test_another_checksum_than_was_written_down_is_found(jobs, tmp_path):
    other = copy_of(tmp_path / "other", sha256="0" * 64)
    assert jobs.run("keep.sh", BACKUP=other) == 0
    assert jobs.run("verify.sh", BACKUP=tmp_path / "again") == 1
    assert re.search("has checksum [0-9a-f]{64}, and backup.json says 0{64}", jobs.said)


def test_a_lock_of_a_killed_job_does_not_stop_the_next_one(jobs):
    assert jobs.run("keep.sh") == 0
    # A process of this machine that is gone: restic takes its lock for stale at once.
    jobs.run("keep.sh", "timeout", "--signal=KILL", "0.5")
    assert jobs.run("keep.sh") == 0


@pytest.fixture
def reading(tmp_path):
    """A control plane that answers the stand-in for kubectl."""
    pod = tmp_path / "pod"
    pod.mkdir()
    archive(pod / "archive")
    (pod / "pods").write_text(POD)
    (pod / "code").write_text("0")
    program(pod / "carry", '#!/bin/sh\ncat "$1"\n')
    program(tmp_path / "kubectl", KUBECTL)
    jobs = Jobs(tmp_path, NAMESPACE="team-ml", VERSION="v0.36.1", POD=str(pod))
    jobs.variables["PATH"] = f"{tmp_path}:{jobs.variables['PATH']}"
    jobs.variables["BACKUP"] = str(tmp_path / "read")
    return jobs


def test_a_control_plane_is_read_into_four_files(reading, tmp_path):
    assert reading.run("read.sh") == 0
    about = json.loads((tmp_path / "read" / "backup.json").read_text())
    taken, checksum = about.pop("taken"), about.pop("sha256")
    assert about == {
        "team": "ml",
        "namespace": "team-ml",
        "vcluster": "v0.36.1",
        "cluster": UID,
        "keys": len(KEYS),
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", taken)
    assert re.fullmatch("[0-9a-f]{64}", checksum)
    assert json.loads((tmp_path / "read" / "certs.json").read_text()) == {"ca.crt": "Y2E="}
    assert (tmp_path / "read" / "config.yaml").read_text() == "sync: {}"


def test_a_cut_archive_is_read_again(reading, tmp_path):
    cut_once = (
        '#!/bin/sh\n[ -e "$POD/again" ] && exec cat "$1"\ntouch "$POD/again"\nhead -c 90 "$1"\n'
    )
    program(tmp_path / "pod" / "carry", cut_once)
    assert reading.run("read.sh") == 0


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("carry", '#!/bin/sh\nhead -c 90 "$1"\n', "came with another checksum in each of 3 tries"),
        ("pods", "ml-0 False\n", "no pod of vCluster ml in namespace team-ml is ready"),
        ("pods", "w-x-default-x-ml True\n", "no pod of vCluster ml in namespace team-ml is ready"),
        ("code", "1", "vCluster ml wrote no snapshot of its store"),
    ],
    ids=["cut", "not ready", "a tenant's", "no snapshot"],
)
def test_what_keeps_a_control_plane_from_being_read_is_said(
    reading, tmp_path, file, content, sentence
):
    program(tmp_path / "pod" / file, content)
    assert reading.run("read.sh") == 1
    assert sentence in reading.said
    assert not (tmp_path / "read" / "backup.json").exists()


@pytest.fixture
def starting(tmp_path):
    """Where a store is started, with stand-ins for the programs of vCluster's images."""
    data = tmp_path / "data"
    data.mkdir()
    return Jobs(
        tmp_path,
        BACKUP=str(copy_of(tmp_path / "backup")),
        DATA=str(data),
        VCLUSTER=str(program(tmp_path / "vcluster", VCLUSTER)),
        KINE=str(program(tmp_path / "kine", KINE)),
    )


def test_a_store_on_the_backup_has_all_keys(starting):
    assert starting.run("store.sh") == 0
    assert json.loads(starting.said) == {"keys": 3, "kinds": 3, "cluster": UID}


def test_a_store_that_lacks_a_key_is_found(starting, tmp_path):
    keys = {key: text for key, text in KEYS.items() if "secrets" not in key}
    less = archive(tmp_path / "less", keys)
    assert starting.run("store.sh", OTHER=less) == 1
    assert "has other keys than its archive: 2 in place of 3" in starting.said
    assert "registry/secrets/default/token" in starting.said
