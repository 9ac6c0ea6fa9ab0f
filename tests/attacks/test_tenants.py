"""What a vCluster's account, or whoever has its rights, is denied on the host; and what passes."""

from __future__ import annotations

import re

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet.components.guards.guard_policies import ON_HOST
from kai_fleet.components.guards.policies import PolicySet, policy
from tests.attacks.attempts import ATTEMPTS
from tests.attacks.host import said
from tests.attacks.http import Http
from tests.attacks.legitimate import ALLOWED
from tests.attacks.objects import control_plane, of_queue, pod
from tests.attacks.sending import sent, tried
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

DENIED = [(a, who, team) for a in ATTEMPTS for who in a.who for team in a.teams]


def is_second_proof(attempt, who, team):
    """Whether somebody to whom a vCluster's rights are passed on tries it in a second team."""
    return "delegate" in who and "ml" in attempt.teams and team != "ml"


PASSES = [(a.name, team, body) for a in ALLOWED for team, body in a.objects()]


@pytest.mark.parametrize(
    ("attempt", "who", "team"),
    [
        pytest.param(
            *case,
            id=f"{case[1].format(case[2])}: {case[0].name}",
            marks=pytest.mark.slow if is_second_proof(*case) else (),
        )
        for case in DENIED
    ],
)
def test_an_attack_is_denied_with_its_remedy(host, attempt, who, team):
    with pytest.raises(ApiException) as refused:
        tried(host, who.format(team), team, attempt)
    assert refused.value.status == 403
    assert attempt.says in said(refused.value)


@pytest.mark.parametrize(
    ("team", "body"),
    [case[1:] for case in PASSES],
    ids=[f"{team}: {name}" for name, team, _ in PASSES],
)
def test_what_is_legitimate_passes(host, team, body):
    sent(host, f"vcluster {team}", team, body)


def test_there_are_enough_of_both():
    assert len({a.name for a in ATTEMPTS}) == len(ATTEMPTS) >= 60
    assert len({a.name for a in ALLOWED}) == len(ALLOWED) >= 30
    assert {team for *_, team in DENIED} >= {"ml", "nlp", "dev"}


KINDS = (*ON_HOST, "owners")
# What is said to nobody whom these attempts go by: RBAC keeps accounts of a team from these.
ELSEWHERE = (
    "is given a node past its scheduler",
    "drop the toleration of its taint",  # tests/attacks/test_nodes.py
    "has a status that no controller wrote",
    "claims a device class",
    "which is no queue of the team",  # the guard of queues is asked first
)


def test_every_sentence_of_the_policies_is_said_to_some_attack(host):
    """So that none of their conditions can be dropped, or never be false, without a test that
    fails. That a pod names another's queue the guard of queues says, too.
    """
    heard = set()
    for attempt in ATTEMPTS:
        who, team = attempt.who[0], attempt.teams[0]
        try:
            tried(host, who.format(team), team, attempt)
        except ApiException as why:
            heard.add(said(why))
    for kind in KINDS:
        for rule in policy(kind, PolicySet())["spec"]["validations"]:
            words = _longest(rule["messageExpression"])
            if not any(each in rule["messageExpression"] for each in ELSEWHERE):
                assert any(words in each for each in heard), words


def _longest(expression):
    """The longest piece of text of a message."""
    return max(re.findall(r"'([^']*)'", expression), key=len)


OF_THE_RELEASE = ("change it by the values", "leave it to whoever installs")


@pytest.mark.parametrize("team", ["vision", "audio"])
@pytest.mark.parametrize("who", ["stack {}", "stack {} delegate"])
def test_a_team_stacks_account_is_held_to_the_same(host, who, team):
    """It may write pods itself, and goes through no vCluster."""
    attacks = [a for a in ATTEMPTS if {"ml", "nlp", "dev"} <= set(a.teams)]
    assert len(attacks) > 30
    for attack in attacks:
        if who == "stack {}" and attack.says.startswith(OF_THE_RELEASE):
            continue  # it is the one that installs the vCluster
        with pytest.raises(ApiException) as refused:
            tried(host, who.format(team), team, attack)
        assert refused.value.status == 403, attack.name
        assert attack.says in said(refused.value), attack.name


@pytest.mark.parametrize(
    ("team", "queue", "warned"),
    [("audio", "ml", True), ("audio", "audio-train", False), ("nlp", "audio", True)],
)
def test_where_kai_is_on_the_host_a_deployment_there_is_taken_with_a_warning(
    host, team, queue, warned
):
    app = {"app": "w"}
    template = pod(team, **of_queue(queue))
    template["metadata"] = {"labels": {**template["metadata"]["labels"], **app}}
    body = {
        "metadata": {"name": "w"},
        "spec": {
            "selector": {"matchLabels": app},
            "template": {"metadata": template["metadata"], "spec": template["spec"]},
        },
    }

    def warning():
        apps = client.AppsV1Api(host.admin)
        made = apps.create_namespaced_deployment_with_http_info(f"team-{team}", body, dry_run="All")
        return str(made[2].get("Warning") or "")

    if warned:
        said = until(warning, 30)
        assert f"each pod of Deployment w in namespace team-{team} will be denied" in said
        assert f"write the label kai.scheduler/queue: {team}" in said
    else:
        assert warning() == ""


@pytest.mark.parametrize("team", ["ml", "nlp", "dev", "tight", "mig"])
def test_the_control_plane_that_kubernetes_makes_of_its_stateful_set_passes(host, team):
    """As the chart declares it, on the platform's nodes; nobody but a controller makes its pods."""
    template = control_plane(team)
    labels = template["metadata"]["labels"]
    body = {
        "metadata": {"name": team, "labels": labels},
        "spec": {
            "serviceName": team,
            "selector": {"matchLabels": labels},
            "template": template,
        },
    }
    space, admin = f"team-{team}", Http(host.admin)
    admin.post(f"/apis/apps/v1/namespaces/{space}/statefulsets", body)
    try:
        pods = f"/api/v1/namespaces/{space}/pods"
        assert until(lambda: [it["metadata"]["name"] for it in admin.items(pods)], 30)
    finally:
        admin.ask("DELETE", f"/apis/apps/v1/namespaces/{space}/statefulsets/{team}")
