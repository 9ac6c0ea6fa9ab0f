"""Policies that are there once for all teams: what one team touches, what an update does."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet.isolation import policies
from kai_fleet.isolation.host_guards import HostGuards
from kai_fleet.isolation.team_namespace import TeamNamespace, namespace_metadata
from tests.engine.bare_engine import new_stack
from tests.engine.product import api
from tests.engine.sandbox_commands import kubectl, until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

TEAMS = ("first", "second")
GREEDY = {
    "metadata": {"name": "p"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "x",
                "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}],
            }
        ]
    },
}
SLOW = {
    "metadata": {"name": "p"},
    "spec": {"terminationGracePeriodSeconds": 900, "containers": [{"name": "c", "image": "x"}]},
}


def arguments(team: str, grace_seconds: int = 600) -> Any:
    isolation = {"bounds": {"grace_seconds": grace_seconds}}
    return {"name": f"up-{team}", "scheduler": "none", "isolation": isolation}


def program(**grace_seconds: int) -> Callable[[], None]:
    """The policies of a host, and two teams' namespaces."""

    def declare() -> None:
        guards = HostGuards("upgrade", {})
        for team in TEAMS:
            args = arguments(team, grace_seconds.get(team, 600))
            TeamNamespace(team, {**args, "guards": guards.ready})

    return declare


@pytest.fixture(scope="module")
def core(sandbox):
    return client.CoreV1Api(api(sandbox.kubeconfig.read_text()))


@pytest.fixture(scope="module")
def stack(sandbox, core, tmp_path_factory):
    created = new_stack(sandbox, tmp_path_factory.mktemp("upgrade"), "upgrade")
    created.up(program=program())
    for team in TEAMS:
        until(lambda team=team: "drop the variable" in refusal(core, team, GREEDY), 30)
    return created


def refusal(core: client.CoreV1Api, team: str, body: Any) -> str:
    """Why a pod is denied; nothing where it passes."""
    try:
        core.create_namespaced_pod(f"up-{team}", body, dry_run="All")
    except ApiException as why:
        assert why.status == 403, why.body
        return str(why.body)
    return ""


def versions(sandbox: Any, team: str | None) -> dict[str, str]:
    """What tells whether a team's objects, or those of all teams, were changed or made anew."""
    found = {}
    for kind, version in (
        ("validatingadmissionpolicies", "generation"),
        ("validatingadmissionpolicybindings", "generation"),
        ("namespaces", "resourceVersion"),
    ):
        each = f"{{.metadata.name}}={{.metadata.uid}}/{{.metadata.{version}}}"
        path = f"{{range .items[*]}}{each} {{end}}"
        reported = kubectl(sandbox, "get", *kind.split(), "-o", f"jsonpath={path}")
        for name, message in (pair.split("=") for pair in reported.split()):
            of = next((item for item in TEAMS if name == item or name.endswith(f"-{item}")), None)
            if of == team and (team is not None or name.startswith("kai-fleet-")):
                found[f"{kind} {name}"] = message
    return found


def test_a_teams_change_touches_its_bounds_and_nothing_else(stack, sandbox, core):
    everybody, other = versions(sandbox, None), versions(sandbox, "second")
    assert len(everybody) == 19
    assert len(other) == 1
    assert "write 600 or less" in refusal(core, "first", SLOW)
    stack.up(program=program(first=1200))
    until(lambda: not refusal(core, "first", SLOW), 30)
    assert "write 600 or less" in refusal(core, "second", SLOW)
    assert versions(sandbox, None) == everybody
    assert versions(sandbox, "second") == other


def test_an_update_of_the_policies_leaves_no_moment_without_them(stack, core, monkeypatch):
    """A pod that is always wrong is sent all the while; the policies of the next version come."""
    read = policies.policy
    newer = {**read("pods"), "spec": {**read("pods")["spec"]}}
    newer["spec"]["validations"] = [
        {
            "expression": "!object.metadata.name.startsWith('late')",
            "messageExpression": "'of the next version'",
            "reason": "Forbidden",
        },
        *read("pods")["spec"]["validations"],
    ]
    monkeypatch.setattr(
        policies, "policy", lambda kind, *more: newer if kind == "pods" else read(kind, *more)
    )
    over, heard = threading.Event(), []

    def attack() -> None:
        while not over.is_set():
            heard.append(refusal(core, "second", GREEDY))

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        stack.up(program=program())
        late = {**SLOW, "metadata": {"name": "late"}}
        until(lambda: "of the next version" in refusal(core, "second", late), 30)
        until(lambda: len(heard) > 20)
    finally:
        over.set()
        attacker.join()
    assert all("drop the variable" in each for each in heard)


def test_without_a_teams_bounds_everything_is_denied_until_the_next_update(stack, core):
    keys = namespace_metadata("first", arguments("first"))["annotations"]
    core.patch_namespace("up-first", {"metadata": {"annotations": dict.fromkeys(keys)}})
    plain = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    assert "has no bounds of a team" in until(lambda: refusal(core, "first", plain), 30)
    assert refusal(core, "second", plain) == ""
    stack.up(program=program(), refresh=True)
    until(lambda: not refusal(core, "first", plain), 30)


def made_anew(stack, core):
    """Destroy the stack, and make it again in namespaces of its own."""
    stack.destroy()
    until(lambda: core.list_namespace(field_selector="metadata.name=up-first").items == [], 60)
    stack.up(program=program())


def test_guards_that_were_gone_hold_again(stack, core):
    """As of a platform that is destroyed and made anew. With parameters (paramKind) an API server
    that had no policy with them any more would deny everything until it is started anew.
    """
    made_anew(stack, core)
    until(lambda: "drop the variable" in refusal(core, "second", GREEDY), 30)
    plain = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    assert refusal(core, "second", plain) == ""


def test_a_hold_is_seen_and_gone_after_the_guards_were_gone(stack, core):
    """An API server goes on to watch what holds a control plane, as it does not with ConfigMaps."""
    container = {"name": "syncer", "image": "x"}
    labels = {"app": "vcluster", "release": "first"}
    control_plane = {
        "metadata": {"name": "p", "labels": labels},
        "spec": {"containers": [container]},
    }
    annotations = {policies.HELD: "first", policies.RESTORING: "2026-11-29"}
    metadata = {"name": "first-restore", "labels": policies.VOLUMES_LABEL}
    for _ in range(2):
        hold = {"metadata": metadata | {"annotations": annotations}}
        core.create_namespaced_service_account("up-first", hold)
        until(lambda: "is being restored to" in refusal(core, "first", control_plane), 30)
        core.delete_namespaced_service_account("first-restore", "up-first")
        until(lambda: "is being restored to" not in refusal(core, "first", control_plane), 30)
        made_anew(stack, core)


def test_the_api_server_finds_no_fault_with_any_expression(stack, core):
    """It checks the types of each against the kinds that it is about."""
    admission = client.AdmissionregistrationV1Api(core.api_client)

    def checked() -> list[Any]:
        found = [
            item
            for item in admission.list_validating_admission_policy().items
            if item.metadata.name.startswith("kai-fleet-")
        ]
        return found if all(item.status and item.status.type_checking for item in found) else []

    for policy in until(checked, 60):
        assert not policy.status.type_checking.expression_warnings, policy.metadata.name
