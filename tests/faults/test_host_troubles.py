"""What signals, nodes, and other people on the host do to an update: each row of docs/faults.md
that no other file here walks.
"""

import json
import re
import shutil
import signal
import subprocess
from datetime import UTC, datetime

import pytest

from kai_fleet_cli.recovery import failures
from kai_fleet_cli.stack_file.reading import ROOT
from tests.attacks.http import Http
from tests.engine.broken_things import dead_webhook
from tests.engine.sandbox_commands import until
from tests.faults.case import STACK, client_of
from tests.faults.desired import converge, with_ml, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]

SPACE = "/api/v1/namespaces/team-ml"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
STATEFUL_SET = "/apis/apps/v1/namespaces/team-ml/statefulsets/ml"
KILLED = {"exitCode": 137, "reason": "OOMKilled"}


@pytest.fixture
def host(case):
    return Http(client_of(case.host))


def quota(config, gpus):
    config["kai-fleet:teams"]["ml"]["queues"]["default"]["children"]["train"]["gpu"]["quota"] = gpus


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["INT", "TERM"])
def test_an_interrupted_update_goes_on_by_the_printed_command(case, reference, foreign, number):
    case.edit(without_ml)
    converge(case)
    case.edit(with_ml)
    running = case.start("up")
    running.wait_for("Namespace ml-namespace created")
    running.process.send_signal(number)
    ran = running.end()
    assert ran.code == 128 + number, ran.reported
    assert "interrupted: Pulumi stopped after the steps that it was at" in ran.last
    converge(case, failed=ran)
    assert reference.differences(case, "added") == []


def test_nodes_are_cordoned_while_a_vcluster_is_to_start(case, reference, foreign, host):
    """Told while it waits: where the command is run meanwhile, that same update ends well."""
    case.edit(without_ml)
    converge(case)
    names = [item["metadata"]["name"] for item in host.items("/api/v1/nodes")]
    for name in names:
        host.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    try:
        case.edit(with_ml)
        running = case.start("up")
        running.wait_for("kubectl uncordon", 90)
        assert "cordoned nodes" in running.reported()
        command = re.findall(r"kubectl uncordon[\w -]+\w", running.reported())[0]
        assert case.typed(command).code == 0
        ran = running.end()
        assert ran.code == 0, ran.reported
    finally:
        for name in names:
            host.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"unschedulable": None}})
    assert reference.differences(case, "added") == []


def test_a_control_plane_is_killed_for_memory(case, reference, foreign, host):
    case.edit(with_ml)
    converge(case)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    killed = {"terminated": {**KILLED, "finishedAt": now}}
    ended = {"restartCount": 14, "ready": False, "lastState": killed}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    status = {"name": "syncer", "image": "x", "imageID": "", "state": waiting, **ended}
    not_ready = [{"type": name, "status": "False"} for name in ("Ready", "ContainersReady")]
    body = {"status": {"containerStatuses": [status], "conditions": not_ready}}
    host.ask("PATCH", f"{SPACE}/pods/ml-0/status", body)
    until(lambda: not host.get(STATEFUL_SET)["status"].get("readyReplicas"))
    found = json.loads(case.fleet("doctor", "--json").reported)["findings"]
    said = "".join(f"{each['cause']} {each['fix']}" for each in found if each["level"] != "ok")
    assert "was killed for memory (OOMKilled, 14 restarts)" in said
    assert "kai-fleet:teams.ml.vcluster.resources" in said

    def more(config):
        memory = {"limits": {"memory": "6Gi"}}
        config["kai-fleet:teams"]["ml"]["vcluster"] = {"resources": memory}

    case.edit(more)
    converge(case)
    assert case.fleet("doctor").code == 0
    case.edit(with_ml)
    converge(case)
    assert reference.differences(case, "added") == []


def test_a_webhook_of_others_is_away(case, reference, foreign, host):
    """Its owner repairs it; then the same command goes on."""
    case.edit(with_ml)
    converge(case)
    body = dead_webhook("corp-policy")
    (hook,) = body["webhooks"]
    hook["name"] = "validate.corp.example.com"
    hook["clientConfig"]["service"] = {"name": "policy", "namespace": "someone-else"}
    hook["rules"] = [
        {**hook["rules"][0], "operations": ["UPDATE"], "resources": ["resourcequotas"]}
    ]
    del hook["objectSelector"]
    hook["namespaceSelector"] = {"matchLabels": {"kai-fleet/team": "ml"}}
    host.post(HOOKS, body)
    try:
        case.edit(lambda config: config["kai-fleet:teams"]["ml"].update(gpus=9))
        ran = case.fleet("up")
        doctor = case.fleet("doctor").reported
    finally:
        host.ask("DELETE", f"{HOOKS}/corp-policy")
    assert ran.code == 1
    assert "the update is done, but for team ml" in ran.reported, "the engine went on"
    assert "the cluster asks webhook validate.corp.example.com of others" in ran.last, ran.reported
    assert "Service policy of namespace someone-else" in ran.last
    assert "webhook corp-policy" in doctor
    converge(case, failed=ran)
    case.edit(with_ml)
    converge(case)
    assert reference.differences(case, "added") == []


def test_somebody_elses_release_has_the_name(case, reference, foreign, host):
    """It is left to its owner, who gives it another name."""
    case.edit(without_ml)
    converge(case)
    helm = (str(case.tool("helm")), "--kubeconfig", str(case.host), "-n", "team-ml")
    chart = str(ROOT / "sandbox" / "charts" / "nvidia-device-plugin")
    subprocess.run([*helm, "install", "ml", chart, "--create-namespace"], check=True)
    case.edit(with_ml)
    ran = case.fleet("up")
    assert ran.code == 1
    assert "the update is done, but for team ml" in ran.reported
    assert (
        "Helm release ml of namespace team-ml is there already, and this stack did not" in ran.last
    )
    assert "this stack did not make it: it is of chart nvidia-device-plugin" in ran.last
    assert "delete" not in ran.last
    subprocess.run([*helm, "get", "manifest", "ml"], check=True)
    subprocess.run([*helm, "uninstall", "ml"], check=True)
    converge(case)
    assert "Nothing changed" in case.up().reported
    case.edit(without_ml)
    converge(case)
    host.ask("DELETE", SPACE)
    until(lambda: reference.differences(case, "removed") == [])


@pytest.mark.parametrize("lost", [f"{SPACE}/services/ml", STATEFUL_SET], ids=["Service", "plane"])
def test_a_part_of_a_vcluster_is_deleted_by_hand(case, reference, foreign, host, lost):
    case.edit(with_ml)
    converge(case)
    host.ask("DELETE", lost)
    case.edit(lambda config: quota(config, 5))
    reported = converge(case)
    assert "helm -n team-ml get manifest ml" in "".join(reported)
    case.edit(with_ml)
    converge(case)
    assert "Nothing changed" in case.up().reported
    assert case.fleet("doctor").code == 0
    # `kubectl apply` of a manifest leaves out the annotations that Helm writes.
    made_again = ("Service team-ml/ml:", "StatefulSet team-ml/ml:")
    differences = reference.differences(case, "added")
    assert [line for line in differences if not any(name in line for name in made_again)] == []
    case.edit(without_ml)
    converge(case)
    assert reference.differences(case, "removed") == []


def test_the_host_is_gone_for_good(case, tmp_path):
    """What is printed last forgets the stack, and leaves its file. `fleet destroy` would start a
    sandbox's API server again: what it says is in test_killed_for_memory.py of the unit tests.
    """
    case.edit(without_ml)
    converge(case)
    folder, file = case.state.parent, case.file.read_text()
    kept = shutil.copytree(folder, tmp_path / "state")
    run = failures.Run(STACK, "fleet destroy --refresh")
    said = failures.cause_and_repair("no such host", run, section=failures.Section.REMOVAL)
    try:
        forgotten = case.typed(said.rpartition("forgets the stack: ")[2])
        assert forgotten.code == 0, forgotten.reported
        assert not case.state.exists()
        assert case.file.read_text() == file
    finally:
        shutil.copytree(kept, folder, dirs_exist_ok=True)
        case.file.write_text(file)
    assert "Nothing changed" in case.up().reported
