"""`fleet team renew`, and a registry's new password: what somebody had who left is of no use."""

import base64
import os
import shlex
import signal
import subprocess

import pytest
import yaml
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet_cli.stack_file.reading import ROOT
from tests.engine.product import api, project_with
from tests.engine.sandbox_commands import completed, fleet_on, pulumi, until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

STACK = "leave"
SALT = (ROOT / "Pulumi.sandbox.yaml").read_text().splitlines()[-1]
FILE = f"""\
config:
  kai-fleet:cluster: {{name: leave, context: kai-fleet-sandbox}}
  kai-fleet:vcluster:
    kubernetesVersion: v1.36.3
    access: {{type: NodePort, host: 127.0.0.1}}
  kai-fleet:teams:
    nlp: {{scheduler: {{mode: default}}, nodePool: {{kai-fleet/pool: nlp}}, gpus: 8}}
    ml: {{scheduler: {{mode: default}}, nodePool: {{kai-fleet/pool: ml}}, gpus: 8}}
{SALT}
"""
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "job"},
    "spec": {"containers": [{"name": "main", "image": "busybox:1.37"}]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return project_with(tmp_path_factory.mktemp("leave"), STACK, FILE)


@pytest.fixture(scope="module")
def run(sandbox, folder):
    return fleet_on(sandbox, folder, STACK)


@pytest.fixture(scope="module")
def old(run):
    """The kubeconfigs that were handed out, by team, with a pod in ml's default namespace."""
    run("up", "--yes", STACK)
    found = {team: run("team", "kubeconfig", team) for team in ("ml", "nlp")}
    core = client.CoreV1Api(api(found["ml"]))
    until(lambda: core.read_namespaced_service_account("default", "default"))
    core.create_namespaced_pod("default", POD)
    return found


def pod_uid(kubeconfig):
    return client.CoreV1Api(api(kubeconfig)).read_namespaced_pod("job", "default").metadata.uid


def token(kubeconfig):
    """A token of a service account, as a running pod has it."""
    request = {"spec": {"expirationSeconds": 3600}}
    core = client.CoreV1Api(api(kubeconfig))
    return core.create_namespaced_service_account_token("default", "default", request).status.token


def user_of(kubeconfig, bearer):
    """Who the vCluster says that a token's bearer is, verified by the authority that pods have."""
    document = yaml.safe_load(kubeconfig)
    document["users"][0]["user"] = {"token": bearer}
    review = client.AuthenticationV1Api(api(yaml.safe_dump(document)))
    return review.create_self_subject_review({}).status.user_info.username


def refused(kubeconfig):
    try:
        client.CoreV1Api(api(kubeconfig)).list_namespace()
    except ApiException as why:
        return why.status == 401
    return False


def neighbour(host):
    found = client.AppsV1Api(host).read_namespaced_stateful_set("nlp", "team-nlp")
    return found.metadata.uid, found.metadata.generation


def test_a_renewed_team_refuses_the_old_kubeconfig_and_pods_go_on(run, old, host, sandbox, folder):
    before, bearer = pod_uid(old["ml"]), token(old["ml"])
    beside = neighbour(host)
    assert "write --yes" in run("team", "renew", "ml", fails=True)
    printed = run("team", "renew", "ml", "--yes")
    assert f"fleet team kubeconfig ml --stack {STACK}" in printed
    assert refused(old["ml"])
    new = run("team", "kubeconfig", "ml")
    assert pod_uid(new) == before
    # Pods verify the server and sign in as before.
    assert user_of(old["ml"], bearer) == "system:serviceaccount:default:default"
    assert neighbour(host) == beside
    assert not refused(old["nlp"])
    plain = pulumi(sandbox, folder, "preview", "--stack", STACK, "--expect-no-changes")
    assert plain.returncode == 0, plain.stdout + plain.stderr


def test_a_renewal_that_was_killed_goes_on_with_the_same_authority(run, old, host, sandbox, folder):
    last = run("team", "kubeconfig", "ml")
    command = [".venv/bin/fleet", "team", "renew", "ml", "--stack", STACK, "--yes"]
    core = client.CoreV1Api(host)

    def authority():
        return core.read_namespaced_secret("ml-certs", "team-ml").data["client-ca.crt"]

    before = authority()
    parts = ("", "usage", "kubectl", "components", "policies", "stack", "cli")
    path = os.pathsep.join(str(folder / part) for part in parts)
    running = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **sandbox.env(), "PYTHONPATH": path},
        start_new_session=True,
    )
    until(lambda: authority() != before)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    begun = authority()
    run("team", "renew", "ml", "--yes")
    assert authority() == begun
    assert refused(last)
    assert not refused(run("team", "kubeconfig", "ml"))


def test_a_new_password_of_a_registry_is_in_the_pull_secret_after_an_update(
    run, old, host, sandbox, folder
):
    def password():
        selected = client.CoreV1Api(host).list_namespaced_secret(
            "team-ml", field_selector="type=kubernetes.io/dockerconfigjson"
        )
        (secret,) = selected.items
        document = base64.b64decode(secret.data[".dockerconfigjson"]).decode()
        return yaml.safe_load(document)["auths"]["mirror.example.com"]["password"]

    page = (ROOT / "docs" / "people-who-leave.md").read_text()
    line = next(line for line in page.splitlines() if line.startswith("pulumi config set"))
    *command, key = shlex.split(line.replace("--stack prod", f"--stack {STACK}"))
    in_clear = [word for word in command if word != "--secret"]
    name = (*in_clear, key.replace(".password", ".username"), "robot")
    assert completed(sandbox, *name, cwd=folder).returncode == 0
    for secret in ("first", "second"):
        done = completed(sandbox, *command, key, secret, cwd=folder)
        assert done.returncode == 0, done.stderr
        run("up", "--yes", STACK)
        assert password() == secret


def test_a_deleted_account_of_a_team_stack_ends_its_tokens(run, old, host, folder):
    file = folder / f"Pulumi.{STACK}.yaml"
    grant = "  kai-fleet:teamStacks: {vision: {nodePool: {kai-fleet/pool: vision}, gpus: 4}}\n"
    file.write_text(file.read_text().replace("config:\n", f"config:\n{grant}", 1))
    run("up", "--yes", STACK)

    def status(kubeconfig):
        try:
            client.CoreV1Api(api(kubeconfig)).list_namespaced_config_map("team-vision")
        except ApiException as why:
            return why.status
        return 200

    before = run("team", "credentials", "vision")
    assert status(before) == 200
    accounts = client.CoreV1Api(host)
    accounts.delete_namespaced_service_account("vision", "kai-fleet-team-stacks")
    run("up", "--refresh", "--yes", STACK)
    assert until(lambda: status(before) == 401)
    assert status(run("team", "credentials", "vision")) == 200
