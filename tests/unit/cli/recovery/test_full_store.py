"""What is said of a full store of a vCluster: the command that keeps its data."""

import os
import subprocess
from types import SimpleNamespace

import pytest

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.store_use import store_use
from kai_fleet.releases.chart_stores import REPLICAS, ChartStore, store_of
from kai_fleet.releases.chart_values import merged, nested
from kai_fleet_cli.recovery import full_store
from tests.unit.cli.recovery.test_held_up import QUEUES, explained
from tests.unit.components.cluster.canned_api import kubeconfig, serving

SQLITE, ETCD, NONE = ChartStore(), ChartStore("etcd", 3), ChartStore("external")
PVCS = "/api/v1/namespaces/team-ml/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
PODS = "/api/v1/namespaces/team-ml/pods"
SUMMARY = "/api/v1/nodes/n1/proxy/stats/summary"
METRICS = "/api/v1/namespaces/team-ml/pods/ml-etcd-{}:2381/proxy/metrics"
GIB = 2**30
# Public reports, and the words of other systems for the same.
FULL = [
    "rpc error: code = Unknown desc = database or disk is full",
    "Internal error occurred: etcdserver: mvcc: database space exceeded",
    "rpc error: code = Unknown desc = attempt to write a readonly database",
    "write /data/state.db-wal: no space left on device",
    "write /data/state.db: disk quota exceeded",
]


@pytest.fixture
def host():
    """The host's API server, with what a vCluster on SQLite or on etcd has there."""
    with serving() as (api, url):
        api.answers[CLASSES] = items({"metadata": {"name": "gp3"}, "allowVolumeExpansion": True})
        members = [f"data-ml-etcd-{n}" for n in range(3)]
        api.answers[PVCS] = items(*map(claim, ["data-ml-0", *members, "data-jobs-0"]))
        api.answers[PODS] = items({"metadata": {"name": "ml-0"}, "spec": {"nodeName": "n1"}})
        yield SimpleNamespace(answers=api.answers, url=url, api=Api.of_kubeconfig(kubeconfig(url)))


def items(*found):
    return 200, {"items": list(found)}


def claim(name, asks="5Gi", has="5Gi", **status):
    spec = {"storageClassName": "gp3", "resources": {"requests": {"storage": asks}}}
    status |= {"capacity": {"storage": has}}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def metrics(total, used, quota=2 * GIB):
    text = f"etcd_mvcc_db_total_size_in_bytes {total:.9e}\n"
    text += f"etcd_mvcc_db_total_size_in_use_in_bytes {used:.9e}\n"
    return 200, f"{text}etcd_server_quota_backend_bytes {quota:.9e}\n".encode()


@pytest.mark.parametrize("message", FULL)
def test_a_full_store_is_repaired_and_no_team_is_removed(host, message):
    said = explained(message, QUEUES, host=host.url)
    assert said.partition("team ml: ")[2] == (
        "the store of its vCluster is full. Repair it with: kubectl -n team-ml patch pvc data-ml-0"
        ' -p \'{"spec":{"resources":{"requests":{"storage":"10Gi"}}}}\' && kubectl -n team-ml'
        " rollout restart statefulset/ml && kubectl -n team-ml rollout status statefulset/ml, then"
        " run the same command again"
    )


@pytest.mark.parametrize("message", FULL)
def test_where_the_host_does_not_answer_the_way_is_said_all_the_same(message):
    said = explained(message, QUEUES)
    assert "have its volume grow (kubectl -n team-ml get pvc)" in said
    assert "team remove" not in said


def test_a_volume_that_was_to_grow_is_not_told_to_grow_again(host):
    waits = {"conditions": [{"type": "Resizing", "message": "waiting for the driver"}]}
    host.answers[PVCS] = items(claim("data-ml-0", "10Gi", **waits))
    cause, command = full_store.repair(host.api, "ml", SQLITE, FULL[0])
    assert cause == (
        "claim data-ml-0 of its full store is to grow and has 5Gi still (waiting for the driver):"
        " look with: kubectl -n team-ml describe pvc data-ml-0"
    )
    assert command == ""
    host.answers[PVCS] = items(claim("data-ml-0", "10Gi", conditions=[{"type": "Resizing"}]))
    cause, _ = full_store.repair(host.api, "ml", SQLITE, FULL[0])
    assert "is to grow and has 5Gi still: look with" in cause
    host.answers[PVCS] = items(claim("data-ml-0", "10Gi", "10Gi"))
    _, command = full_store.repair(host.api, "ml", SQLITE, FULL[0])
    assert '"storage":"20Gi"' in command


def test_with_room_on_its_volume_the_control_plane_starts_again(host):
    host.answers[SUMMARY] = summary("data-ml-0", 5)
    cause, command = full_store.repair(host.api, "ml", SQLITE, FULL[2])
    assert "its volume has room now" in cause
    assert command.startswith("kubectl -n team-ml rollout restart statefulset/ml")
    host.answers[SUMMARY] = summary("data-ml-0", 95)
    assert "patch pvc" in full_store.repair(host.api, "ml", SQLITE, FULL[2])[1]


def summary(name, percent):
    volume = {"usedBytes": percent * GIB, "capacityBytes": 100 * GIB}
    volume |= {"pvcRef": {"name": name, "namespace": "team-ml"}}
    other = volume | {"usedBytes": 0, "pvcRef": {"name": name, "namespace": "other"}}
    return 200, {"pods": [{"volume": [volume, {"name": "tmp"}, other]}, {}]}


def test_a_class_that_lets_nothing_grow_is_named(host):
    host.answers[CLASSES] = items({"metadata": {"name": "gp3"}})
    cause, command = full_store.repair(host.api, "ml", SQLITE, FULL[0])
    assert "StorageClass gp3 lets no volume grow" in cause
    assert command == "kubectl patch storageclass gp3 -p '{\"allowVolumeExpansion\":true}'"


def test_every_member_of_an_etcd_grows(host):
    _, command = full_store.repair(host.api, "ml", ETCD, FULL[3])
    assert "patch pvc data-ml-etcd-0 data-ml-etcd-1 data-ml-etcd-2 -p" in command
    assert "rollout restart statefulset/ml-etcd &&" in command


def test_the_volume_of_every_control_plane_with_an_etcd_inside_grows(host):
    values = nested("controlPlane.backingStore.etcd.embedded.enabled", True)
    store = store_of(merged(values, nested(REPLICAS, 3.0)))
    host.answers[PVCS] = items(*map(claim, ["data-ml-0", "data-ml-1", "data-ml-2", "data-ml-3"]))
    host.answers[SUMMARY] = summary("data-ml-0", 5)
    _, command = full_store.repair(host.api, "ml", store, FULL[3])
    assert "patch pvc data-ml-0 data-ml-1 data-ml-2 -p" in command
    host.answers[SUMMARY] = summary("data-ml-2", 95)
    assert store_use(host.api, "ml", store, ["n1"]).volumes == {"data-ml-2": 0.95}


def test_a_store_without_a_volume_is_told_so(host):
    cause, command = full_store.repair(host.api, "ml", NONE, FULL[0])
    assert "on no volume" in cause
    assert command == ""


def test_an_etcd_at_its_quota_is_compacted_defragmented_and_disarmed(host, tmp_path):
    _, command = full_store.repair(host.api, "ml", ETCD, FULL[1])
    # Stands for kubectl: notes what etcdctl is asked, and answers as its `fields` writer does.
    (tmp_path / "kubectl").write_text(
        '#!/bin/sh\nwhile [ "$1" != etcdctl ]; do shift; done\necho "$@" >> log\n'
        'case "$*" in\n*status*) printf \'"ClusterID" : 7\\n"Revision" : 42\\n\';;\n'
        "*compact*) exit 1;; esac\n"  # as where it is compacted already
    )
    (tmp_path / "kubectl").chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(command, shell=True, check=True, cwd=tmp_path, env=environment)
    asked = (tmp_path / "log").read_text().splitlines()
    assert [line.partition("etcd-client.key ")[2] for line in asked] == [
        "endpoint status -w fields",
        "compact 42",
        "defrag --cluster",
        "alarm disarm",
    ]
    assert all("--endpoints https://ml-etcd-0.ml-etcd-headless.team-ml:2379 " in x for x in asked)


def test_an_etcd_that_holds_its_quota_is_not_compacted_again(host):
    host.answers[METRICS.format(0)] = metrics(2 * GIB, 1.9 * GIB)
    cause, command = full_store.repair(host.api, "ml", ETCD, FULL[1])
    assert command == ""
    assert cause == (
        "what the etcd of its vCluster holds fills its quota of 2.0 GiB: write"
        " controlPlane.backingStore.etcd.deploy.statefulSet.extraArgs:"
        " [--quota-backend-bytes=4294967296] at vcluster.values of team ml in the stack file"
    )
    host.answers[METRICS.format(0)] = metrics(2 * GIB, 0.2 * GIB)
    assert "defrag" in full_store.repair(host.api, "ml", ETCD, FULL[1])[1]


def test_what_is_not_read_is_not_known_to_be_empty(host):
    assert store_use(host.api, "ml", ETCD, ["n1"]).volumes == {}
    host.answers[SUMMARY] = 200, {"pods": "none"}
    host.answers[METRICS.format(0)] = 200, b"etcd_mvcc_db_total_size_in_bytes 1\n"
    use = store_use(host.api, "ml", ETCD, ["n1"])
    assert (use.volumes, use.etcds) == ({}, {})


@pytest.mark.parametrize("quota", ["NaN", "+Inf", "0", "-1", "x", "1e999"])
def test_numbers_of_an_etcd_that_are_none_are_not_taken(host, quota):
    """Who writes in the team's namespace may put a pod of that name there."""
    text = "\n".join(
        [
            "etcd_mvcc_db_total_size_in_bytes 5e+09",
            "etcd_mvcc_db_total_size_in_use_in_bytes 5e+09",
            f"etcd_server_quota_backend_bytes {quota}",
        ]
    )
    host.answers[METRICS.format(0)] = 200, text.encode()
    assert store_use(host.api, "ml", ETCD, []).etcds == {}
    assert "defrag" in full_store.repair(host.api, "ml", ETCD, FULL[1])[1]
