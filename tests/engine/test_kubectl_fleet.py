"""`kubectl fleet` in a team's vCluster of the sandbox: exactly the numbers that were put there."""

import functools
import itertools
import re
import subprocess

import pytest
import yaml
from kubernetes import client

from tests.engine import kubectl_plugin
from tests.engine.product import api
from tests.engine.sandbox_commands import until
from tests.unit.repository import markdown_pages

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]
GPU = "nvidia.com/gpu"


def pod(name, queue, limits=None, **annotations):
    notes = {key.replace("_", "-"): value for key, value in annotations.items()}
    resources = {"limits": limits or {}, "requests": limits or {}}
    labels = {"kai.scheduler/queue": queue}
    return {
        "metadata": {"name": name, "labels": labels, "annotations": notes},
        "spec": {
            "schedulerName": "kai-scheduler",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": resources}],
        },
    }


RUNNING = [
    pod("whole", "train", {GPU: "2", "cpu": "1500m", "memory": "2G"}),
    pod("half", "train", gpu_fraction="0.5"),
    pod("fifth", "serve", {"cpu": "250m"}, gpu_fraction="0.2"),
    # 20480 MiB of GPUs with 81920, of which KAI takes 81900: 0.26 of each of two.
    pod("memory", "train", gpu_memory="20480", gpu_fraction_num_devices="2"),
    pod("one", "serve", {GPU: "1"}),
]
WAITING = [pod("nine", "train", {GPU: "9"}), pod("lost", "nowhere", gpu_fraction="0.5")]


@pytest.fixture(scope="module")
def kubeconfig(one_team, tmp_path_factory):
    """In a folder of its own: a team has no checkout."""
    file = tmp_path_factory.mktemp("team") / "ml.kubeconfig"
    file.write_text(one_team.kubeconfig.read_text())
    return file


@pytest.fixture(scope="module")
def run(one_team):
    return functools.partial(kubectl_plugin.run, one_team.sandbox)


@pytest.fixture(scope="module")
def asked(one_team):
    return functools.partial(kubectl_plugin.asked, one_team.sandbox)


@pytest.fixture(scope="module")
def team(kubeconfig):
    """The team's cluster with pods on it, each where the stand-in for KAI's binder put it."""
    core = client.CoreV1Api(api(kubeconfig.read_text()))
    for body in RUNNING:
        core.create_namespaced_pod("default", body)
        until(
            lambda: all(item.spec.node_name for item in core.list_namespaced_pod("default").items)
        )
    for body in WAITING:
        core.create_namespaced_pod("default", body)
    yield core
    for body in [*RUNNING, *WAITING]:
        core.delete_namespaced_pod(body["metadata"]["name"], "default", grace_period_seconds=0)


def gpu(queue):
    names = ("quota", "limit", "inUse", "waiting", "borrowed", "lent")
    return tuple(queue["gpu"][name] for name in names)


def test_queues_have_the_numbers_that_were_put_there(team, kubeconfig, asked):
    found = {queue["name"]: queue for queue in asked(kubeconfig, "queues")["queues"]}
    assert gpu(found["train"]) == (3, 6, 3.02, 9, 0.02, 0)
    assert gpu(found["serve"]) == (4, 4, 1.2, 0, 0, pytest.approx(0.02 * 2.8 / 3.8, abs=1e-6))
    assert gpu(found["lab"]) == (1, -1, 0, 0, 0, pytest.approx(0.02 * 1 / 3.8, abs=1e-6))
    assert gpu(found["default"]) == (8, 8, 4.22, 9, 0, 0)
    assert (found["train"]["cpu"]["inUse"], found["train"]["memory"]["inUse"]) == (1500, 2000)
    assert found["train"]["memory"]["quota"] == 64000
    assert (found["default"]["pods"], found["default"]["waitingPods"]) == (5, 1)


def test_what_is_printed_with_a_new_kubeconfig_runs(team, kubeconfig, run):
    printed = ["fleet", "queues", "--kubeconfig", str(kubeconfig)]
    text = run(kubeconfig.with_name("no-such-file"), *printed)
    assert "└ train" in text
    assert max(map(len, text.splitlines())) <= 80


def test_pods_say_who_is_on_which_gpu(team, kubeconfig, asked):
    found = asked(kubeconfig, "pods")
    pods = {one["name"]: one for one in found["pods"]}
    held = {name: one["gpu"] for name, one in pods.items() if one["node"]}
    assert held == {"whole": 2, "half": 0.5, "fifth": 0.2, "memory": 0.52, "one": 1}
    shared = {name: one["sharedGpus"] for name, one in pods.items() if one["sharedGpus"]}
    assert [each["part"] for each in shared["memory"]] == [0.26, 0.26]
    # The stand-in fills the fullest GPU first: half, fifth, and of two devices one more.
    assert shared["half"][0]["device"] == shared["fifth"][0]["device"]
    assert shared["half"][0]["device"].startswith("GPU-")
    free = sum(node["free"] for node in found["nodes"])
    reserved = {each["device"] for each in itertools.chain(*shared.values())}
    assert free == sum(node["gpus"] for node in found["nodes"]) - 3 - len(reserved)


def test_pending_says_why_and_what_to_do(team, kubeconfig, asked, run):
    found = {one["name"]: one for one in asked(kubeconfig, "pending")["pending"]}
    assert set(found) == {"nine", "lost"}
    assert "asks for 9 GPUs, and queue train may hold at most 6" in found["nine"]["cause"]
    assert "queue nowhere" in found["lost"]["cause"]
    assert "lab, serve or train" in found["lost"]["fix"]
    assert max(map(len, run(kubeconfig, "fleet", "pending").splitlines())) <= 80


def test_a_job_whose_pods_admission_denies_is_shown_with_the_reason(team, kubeconfig, asked, run):
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    team.create_namespace({"metadata": {"name": "strict", "labels": level}})
    batch = client.BatchV1Api(api(kubeconfig.read_text()))
    job = {"metadata": {"name": "tune"}, "spec": {"template": pod("tune", "train")}}
    batch.create_namespaced_job("strict", job)
    try:
        until(lambda: asked(kubeconfig, "pending")["denied"])
        (one,) = asked(kubeconfig, "pending")["denied"]
        assert (one["kind"], one["namespace"], one["name"]) == ("Job", "strict", "tune")
        assert one["cause"].startswith("Pod Security restricted:latest of its namespace refuses")
        assert "securityContext" in one["fix"]
        assert "strict/tune" in run(kubeconfig, "fleet", "pending")
    finally:
        batch.delete_namespaced_job("tune", "strict", propagation_policy="Background")
        team.delete_namespace("strict")


def test_a_command_of_a_fix_runs(team, kubeconfig, asked, run):
    batch = client.BatchV1Api(api(kubeconfig.read_text()))
    template = pod("odd", "train")
    template["spec"]["serviceAccountName"] = "absent"  # of which nothing is known here
    batch.create_namespaced_job(
        "default", {"metadata": {"name": "odd"}, "spec": {"template": template}}
    )
    try:
        until(lambda: asked(kubeconfig, "pending")["denied"])
        (one,) = asked(kubeconfig, "pending")["denied"]
        (command,) = re.findall("`(kubectl .*?)`", one["fix"])
        assert one["cause"] in " ".join(run(kubeconfig, *command.split()[1:]).split())
    finally:
        batch.delete_namespaced_job("odd", "default", propagation_policy="Background")


@pytest.fixture
def reader(team, kubeconfig):
    """A kubeconfig of an account that has no rights yet."""
    team.create_namespaced_service_account("default", {"metadata": {"name": "reader"}})
    token = team.create_namespaced_service_account_token(
        "reader", "default", {"spec": {"expirationSeconds": 600}}
    ).status.token
    document = yaml.safe_load(kubeconfig.read_text())
    for user in document["users"]:
        user["user"] = {"token": token}
    file = kubeconfig.with_name("reader.kubeconfig")
    file.write_text(yaml.safe_dump(document))
    yield file
    team.delete_namespaced_service_account("reader", "default")


def test_a_user_of_one_namespace_gets_what_can_be_said(team, kubeconfig, reader, asked, run):
    admin = functools.partial(run, kubeconfig)
    admin("create", "role", "reader", "--verb=get,list", "--resource=pods")
    admin("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader")
    try:
        found = asked(reader, "pods")
        assert {one["name"] for one in found["pods"]} >= {"whole", "half", "nine"}
        assert "you may list pods of namespace default only" in str(found["notes"])
        assert "you may not list nodes" in str(found["notes"])
        text = " ".join(run(reader, "fleet", "queues").split())
        assert "you may not list queues: quotas and limits are not known" in text
        assert {one["name"] for one in asked(reader, "pending")["pending"]} == {"nine", "lost"}
    finally:
        admin("delete", "role,rolebinding", "reader")


def test_the_rights_of_the_page_are_enough(team, kubeconfig, reader, one_team, asked, run):
    (commands,) = [
        block.text
        for block in markdown_pages.blocks("console")
        if "clusterrole" in block.text and block.page == "docs/ml-engineers.md"
    ]
    group = "--group=system:serviceaccounts:default"
    home = str(kubeconfig.parent)  # where kubectl keeps what it has found out
    env = {"PATH": one_team.sandbox.env()["PATH"], "KUBECONFIG": str(kubeconfig), "HOME": home}
    script = commands.replace("--group=ml-engineers", group)
    subprocess.run(["sh", "-ec", script], env=env, check=True, capture_output=True)
    try:
        for command in ("queues", "pods", "pending"):
            found, whole = asked(reader, command), asked(kubeconfig, command)
            assert found["notes"] == []
            assert found | {"kai": None} == whole | {"kai": None}
    finally:
        run(kubeconfig, "delete", "clusterrole,clusterrolebinding", "fleet-reader")
