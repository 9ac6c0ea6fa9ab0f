"""What somebody removed by hand is removed by the program afterwards: that ends well."""

from contextlib import suppress

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.faults.case import client_of
from tests.faults.desired import converge, with_ml, without_ml
from tests.faults.drifts import Hands, delete_namespace, uninstall_kai

pytestmark = [pytest.mark.slow, pytest.mark.faults, pytest.mark.timeout(600)]

UP = ("up",)
REMOVE = ("team", "remove", "ml", "--yes")


def uninstall_vcluster(hands):
    hands.helm(hands.case.host, "uninstall", "ml", "-n", "team-ml")


def test_a_team_whose_removal_failed_is_put_back(case, reference, foreign):
    """Its vCluster comes back on the volume of the old one, with all that was declared in it."""
    case.edit(with_ml)
    converge(case)
    uninstall_vcluster(Hands.of(case))
    removal = case.fleet(*REMOVE)
    assert removal.code != 0
    assert "somebody uninstalled a release by hand" in removal.last
    case.edit(with_ml)
    reported = "".join(converge(case, ("up", "--refresh")))
    assert "API server does not answer" not in reported
    assert reference.differences(case, "added") == []
    assert "Nothing changed" in case.up().reported


@pytest.mark.parametrize(
    ("by_hand", "command"),
    [
        (uninstall_kai, UP),
        (uninstall_vcluster, REMOVE),
        (lambda hands: delete_namespace(hands, "team-ml"), UP),
        (lambda hands: delete_namespace(hands, "team-ml"), REMOVE),
    ],
    ids=["KAI's release", "the vCluster's release", "the namespace", "the namespace, alone"],
)
def test_it_is_gone_already(case, reference, foreign, by_hand, command):
    case.edit(with_ml)
    converge(case)
    by_hand(Hands.of(case))
    if command == UP:
        case.edit(without_ml)
    reported = converge(case, command)
    assert "ml" not in case.teams()
    assert reference.differences(case, "removed") == [], "\n".join(reported)
    assert "Nothing changed" in case.up().reported


@pytest.fixture
def api_service(case):
    """An APIService on the host whose Service is gone, as an uninstalled KEDA leaves it."""
    spec = {
        **{"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100},
        **{"versionPriority": 100, "insecureSkipTLSVerify": True},
        "service": {"name": "keda-operator-metrics-apiserver", "namespace": "keda", "port": 443},
    }
    name = "v1beta1.external.metrics.k8s.io"
    with client_of(case.host) as cluster:
        api = client.ApiregistrationV1Api(cluster)
        kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
        api.create_api_service({**kind, "metadata": {"name": name}, "spec": spec})
        yield name
        with suppress(ApiException):
            api.delete_api_service(name)


def test_a_namespace_that_does_not_go_is_told_while_the_removal_waits(
    case, reference, foreign, api_service
):
    """And where the command is run meanwhile, that same removal ends well."""
    case.edit(with_ml)
    converge(case)
    doctor = case.fleet("doctor")
    assert f"APIService {api_service}" in doctor.reported
    running = case.start(*REMOVE)
    running.wait_for("Meanwhile run: ", 90)
    line = next(line for line in running.reported().splitlines() if "Meanwhile run: " in line)
    assert f"APIService {api_service} is of Service keda/keda-operator-metrics-apiserver" in line
    assert case.typed(line.partition("Meanwhile run: ")[2]).code == 0
    ran = running.end()
    assert ran.code == 0, ran.reported
    assert reference.differences(case, "removed") == []
