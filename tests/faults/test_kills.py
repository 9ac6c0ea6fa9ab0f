"""The engine, its providers, or everything, killed at random moments of an update."""

import random
import time

import pytest
from kubernetes import client

from tests.faults.case import client_of
from tests.faults.wanted import BEGUN, CHANGES, SEED, SOAK, converge, with_ml, without_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(3600 if SOAK else 600)]

# Ten kills of each kind of update, or one; the last is undisturbed.
ROUNDS = 10 if SOAK else 1
HELM = "type=helm.sh/release.v1"


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("who", ["engine"] if not SOAK else ["engine", "all", "provider"])
def test_killed_at_random_moments(case, reference, foreign, who, round_):
    chance = random.Random(f"{SEED} {who} {round_}")
    if "ml" in case.teams():
        case.edit(without_ml)
        case.up()
    for name, change in CHANGES.items():
        victim = who if SOAK else chance.choice(["engine", "all", "provider"])
        case.edit(change)
        running = case.start("up")
        running.wait_for(BEGUN)
        moment = chance.uniform(0.0, max(2.0, reference.seconds[name] - 3.0))
        time.sleep(moment)
        running.kill(victim)
        ran = running.end()
        assert "Traceback" not in ran.said
        said = converge(case)
        left = reference.differences(case, name)
        assert left == [], f"{name}, {victim} killed after {moment:.2f} s: {left}\n{ran.said}{said}"


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
    ("words", "namespace", "who"),
    [
        ("Release ml-release creating", "team-ml", "all"),
        ("Release ml-kai-release creating", "kai-scheduler", "engine"),
    ],
)
def test_killed_while_a_release_is_made(case, reference, foreign, words, namespace, who):
    """The moment that leaves most behind: the release is there, and is not in the state."""
    case.edit(without_ml)
    converge(case)
    case.edit(CHANGES["added"])
    running = case.start("up")
    running.wait_for(words)
    engine = running.engine()
    wait_for_release(case.host if namespace == "team-ml" else case.inside("ml"), namespace)
    engine.suspend()  # at once, for it takes a moment to find and kill everybody
    running.kill(who)
    assert running.end().code != 0
    said = "".join(converge(case))
    assert "Repair it with: pulumi cancel" in said or "the last run ended in the middle of" in said
    assert "fleet up --refresh --stack faults" in said
    assert reference.differences(case, "added") == []
    assert "Nothing changed" in case.up().said


def test_killed_while_a_release_is_replaced(case, reference, foreign):
    """The state has the old release, which is gone, and the cluster the new one."""
    case.edit(with_ml)
    converge(case)
    case.edit(lambda c: c["kai-fleet:teams"]["ml"]["scheduler"].update(version="v0.7.11"))
    running = case.start("up")
    running.wait_for("Release ml-kai-release creating replacement")
    wait_for_release(case.inside("ml"), "kai-scheduler")
    running.kill("all")
    assert running.end().code != 0
    said = "".join(converge(case))
    assert "fleet up --refresh --stack faults" in said
    assert "Nothing changed" in case.up().said
    case.edit(with_ml)
    converge(case)
    assert reference.differences(case, "added") == []


# What is printed before the kill, the seconds from there to it, who is killed, and whether the team
# is wanted again afterwards.
MOMENTS = [
    ("Namespace ml-namespace deleting", 0.0, "all", True),
    ("Namespace ml-namespace deleting", 0.0, "engine", False),
    ("Release ml-release deleting", 0.0, "all", True),
]
if SOAK:
    MOMENTS += [
        (BEGUN, random.Random(f"{SEED} alone {n}").uniform(0.0, 7.0), who, n % 3 > 0)
        for n, who in enumerate(("engine", "all", "provider") * 3)
    ]


@pytest.mark.parametrize(("words", "seconds", "who", "wanted_again"), MOMENTS)
def test_killed_while_a_team_is_removed_alone(
    case, reference, foreign, words, seconds, who, wanted_again
):
    """What had gone leaves the state; the team goes on going, or is there again."""
    case.edit(with_ml)
    converge(case)
    running = case.start("team", "remove", "ml", "--yes")
    running.wait_for(words)
    time.sleep(seconds)
    running.kill(who)
    ran = running.end()
    assert "Traceback" not in ran.said
    if wanted_again:
        case.edit(with_ml)  # as who takes the edit back
    elif "ml" in case.teams():
        case.edit(without_ml)  # nothing was done yet, and the file was put back
    said = "".join(converge(case))
    if words != BEGUN:
        assert ran.code != 0
    left = reference.differences(case, "added" if wanted_again else "removed")
    assert left == [], f"{who} killed {seconds:.2f} s after {words}: {left}\n{ran.said}{said}"
    assert "Nothing changed" in case.up().said
