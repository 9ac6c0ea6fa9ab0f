"""The backups that a CronJob keeps, read through a pod like those of its Jobs."""

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from kai_fleet_cli.backups import host as waiting
from kai_fleet_cli.backups.scheduled import Kept
from kai_fleet_cli.errors import UserError
from tests.unit.cli.backups.stopped_cluster import Host
from tests.unit.cli.backups.test_backup import clear_tar

CRON_JOB = "/apis/batch/v1/namespaces/backups/cronjobs/backup-ml"
POD = "/api/v1/namespaces/backups/pods/restore-ml"
TIMES = {"first": "2026-11-28T06:00:01.123456789Z", "last": "2026-11-29T06:00:01+01:00"}


class WithRestic(Host):
    """A host whose CronJob has kept two backups, as restic lists them."""

    def __init__(self, kept=TIMES):
        super().__init__()
        keep = {"name": "keep", "image": "restic", "command": ["sh", "keep.sh"]}
        template = {"spec": {"initContainers": [{"name": "read"}], "containers": [keep]}}
        self.objects[CRON_JOB] = {"spec": {"jobTemplate": {"spec": {"template": template}}}}
        self.kept = kept
        self.dumped = []
        self.pods = []

    def post(self, path, body):
        self.pods.append(body)
        super().post(path, {**body, "status": {"phase": "Running"}})

    def run(self, verb, *words, sent=b""):
        if "snapshots" in words:
            listed = [{"id": each, "time": time} for each, time in self.kept.items()]
            return json.dumps(listed).encode()
        assert POD in self.objects
        self.dumped.append(words[-2])
        return clear_tar()


def read(host, at=None):
    return Kept(host, "ml", "backups").read(at)


def test_the_last_one_is_read_in_a_pod_with_restic_alone():
    host = WithRestic()
    assert read(host).record["team"] == "ml"
    assert host.dumped == ["last"]
    (pod,) = host.pods
    assert "initContainers" not in pod["spec"]
    assert pod["spec"]["containers"][0]["image"] == "restic"
    assert POD not in host.objects


def test_of_a_time_the_last_one_until_then_is_read():
    host = WithRestic()
    read(host, datetime(2026, 11, 29, 4, 59, tzinfo=UTC))
    read(host, datetime(2026, 11, 29, 5, 1, tzinfo=UTC))
    assert host.dumped == ["first", "last"]


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (TIMES, "has no backup of that time; its first one is of 2026-11-28 06:00"),
        ({}, "has no backup of that time"),
    ],
)
def test_where_there_is_none_the_first_one_is_named(kept, said):
    host = WithRestic(kept)
    with pytest.raises(UserError, match=said):
        read(host, datetime(2026, 1, 1, tzinfo=UTC))
    assert POD not in host.objects


def test_without_its_cron_job_it_says_how_to_read_one_by_hand():
    host = WithRestic()
    del host.objects[CRON_JOB]
    with pytest.raises(UserError, match=r"no CronJob backup-ml .* restic --repo TO dump"):
        read(host)


def test_a_pod_that_does_not_start_is_named_and_goes(monkeypatch):
    host = WithRestic()
    monkeypatch.setattr("kai_fleet_cli.backups.scheduled._START_SECONDS", 0.01)
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(host, "post", lambda path, body: Host.post(host, path, body))
    with pytest.raises(UserError, match="does not start"):
        read(host)
    assert POD not in host.objects


def test_a_pod_of_an_earlier_restore_is_replaced():
    host = WithRestic()
    host.objects[POD] = {"metadata": {"name": "restore-ml"}, "status": {"phase": "Running"}}
    with suppress(UserError):
        read(host)
    assert host.dumped == ["last"]
