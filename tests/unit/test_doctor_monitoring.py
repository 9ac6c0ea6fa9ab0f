"""What the doctor says of monitoring: nothing where it is off, else what keeps it from working."""

import pytest
from kai_fleet_cli.waiting.finding import Health

from tests.unit.doctor_samples import Lab, meta


def lab(told, *, namespace="monitoring", monitors=None):
    made = Lab()
    made.settings["monitoring"] = told
    if namespace:
        made.host["namespaces"].append({"metadata": meta(namespace)})
    made.host["networkpolicies"].append({"metadata": meta("kai-fleet-monitoring", "team-ml")})
    if monitors is not None:
        made.host["podmonitors"] = [{"metadata": meta("kai-fleet", where)} for where in monitors]
    return made


def said(lab):
    return [finding for finding in lab.ill() if finding.check == "monitoring"]


@pytest.mark.parametrize(
    "well",
    [
        lab({}),
        lab({"operator": True}, monitors=["monitoring"]),
        lab({"operator": True, "namespace": "obs"}, namespace="obs", monitors=["obs"]),
        Lab(),
    ],
)
def test_nothing_is_said_where_it_is_well_or_off(well):
    assert said(well) == []


@pytest.mark.parametrize(
    ("ill", "health", "cause", "fix"),
    [
        (lab({}, namespace=None), Health.BROKEN, "not there", "create namespace monitoring"),
        (lab({"operator": True}), Health.BROKEN, "does not serve", "operator: false"),
        (lab({"operator": True}, monitors=[]), Health.BROKEN, "no team's KAI", "up"),
        (lab({}, monitors=[]), Health.WARNING, "is told nothing", "operator: true"),
    ],
)
def test_what_keeps_prometheus_from_knowing_is_said_once(ill, health, cause, fix):
    (finding,) = said(ill)
    assert finding.health is health
    assert cause in finding.cause
    assert fix in finding.fix


def test_the_policy_that_lets_prometheus_in_is_wanted_with_monitoring_and_a_stranger_without():
    assert [it for it in lab({}).ill() if "kai-fleet-monitoring" in it.subject] == []
    without = lab({})
    without.host["networkpolicies"].pop()
    (finding,) = [it for it in without.ill() if "kai-fleet-monitoring" in it.subject]
    assert "Prometheus does not reach the team's KAI" in finding.cause
    stranger = lab({})
    del stranger.settings["monitoring"]
    (finding,) = [it for it in stranger.ill() if "kai-fleet-monitoring" in it.subject]
    assert "the stack did not declare it" in finding.cause
