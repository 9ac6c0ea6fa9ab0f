"""Twenty teams in one environment, five of them in stacks of their own.

One of either kind is switched and goes back, one is removed and comes again, by the commands as
typed; the engine's events say what each of them did, and to whom. The tests build on one another.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from kubernetes import client

from kai_fleet_cli.teams import stack_state
from tests.engine.many_fleet import (
    INSIDE,
    NEW,
    OLD,
    OWN,
    STACK,
    is_of,
    is_of_kai,
    project,
    states,
    take_down,
    uids,
)
from tests.engine.product import api, cluster_roles, namespaces, queues
from tests.engine.sandbox_commands import nodes

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(2400)]

# One of either kind, and the stack that it is in.
EITHER = pytest.mark.parametrize(("name", "stack"), [("in07", STACK), ("own2", f"{STACK}-own2")])


@pytest.fixture(scope="module")
def fleet(sandbox, tmp_path_factory):
    fleet = project(tmp_path_factory.mktemp("many") / "project", sandbox)
    with nodes(sandbox, (f"many-{name}" for name in (*INSIDE, *OWN))):
        yield fleet
        take_down(fleet, sandbox)


@pytest.fixture(scope="module")
def host(sandbox):
    return api(sandbox.kubeconfig.read_text())


@pytest.fixture(scope="module")
def everybody(fleet, sandbox):
    """All twenty, each with a client for its vCluster."""
    fleet("up")
    own = [f"{STACK}-{name}" for name in OWN]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda stack: fleet("up", stack=stack), own))
    found = {}
    for stack in (STACK, *own):
        found |= stack_state.read(stack, sandbox.env()).kubeconfigs
    return {name: api(content) for name, content in found.items()}


@pytest.fixture
def only(everybody, host, sandbox):
    """Run a command, and see that it did something to that team and nothing to anybody else."""

    def run(command, name, stacks):
        before, kept = uids(host, everybody, but=name), states(sandbox)
        ran = command()
        assert ran.changed, ran.printed
        assert [urn for urn in ran.changed if not is_of(urn, name)] == []
        assert ran.stacks == stacks
        assert uids(host, everybody, but=name) == before
        now = states(sandbox)
        assert {it for it in kept.keys() | now.keys() if kept.get(it) != now.get(it)} <= stacks
        return ran

    return run


def test_twenty_teams_are_there_and_a_second_update_changes_nothing(everybody, fleet):
    assert set(everybody) == {*INSIDE, *OWN}
    for name in ("in07", "own2"):
        assert set(queues(everybody[name])) == {"default", "leaf0"}
    assert fleet("up").changed == set()
    assert fleet("up", stack=f"{STACK}-own2").changed == set()


@EITHER
def test_a_switch_changes_that_teams_kai_and_nothing_else(
    only, fleet, everybody, host, name, stack
):
    before = uids(host, everybody)[name]
    ran = only(lambda: fleet("team", "switch", name, NEW, "--yes", stack=stack), name, {stack})
    assert f"::{name}-kai-release" in "".join(ran.changed)
    assert all(is_of_kai(urn, name) for urn in ran.changed), ran.changed
    assert uids(host, everybody)[name] == before


@EITHER
def test_a_rollback_replaces_that_teams_kai_and_nothing_else(
    only, fleet, everybody, host, name, stack
):
    before = uids(host, everybody)[name]
    ran = only(lambda: fleet("team", "rollback", name, "--yes", stack=stack), name, {stack})
    replaced = {urn for operation, urn in ran.steps if operation == "delete-replaced"}
    assert f"::{name}-kai-release" in "".join(replaced)
    assert all(is_of_kai(urn, name) for urn in ran.changed), ran.changed
    assert uids(host, everybody)[name] == before


def test_a_team_goes_whole_and_comes_again(only, fleet, everybody, host, sandbox):
    name = "in07"
    ran = only(lambda: fleet("team", "remove", name, "--yes"), name, {STACK})
    assert {operation for operation, urn in ran.steps if urn in ran.changed} == {"delete"}
    assert f"team-{name}" not in namespaces(host)
    assert cluster_roles(host, name) == set()
    everybody.pop(name).close()
    team_as_before = ["--mode", "virtual", "--version", OLD, "--gpus", "2", "--queue", "leaf0=0.1"]
    there = ["--pool", f"kai-fleet/pool=many-{name}", "--yes"]
    ran = only(lambda: fleet("team", "add", name, *team_as_before, *there), name, {STACK})
    assert {operation for operation, urn in ran.steps if urn in ran.changed} == {"create"}
    everybody[name] = api(stack_state.read(STACK, sandbox.env()).kubeconfigs[name])
    assert set(queues(everybody[name])) == {"default", "leaf0"}


def test_nothing_stays_when_all_are_gone(everybody, fleet, sandbox, host):
    take_down(fleet, sandbox)
    assert [space for space in namespaces(host) if space.startswith("team-")] == []
    assert "kai-fleet-team-stacks" not in namespaces(host)
    assert cluster_roles(host, *INSIDE, *OWN) == set()
    bounds = client.AdmissionregistrationV1Api(host).list_validating_admission_policy().items
    assert [it.metadata.name for it in bounds if "own" in it.metadata.name] == []
    assert states(sandbox) == {}
