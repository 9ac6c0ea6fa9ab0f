"""The volume of a control plane is lost: no empty one starts before somebody decides."""

import json

import pytest
from kubernetes import client

from tests.engine.sandbox_commands import until
from tests.faults.case import client_of
from tests.faults.desired import converge, with_ml
from tests.faults.test_emptied_vcluster import COMMAND, SAID, as_declared, uid

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]

NAMESPACE, CLAIM, POD, HOLD = "team-ml", "data-ml-0", "ml-0", "ml-volumes"
LOST = "claim data-ml-0 had the store of vCluster ml, and is gone"


def refusals(core):
    """What Kubernetes says of objects that it may not create in the namespace."""
    events = core.list_namespaced_event(NAMESPACE, field_selector="reason=FailedCreate").items
    return [event.message for event in events]


def claims(core):
    found = core.list_namespaced_persistent_volume_claim(NAMESPACE).items
    return [claim.metadata.name for claim in found]


def test_it_begins_anew_only_by_the_printed_command(case, reference, foreign):
    case.edit(with_ml)
    converge(case, lost=["ml"])
    core = client.CoreV1Api(client_of(case.host))
    core.delete_namespaced_persistent_volume_claim(CLAIM, NAMESPACE)
    core.delete_namespaced_pod(POD, NAMESPACE)
    until(lambda: any(LOST in refusal for refusal in refusals(core)))
    assert CLAIM not in claims(core)
    doctor = case.fleet("doctor", "--json")
    assert doctor.code == 1
    found = json.loads(doctor.reported)["findings"]
    (only,) = [each for each in found if each["level"] == "mandatory"]
    assert LOST in only["cause"]
    (command,) = only["commands"]
    assert case.typed(command).code == 0
    until(lambda: CLAIM in claims(core) and uid(case) is not None)
    refused = case.fleet("up")
    assert refused.code == 1 and SAID in refused.reported
    assert case.typed(COMMAND).code == 0
    as_declared(case, reference)
    assert core.read_namespaced_service_account(HOLD, NAMESPACE).metadata.annotations[
        "kai-fleet/cluster"
    ] == uid(case)
