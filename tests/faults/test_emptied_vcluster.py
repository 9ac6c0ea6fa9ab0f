"""The store of a vCluster is new: what was in it is lost, and nobody fills it unasked."""

import json
import time

import pytest
from kubernetes import client
from urllib3.exceptions import HTTPError

from sandbox.control_plane.command_lines import FLAGS, ControlPlane
from sandbox.control_plane.etcd import Etcd
from sandbox.control_plane.ports import Ports
from sandbox.control_plane.processes import Processes
from sandbox.directory import read_state
from tests.engine.sandbox_commands import until
from tests.faults.case import STACK, client_of
from tests.faults.desired import converge, with_ml

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]

SAID = "vCluster ml is another one than the last update saw: its store is new, and everything that"
LOST = "was in the old one is lost: KAI v0.9.3, queues default, serve and train, and all that its"
READY_SECONDS = 600  # that an update waits for a vCluster that it changes
COMMAND = f".venv/bin/fleet up --stack {STACK} --yes ml"


def uid(case):
    """The UID of the namespace `kube-system` of ml's vCluster; None while it does not answer."""
    try:
        core = client.CoreV1Api(client_of(case.inside("ml")))
        return core.read_namespace("kube-system", _request_timeout=2).metadata.uid
    except (client.ApiException, HTTPError):
        return None


@pytest.fixture
def emptied(case, reference, foreign):
    """A stack that is as declared, but for the store of ml's vCluster, which begins anew."""
    case.edit(with_ml)
    converge(case, lost=["ml"])  # the test before may have left it so
    before = uid(case)
    etcd = Etcd(case.sandbox, Ports(read_state(case.sandbox).base_port))
    plane = ControlPlane("team-ml.ml", case.inside("ml").parent, "127.0.0.1", 0, etcd)
    Processes(case.sandbox).stop(map(plane.part_name, FLAGS))
    etcd.delete(plane.etcd_prefix)
    until(lambda: uid(case) not in (None, before))
    return case


def as_declared(case, reference):
    assert reference.differences(case, "added") == []
    assert "Nothing changed" in case.up().reported
    assert case.fleet("doctor").code == 0


def test_the_doctor_names_the_cause_once(emptied):
    ran = emptied.fleet("doctor", "--json")
    assert ran.code == 1
    found = json.loads(ran.reported)["findings"]
    broken = [each for each in found if each["level"] == "mandatory"]
    assert len(broken) == 1, broken
    (only,) = broken
    assert f"{SAID} {LOST}" in f"{only['kind']} {only['name']} {only['cause']}"


def test_it_is_said_before_anything_begins_and_filled_by_the_printed_command(emptied, reference):
    begun = uid(emptied)
    ran = emptied.fleet("up", "--refresh")
    assert ran.code == 1
    assert f"{SAID} {LOST}" in ran.reported
    assert ran.last.endswith(f"run: {COMMAND}")
    assert "Refreshing (" not in ran.reported and "Updating (" not in ran.reported
    assert len(converge(emptied, ("up", "--refresh"), failed=ran, lost=["ml"])) == 2
    assert uid(emptied) == begun
    as_declared(emptied, reference)


def test_the_other_teams_go_on_where_nobody_can_be_asked(emptied, reference):
    begun = uid(emptied)
    ran = emptied.fleet("up")
    assert ran.code == 1
    assert f"{SAID} {LOST}" in ran.reported and f"To agree: {COMMAND}" in ran.reported
    assert "the update is done, but for team ml\nteam ml: its vCluster is another" in ran.reported
    assert uid(emptied) == begun
    refused = emptied.fleet("up", "--refresh")
    assert refused.last.endswith(f"run: {COMMAND}") and LOST in refused.reported
    assert emptied.typed(COMMAND).code == 0
    as_declared(emptied, reference)


def test_plain_pulumi_fills_it_only_where_it_is_named(emptied, reference):
    refused = emptied.typed(f"pulumi up --yes --stack {STACK}")
    assert refused.code != 0 and SAID in refused.reported
    assert "+- command:local:Command ml-kai" not in refused.reported
    again = emptied.fleet("up", "--refresh")
    assert again.last.endswith(f"run: {COMMAND}"), "the state still has what was lost"
    ran = emptied.typed(f"KAI_FLEET_REMOVE_TEAM=ml pulumi up --yes --stack {STACK}")
    assert ran.code == 0, ran.reported
    as_declared(emptied, reference)


def test_one_that_does_not_answer_says_nothing(emptied, reference):
    """An update with nothing to change does not wait for it either."""
    server = emptied.part("vcluster-team-ml.ml-kube-apiserver")
    server.suspend()
    try:
        begun = time.monotonic()
        ran = emptied.fleet("up")
        assert (ran.code, SAID in ran.reported) == (0, False), ran.reported
        assert "Nothing changed" in ran.reported
        assert time.monotonic() - begun < READY_SECONDS
    finally:
        server.resume()
    assert emptied.typed(COMMAND).code == 0
    as_declared(emptied, reference)
