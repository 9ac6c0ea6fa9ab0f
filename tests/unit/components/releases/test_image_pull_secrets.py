"""Images from a registry that wants credentials: one key names the Secrets."""

import pytest

from kai_fleet.releases import VCLUSTER
from tests.chart_keys import unknown_keys
from tests.unit.cli.doctor.doctor_samples import Lab, event, pod
from tests.unit.stack.stack_arguments import arguments, team_values, vcluster_stack

NAMED = [{"name": "regcred"}]


def named(own=None, **of_all):
    return arguments(vcluster_stack(own, **of_all)).vcluster("ml")["image_pull_secrets"]


@pytest.mark.parametrize("version", sorted(VCLUSTER))
def test_the_accounts_of_the_control_plane_and_of_synced_pods_have_them(version):
    values = team_values(vcluster_stack({"imagePullSecrets": ["regcred"]}))
    accounts = values["controlPlane"]["advanced"]
    assert accounts["serviceAccount"] == {"imagePullSecrets": NAMED}
    assert accounts["workloadServiceAccount"] == {"imagePullSecrets": NAMED}
    assert unknown_keys("vcluster", version, values) == []


def test_a_teams_own_stand_in_place_of_those_of_all():
    assert named(imagePullSecrets=["mirror"]) == ["mirror"]
    assert named({"imagePullSecrets": []}, imagePullSecrets=["a"]) == []
    values = team_values(vcluster_stack())
    assert "serviceAccount" not in values["controlPlane"].get("advanced", {})


def test_the_doctor_names_a_secret_that_is_not_there():
    lab = Lab(settings=vcluster_stack({"imagePullSecrets": ["regcred"]}))
    about = pod("ml-0", queue=None, node="ml-0", namespace="team-ml")
    about["metadata"]["labels"] = {"app": "vcluster", "release": "ml"}
    lab.named("statefulsets", "ml", "host")["status"] = {}
    text = (
        "Unable to retrieve some image pull secrets (regcred); attempting to pull may not succeed."
    )
    lab.host |= {"pods": [about], "events": [event(about, text, "FailedToRetrieve")]}
    (finding,) = [item for item in lab.ill() if item.check == "vcluster"]
    assert "Secrets (regcred) are not there" in finding.cause
    assert "imagePullSecrets" in finding.fix


# Whoever makes an event writes its time. API servers take the year 0, and answer the year 10000 for
# the end of 9999 in a zone west of Greenwich.
@pytest.mark.parametrize("seen", ["0000-01-01T00:00:00Z", "10000-01-01T23:58:59Z"])
def test_no_time_of_an_event_stops_the_doctor(seen):
    lab = Lab()
    about = pod("ml-0", queue=None, node="ml-0", namespace="team-ml")
    created = event(about, "exceeded quota", "FailedCreate", kind="Odd")
    lab.host["events"] = [created | {"lastTimestamp": seen, "firstTimestamp": seen}]
    assert {finding.check for finding in lab.ill()} <= {"host-quota"}
