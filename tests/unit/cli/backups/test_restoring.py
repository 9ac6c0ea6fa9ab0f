"""A restore: nothing starts on a store that is not whole, and the same steps go on after a kill."""

import json
from contextlib import suppress

import pytest

from kai_fleet.releases.chart_stores import ChartStore
from kai_fleet_cli.backups import host as waiting
from kai_fleet_cli.backups.restoring import Restore
from kai_fleet_cli.errors import UserError
from tests.unit.cli.backups.stopped_cluster import (
    CLAIM,
    CONTROLLER,
    DEPLOYMENT,
    FILLER,
    HOLD,
    NAMESPACE,
    POD,
    REPLICA_SETS,
    WORKLOAD,
    Host,
    KilledError,
    stateful_set,
)
from tests.unit.cli.backups.test_backup import CERTIFICATES, taken

CLAIMS = CLAIM.rpartition("/")[0]
OLD = {"old": True}
NEW = {"size": "5Gi"}
EMBEDDED = ChartStore()
THREE_MEMBERS = ChartStore(type="etcd", members=3)


def claim_specs(host):
    return [claim["spec"] for claim in host.list(CLAIMS)]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(waiting, "_PAUSE_SECONDS", 0.0)


def restore(host, store=EMBEDDED):
    steps = Restore(host, taken())
    steps.hold(store)
    host.install()
    steps.stop()
    steps.provide_store()
    steps.fill()
    steps.start()


def test_a_lost_volume_gets_the_backup_before_the_control_plane_starts():
    host = Host()
    restore(host)
    assert host.starts == ["restored"]
    assert host.sent == taken().snapshot
    claim = host.objects[CLAIM]
    assert claim["metadata"]["labels"] == {"app": "vcluster", "release": "ml"}
    assert claim["spec"] == {"size": "5Gi"}
    assert host.objects[f"{NAMESPACE}/secrets/ml-certs"]["data"] == CERTIFICATES
    assert HOLD not in host.objects and FILLER not in host.objects


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({"ca.crt": "TkVX", "sa.key": CERTIFICATES["sa.key"]}, True),
        ({"ca.crt": "TkVX", "sa.key": "T1RIRVI="}, False),
        ({}, False),
    ],
)
def test_a_newer_authority_of_the_same_vcluster_stays(found, kept):
    """What ended somebody's kubeconfig since the backup is not undone."""
    host = Host()
    host.post(f"{NAMESPACE}/secrets", {"metadata": {"name": "ml-certs"}, "data": found})
    restore(host)
    data = host.objects[f"{NAMESPACE}/secrets/ml-certs"]["data"]
    assert data == (found if kept else CERTIFICATES)


def test_the_certificates_go_with_what_owns_the_other_secret():
    host = Host()
    host.written = {"ownerReferences": [CONTROLLER]}
    restore(host)
    certificates = host.objects[f"{NAMESPACE}/secrets/ml-certs"]
    assert certificates["metadata"]["ownerReferences"] == [CONTROLLER]


def test_a_volume_that_is_there_stays():
    host = Host()
    host.post(f"{NAMESPACE}/persistentvolumeclaims", {"metadata": {"name": "data-ml-0"}})
    before = host.objects[CLAIM]
    restore(host)
    assert host.objects[CLAIM] is before
    assert host.starts == ["empty", "restored"]


def writes_of_a_restore():
    host = Host()
    restore(host)
    return 1000 - host.writes_left


@pytest.mark.parametrize("writes", range(writes_of_a_restore()))
def test_after_a_kill_before_each_write_the_same_steps_go_on(writes):
    host = Host()
    host.writes_left = writes
    with pytest.raises(KilledError):
        restore(host)
    host.writes_left = 1000
    restore(host)
    assert set(host.starts) == {"restored"}
    assert POD in host.objects and HOLD not in host.objects


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("cuts", 7, "arrived cut"),
        ("ends", "Failed", "the restore failed"),
        ("says", "Successfully restored 4 etcd keys from snapshot", "the restore failed"),
        ("says", "unexpected EOF", "unexpected EOF"),
    ],
)
def test_a_restore_that_fails_leaves_the_control_plane_stopped(attribute, value, said):
    host = Host()
    setattr(host, attribute, value)
    with pytest.raises(UserError, match=said):
        restore(host)
    assert host.starts == []
    assert HOLD in host.objects


def test_without_the_guard_nothing_is_stopped():
    host = Host(guarded=False)
    host.post(f"{NAMESPACE}/persistentvolumeclaims", {"metadata": {"name": "data-ml-0"}})
    with pytest.raises(UserError, match="update the stack with this version"):
        restore(host)
    assert POD in host.objects


def test_the_controller_tries_at_once_and_its_object_is_as_before():
    """A controller that was refused waits for minutes, unless its object changes."""
    host = Host()
    before = json.dumps(host.objects[WORKLOAD])
    restore(host)
    assert host.changes_of(WORKLOAD) == 2
    assert json.dumps(host.objects[WORKLOAD]) == before


def test_a_namespace_that_is_gone_is_made():
    host = Host()
    del host.objects[NAMESPACE]
    Restore(host, taken()).hold(EMBEDDED)
    assert host.objects["/api/v1/namespaces/team-ml"]["metadata"]["name"] == "team-ml"


def test_the_pod_that_restores_is_the_control_planes_with_another_command():
    host = Host()
    host.ends = "Failed"
    with pytest.raises(UserError):
        restore(host)
    spec = host.objects[FILLER]["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "vcluster"
    assert "livenessProbe" not in container
    assert "/vcluster restore" in container["command"][-1]
    claims = [volume.get("persistentVolumeClaim") for volume in spec["volumes"]]
    assert {"claimName": "data-ml-0"} in claims
    assert host.objects[FILLER]["metadata"]["labels"]["app"] != "vcluster"


def test_a_control_plane_without_a_volume_has_the_pods_of_its_replica_sets():
    host = Host()
    host.run_without_volume()
    host.read.clear()
    pods = Restore(host, taken()).plane.pods()
    assert [pod.name for pod in pods] == ["ml-a", "ml-b"]
    assert host.read.count(DEPLOYMENT) == host.read.count(REPLICA_SETS) == 1


def test_a_control_plane_with_a_volume_has_no_replica_sets():
    host = Host()
    Restore(host, taken()).plane.pods()
    assert REPLICA_SETS not in host.read


def test_the_controllers_of_a_control_plane_without_a_volume_try_at_once():
    host = Host()
    host.run_without_volume()
    host.objects[f"{NAMESPACE}/secrets/vc-ml"] = {"metadata": {}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    host.objects[f"{NAMESPACE}/pods/ml-b"]["status"] = ready
    steps = Restore(host, taken())
    steps.hold(EMBEDDED)
    steps.start()
    tried = {path for path in host.patched if path.startswith(REPLICA_SETS)}
    assert tried == {f"{REPLICA_SETS}/ml-old", f"{REPLICA_SETS}/ml-new"}


@pytest.fixture
def etcd_host():
    """A host whose vCluster has an etcd of three members; the second one's claim is gone."""
    host = Host()
    etcd = stateful_set("ml-etcd", replicas=3)
    etcd["status"] = {"readyReplicas": 3}
    host.objects[f"{WORKLOAD}-etcd"] = etcd
    for number in (0, 2):
        claim = {"metadata": {"name": f"data-ml-etcd-{number}"}, "spec": OLD}
        host.objects[f"{CLAIMS}/data-ml-etcd-{number}"] = claim
    return host


def test_a_lost_member_of_an_etcd_has_all_begin_anew(etcd_host, capsys):
    """One that lost its volume is not let in again by the others."""
    restore(etcd_host, THREE_MEMBERS)
    assert claim_specs(etcd_host) == [NEW] * 3
    assert "all members of the store of ml-etcd begin anew" in capsys.readouterr().err


def test_members_that_are_all_there_keep_their_volumes(etcd_host):
    etcd_host.objects[f"{CLAIMS}/data-ml-etcd-1"] = {"metadata": {}, "spec": OLD}
    restore(etcd_host, THREE_MEMBERS)
    assert claim_specs(etcd_host) == [OLD] * 3


@pytest.mark.parametrize("writes", range(24))
def test_another_number_of_members_has_all_begin_anew_also_after_a_kill(writes):
    """The one that has the store would not let the others in."""
    host = Host()
    host.objects[f"{WORKLOAD}-etcd"] = stateful_set("ml-etcd") | {"status": {"readyReplicas": 3}}
    host.objects[f"{CLAIMS}/data-ml-etcd-0"] = {"metadata": {}, "spec": OLD}
    host.members = 3
    host.writes_left = writes
    with suppress(KilledError):
        restore(host, THREE_MEMBERS)
    host.writes_left = 1000
    restore(host, THREE_MEMBERS)
    assert claim_specs(host) == [NEW] * 3
    assert set(host.starts) == {"restored"}


@pytest.mark.parametrize(("ready", "answers"), [(0, False), (1, False), (2, True), (3, True)])
def test_an_etcd_is_read_while_it_has_a_quorum(etcd_host, ready, answers):
    etcd_host.objects[f"{WORKLOAD}-etcd"]["status"] = {"readyReplicas": ready}
    assert Restore(etcd_host, taken()).plane.etcd_is_ready() is answers
