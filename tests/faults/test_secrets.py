"""Secrets with markers in them: nothing that is printed, kept or listed has one in clear."""

import base64
import subprocess
import tempfile
import threading
from pathlib import Path

import psutil
import pytest
import yaml
from kubernetes import client

from sandbox.directory import Sandbox
from tests.attacks.http import Http
from tests.engine.emptied import Emptied
from tests.engine.product import api
from tests.engine.sandbox_commands import until
from tests.faults.case import STACK, Case, Ran
from tests.faults.desired import with_ml

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

GUARD = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/kai-fleet-pods"
MARKER = "marker-5bd1e7c0"
TOKEN, PASSWORD = f"{MARKER}-token", f"{MARKER}-password"


class Watch(threading.Thread):
    """Every command line that any process has, looked at again and again."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen: set[str] = set()
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.02):
            for pid in psutil.pids():
                try:
                    self.seen.add(" ".join(psutil.Process(pid).cmdline()))
                except (psutil.Error, OSError):
                    continue


@pytest.fixture(scope="module")
def secret(case, tmp_path_factory):
    """A stack whose kubeconfig and a password are secrets, on the fault tests' sandbox."""
    http = Http(api(case.host.read_text()))
    guard = http.get(GUARD)  # of the stack of the modules before, which has the cluster
    http.ask("DELETE", GUARD)
    host = Emptied(Sandbox(case.sandbox, ()))
    created = Case.make(tmp_path_factory.mktemp("secrets"))
    created.sandbox = case.sandbox
    environment = Sandbox(case.sandbox, ()).env()
    backend = created.checkout.parent / "state"
    backend.mkdir()
    created.environment = environment | {"PULUMI_BACKEND_URL": f"file://{backend}"}
    created.state_folder = backend
    kubeconfig = yaml.safe_load(case.host.read_text())
    kubeconfig["users"].append({"name": "other", "user": {"token": TOKEN}})

    def team(config):
        config["kai-fleet:cluster"] = {"name": "secret"}
        config["kai-fleet:gpu"] = {"provider": "none"}
        with_ml(config)
        ml = config["kai-fleet:teams"].pop("ml")
        config["kai-fleet:teams"].clear()
        config["kai-fleet:teams"]["nlp"] = ml
        ml["nodePool"] = {"kai-fleet/pool": "nlp"}
        ml["registries"] = {"mirror.example.com": {"username": "pull"}}

    created.edit(team)

    def pulumi(*arguments, given=None):
        subprocess.run(
            [str(case.tool("pulumi")), *arguments, "--stack", STACK, "--non-interactive"],
            cwd=created.checkout,
            env=created.variables(),
            input=given,
            text=True,
            check=True,
            capture_output=True,
        )

    pulumi("stack", "init")
    for path, value in (
        ("kai-fleet:cluster.kubeconfig", yaml.safe_dump(kubeconfig)),
        ('kai-fleet:teams.nlp.registries["mirror.example.com"].password', PASSWORD),
    ):
        pulumi("config", "set", "--secret", "--path", path, given=value)
    assert MARKER not in created.file.read_text(), "the stack file has it encrypted"
    yield created
    host.empty_host()
    guard["metadata"] = {"name": guard["metadata"]["name"]}
    http.post(GUARD.rpartition("/")[0], guard)


def scheduler(config):
    return config["kai-fleet:teams"]["nlp"]["scheduler"]


@pytest.fixture(scope="module")
def ran(secret) -> dict[str, Ran]:
    watch = Watch()
    watch.start()
    found = {"up": secret.fleet("up")}
    assert found["up"].code == 0, found["up"].reported
    inside = secret.fleet("team", "kubeconfig", "nlp")
    found["key"] = inside
    secret.edit(lambda c: c["kai-fleet:teams"]["nlp"].update(gpus=7))
    for command in ("preview", "plan"):
        found[command] = secret.fleet(command)
    secret.edit(lambda c: scheduler(c).update(version="v9.9.9"))
    found["refused"] = secret.fleet("up")
    secret.edit(lambda c: scheduler(c).update(version="v0.9.3"))
    secret.edit(lambda c: scheduler(c).update(values={"nosuch": {"a": 1}}))
    found["key-refused"] = secret.fleet("up")
    secret.edit(lambda c: scheduler(c).pop("values"))
    watch.over.set()
    watch.join()
    found["commands"] = Ran(0, "\n".join(watch.seen))
    return found


@pytest.fixture(scope="module")
def markers(ran) -> list[str]:
    """The planted ones, the vCluster's client key, and each in base64."""
    kubeconfig = yaml.safe_load(ran["key"].reported[ran["key"].reported.index("apiVersion") :])
    user = kubeconfig["users"][0]["user"]
    key = user["client-key-data"]
    plain = [MARKER, key, base64.b64decode(key).decode().splitlines()[1]]
    shifted = [
        base64.b64encode(b"x" * shift + MARKER.encode() + b"y" * 3)[4:-8].decode()
        for shift in range(3)
    ]
    return plain + shifted


def test_the_markers_were_at_work(ran, case):
    """What follows would say nothing of secrets that were never used."""
    assert "https://127.0.0.1" in ran["up"].reported
    assert "v9.9.9" in ran["refused"].last
    assert ran["refused"].code == 1
    assert "nosuch" in ran["key-refused"].reported
    host = client.CoreV1Api(api(case.host.read_text()))
    created = host.read_namespaced_secret("kai-fleet-team-registries", "team-nlp")
    assert PASSWORD in base64.b64decode(created.data[".dockerconfigjson"]).decode()


@pytest.mark.parametrize("what", ["up", "preview", "plan", "refused", "key-refused"])
def test_nothing_printed_has_one(ran, markers, what):
    assert ran[what].reported
    assert [marker for marker in markers if marker in ran[what].reported] == []


def test_no_command_line_has_one(ran, markers):
    seen = ran["commands"].reported
    assert "fleet-probe kai" in seen, "the probes were seen"
    assert [marker for marker in markers if marker in seen] == []


def test_nothing_kept_has_one(ran, markers, secret, case):
    """The state, its history and backups, the stack file, the logs."""
    files = [path for path in secret.state_folder.rglob("*") if path.is_file()]
    files += [secret.file, *(case.sandbox / "logs").glob("*")]
    assert len(files) > 5
    found = {
        str(path): marker
        for path in files
        for marker in markers
        if marker in path.read_text(errors="replace")
    }
    assert found == {}


def test_no_file_is_left_in_the_temporary_folder(ran, markers):
    """Providers write kubeconfigs for helm; they are gone soon after it ended."""

    def left():
        files = Path(tempfile.gettempdir()).glob("kai-fleet-*")
        texts = [path.read_text(errors="replace") for path in files if path.is_file()]
        return [text for text in texts if any(marker in text for marker in markers)]

    assert until(lambda: not left(), 10)
