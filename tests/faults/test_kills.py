"""The engine, its providers, or everything, killed at the moments that leave most behind."""

import re
import time

import pytest
from kubernetes import client

from tests.engine.sandbox_commands import until
from tests.faults.case import client_of
from tests.faults.desired import converge, switched, with_ml, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]

HELM = "type=helm.sh/release.v1"


def wait_for_release(kubeconfig, namespace):
    """Until Helm has noted there that it installs something."""
    with client_of(kubeconfig) as cluster:
        core, until = client.CoreV1Api(cluster), time.monotonic() + 60
        while time.monotonic() < until:
            if core.list_namespaced_secret(namespace, field_selector=HELM).items:
                return
            time.sleep(0.005)
    raise AssertionError(f"no release in {namespace} in 60 s")


@pytest.mark.parametrize(
    ("before", "after", "words", "who"),
    [
        (without_ml, with_ml, "Namespace ml-namespace created", "provider"),
        (with_ml, switched, "Policy ml-guard-policy updated", "engine"),
        (with_ml, without_ml, "Namespace ml-namespace deleting", "provider"),
    ],
    ids=["added", "switched", "removed"],
)
def test_killed_in_the_middle(case, reference, foreign, request, before, after, words, who):
    case.edit(before)
    converge(case)
    case.edit(after)
    running = case.start("up")
    running.wait_for(words)
    running.kill(who)
    ran = running.end()
    assert not re.search("Traceback|UserWarning", ran.reported)
    reported = converge(case)
    name = request.node.callspec.id
    left = reference.differences(case, name)
    assert left == [], f"{who} killed at {words}: {left}\n{ran.reported}{reported}"


@pytest.mark.parametrize(
    ("words", "namespace", "who"),
    [
        ("Namespace ml-namespace created", "team-ml", "all"),
        ("Namespace ml-kai-namespace created", "kai-scheduler", "engine"),
    ],
)
def test_killed_while_a_release_is_made(case, reference, foreign, words, namespace, who):
    """The moment that leaves most behind: the release is there, and is not in the state."""
    case.edit(without_ml)
    converge(case)
    case.edit(with_ml)
    running = case.start("up")
    running.wait_for(words)
    engine = running.engine()
    wait_for_release(case.host if namespace == "team-ml" else case.inside("ml"), namespace)
    engine.suspend()  # at once, for it takes a moment to find and kill everybody
    running.kill(who)
    assert running.end().code != 0
    reported = "".join(converge(case))
    assert "run: pulumi cancel" in reported or "the last run ended in the middle of" in reported
    assert "fleet up --refresh --stack faults" in reported
    assert reference.differences(case, "added") == []
    assert "Nothing changed" in case.up().reported


# As KAI's chart has it before v0.16: the Job of a run that was killed stays.
HOOK = """
apiVersion: batch/v1
kind: Job
metadata:
  name: crd-upgrader
  namespace: {{ .Release.Namespace }}
  annotations:
    "helm.sh/hook": pre-install,pre-upgrade
    "helm.sh/hook-delete-policy": hook-succeeded
spec:
  suspend: SUSPENDED
  template:
    spec:
      restartPolicy: Never
      containers: [{name: upgrader, image: "example.com/upgrader:v1"}]
"""


@pytest.fixture
def hook(case):
    """Have the chart of KAI run a hook, which ends at once or never."""
    chart = case.checkout / "sandbox/charts/kai-scheduler"
    file = chart / "templates/crd-upgrader.yaml"

    def run(*, ends):
        file.write_text(HOOK.replace("SUSPENDED", "false" if ends else "true"))
        case.sandbox_up()

    yield run
    file.unlink()
    (chart / "Chart.yaml").touch()
    case.sandbox_up()


@pytest.mark.parametrize("who", ["all", "engine"])
def test_killed_while_a_hook_of_a_release_runs(case, reference, foreign, hook, who):
    """Helm would fail at the Job that is there, however often its record is deleted."""
    case.edit(without_ml)
    converge(case)
    hook(ends=False)
    case.edit(with_ml)
    running = case.start("up")
    running.wait_for("Namespace ml-kai-namespace created")
    wait_for_release(case.inside("ml"), "kai-scheduler")
    with client_of(case.inside("ml")) as cluster:
        jobs = client.BatchV1Api(cluster)
        assert until(lambda: jobs.list_namespaced_job("kai-scheduler").items, 60)
    running.kill(who)
    assert running.end().code != 0
    hook(ends=True)
    reported = "".join(converge(case))
    assert "delete jobs --all" in reported
    assert reference.differences(case, "added") == []
    assert "Nothing changed" in case.up().reported


def test_killed_while_a_release_is_replaced(case, reference, foreign):
    """The state has the old release, which is gone, and the cluster the new one."""
    case.edit(with_ml)
    converge(case)
    case.edit(lambda c: c["kai-fleet:teams"]["ml"]["scheduler"].update(version="v0.7.11"))
    running = case.start("up")
    running.wait_for("Release ml-kai-release deleted original")
    wait_for_release(case.inside("ml"), "kai-scheduler")
    running.kill("all")
    assert running.end().code != 0
    reported = "".join(converge(case))
    assert "fleet up --refresh --stack faults" in reported
    assert "Nothing changed" in case.up().reported
    case.edit(with_ml)
    converge(case)
    assert reference.differences(case, "added") == []


@pytest.mark.parametrize(
    ("words", "who", "wanted_again"),
    [
        ("Namespace ml-namespace deleting", "all", True),
        ("Namespace ml-namespace deleting", "engine", False),
        ("Command ml-ready deleted", "all", True),
    ],
)
def test_killed_while_a_team_is_removed(case, reference, foreign, words, who, wanted_again):
    """What had gone leaves the state; the team goes on going, or is there again."""
    case.edit(with_ml)
    converge(case)
    running = case.start("team", "remove", "ml", "--yes")
    running.wait_for(words)
    running.kill(who)
    ran = running.end()
    assert "Traceback" not in ran.reported
    assert ran.code != 0
    if wanted_again:
        case.edit(with_ml)  # as who takes the edit back
    elif "ml" in case.teams():
        case.edit(without_ml)  # nothing was done yet, and the file was put back
    reported = "".join(converge(case))
    left = reference.differences(case, "added" if wanted_again else "removed")
    assert left == [], f"{who} killed after {words}: {left}\n{ran.reported}{reported}"
    assert "Nothing changed" in case.up().reported
