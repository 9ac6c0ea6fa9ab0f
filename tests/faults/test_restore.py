"""A backup that is restored: after a lost volume, a lost namespace, a kill, into another store."""

import json
import tarfile
from pathlib import Path

import pytest
from kubernetes import client

from tests.engine.sandbox_commands import until
from tests.faults.case import client_of
from tests.faults.desired import converge, with_ml
from tests.faults.test_emptied_vcluster import as_declared, uid
from tests.faults.test_lost_volume import CLAIM, NAMESPACE, POD, claims

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(900)]

NOTE = "written-before-the-backup"
NEWER = "written-after-the-backup"


@pytest.fixture
def backed_up(case, reference, foreign):
    """A stack as declared, whose team ml has a backup, and an object inside that it holds."""
    case.edit(with_ml)
    converge(case, lost=["ml"])
    inside = client.CoreV1Api(client_of(case.inside("ml")))
    for name in {NOTE, NEWER} & notes(case):
        inside.delete_namespaced_config_map(name, "default")
    inside.create_namespaced_config_map("default", {"metadata": {"name": NOTE}})
    file = case.checkout.parent / "ml.backup"
    taken = case.fleet("team", "backup", "ml", "--to", str(file), "--key", str(key(case)))
    assert taken.code == 0, taken.reported
    assert file.stat().st_mode & 0o077 == key(case).stat().st_mode & 0o077 == 0
    inside.create_namespaced_config_map("default", {"metadata": {"name": NEWER}})
    return case, file


def key(case):
    """The file of the key, which the first backup makes."""
    return case.checkout.parent / "backup.key"


def notes(case):
    inside = client.CoreV1Api(client_of(case.inside("ml")))
    return {item.metadata.name for item in inside.list_namespaced_config_map("default").items}


def as_before(case, reference):
    """As declared, without what these tests wrote inside."""
    inside = client.CoreV1Api(client_of(case.inside("ml")))
    for name in {NOTE, NEWER} & notes(case):
        inside.delete_namespaced_config_map(name, "default")
    as_declared(case, reference)


def restore(case, file, *more):
    return case.fleet("team", "restore", "ml", "--from", str(file), *more, "--key", str(key(case)))


def test_a_lost_volume_is_restored_and_the_update_changes_nothing(backed_up, reference):
    case, file = backed_up
    before = uid(case)
    core = client.CoreV1Api(client_of(case.host))
    core.delete_namespaced_persistent_volume_claim(CLAIM, NAMESPACE)
    core.delete_namespaced_pod(POD, NAMESPACE)
    until(lambda: CLAIM not in claims(core))
    done = restore(case, file, "--yes")
    assert done.code == 0, done.reported
    assert "Nothing changed" in done.reported
    assert uid(case) == before
    assert NOTE in notes(case) and NEWER not in notes(case)
    as_before(case, reference)


def test_nobody_is_asked_and_nothing_is_done_without_a_terminal(backed_up):
    case, file = backed_up
    refused = restore(case, file)
    assert refused.code == 1
    assert "would lose what is newer" in refused.last and "--yes" in refused.last
    assert NEWER in notes(case)


def test_what_is_newer_is_named_and_kept_in_a_file(backed_up):
    case, file = backed_up
    done = restore(case, file, "--yes")
    assert done.code == 0, done.reported
    assert "newer than the backup, and lost: 1 configmaps" in done.reported
    (kept,) = file.parent.glob("ml-before-restore-*.backup")
    again = restore(case, kept, "--yes")
    kept.unlink()
    assert again.code == 0, again.reported
    assert {NOTE, NEWER} <= notes(case)


def test_a_killed_restore_is_named_by_the_doctor_and_goes_on(backed_up, reference):
    case, file = backed_up
    before = uid(case)
    running = case.start(
        "team", "restore", "ml", "--from", str(file), "--yes", "--key", str(key(case))
    )
    running.wait_for("stopping the control plane")
    running.kill("all")
    core = client.CoreV1Api(client_of(case.host))
    if POD in pods(core):  # it was killed before it came to that
        core.delete_namespaced_pod(POD, NAMESPACE)
    until(lambda: held(case))
    assert POD not in pods(core)
    done = restore(case, file, "--yes")
    assert done.code == 0, done.reported
    assert uid(case) == before
    as_before(case, reference)


def pods(core):
    return {pod.metadata.name for pod in core.list_namespaced_pod(NAMESPACE).items}


def held(case):
    """Whether the doctor says that a restore was cut off."""
    found = json.loads(case.fleet("doctor", "--json").reported)["findings"]
    return any("is being restored to" in each["cause"] for each in found)


def test_a_lost_namespace_comes_back_with_what_was_in_it(backed_up, reference):
    case, file = backed_up
    before = uid(case)
    core = client.CoreV1Api(client_of(case.host))
    core.delete_namespace(NAMESPACE)
    until(lambda: NAMESPACE not in {each.metadata.name for each in core.list_namespace().items})
    done = restore(case, file, "--yes")
    assert done.code == 0, done.reported
    assert uid(case) == before
    assert NOTE in notes(case)
    as_before(case, reference)


def test_another_store_gets_what_was_in_the_one_before(backed_up, reference):
    """More members of an etcd do so, too. Until the restore an update is refused, and names it."""
    case, file = backed_up
    before = uid(case)
    for vcluster in ({"store": {"type": "etcd"}}, {"availability": "high"}, {}):

        def with_store(config, vcluster=vcluster):
            with_ml(config)
            config["kai-fleet:teams"]["ml"].setdefault("vcluster", {}).update(vcluster)

        case.edit(with_store)
        refused = case.fleet("up")
        assert refused.code == 1
        assert "fleet team restore ml --from FILE" in refused.reported
        done = restore(case, file, "--yes")
        assert done.code == 0, done.reported
        assert uid(case) == before
        assert NOTE in notes(case) and NEWER not in notes(case)
    as_before(case, reference)


@pytest.mark.parametrize("damage", ["cut", "changed", "another key", "no backup"])
def test_a_damaged_file_stops_nothing(backed_up, damage):
    case, file = backed_up
    damaged = file.with_name("damaged.backup")
    data = bytearray(file.read_bytes())
    if damage == "cut":
        data = data[: len(data) // 2]
    elif damage == "changed":
        data[-100] ^= 1
    elif damage == "another key":
        other = file.with_name("other.key")
        taken = case.fleet("team", "backup", "ml", "--to", str(damaged), "--key", str(other))
        assert taken.code == 0, taken.reported
        data = bytearray(damaged.read_bytes())
    else:
        with tarfile.open(damaged, "w") as tar:
            tar.add(Path(__file__), "test.py")
        data = bytearray(damaged.read_bytes())
    damaged.write_bytes(data)
    refused = restore(case, damaged, "--yes")
    assert refused.code == 1
    assert "damaged.backup" in refused.last
    assert NEWER in notes(case)
