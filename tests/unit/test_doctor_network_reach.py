"""Network policies that do not fit the host: said before a vCluster hangs, or a node is reached."""

import pytest
from kai_fleet_cli.waiting.finding import Health

from tests.unit.doctor_samples import Lab, meta


def lab(port=6443, address="10.0.0.5", pod_cidr="10.244.1.0/24", **network):
    made = Lab()
    ports = [{"port": 443, "targetPort": port}]
    made.host["services"] = [{"metadata": meta("kubernetes", "default"), "spec": {"ports": ports}}]
    node = made.host["nodes"][0]
    node["status"]["addresses"] = [{"type": "InternalIP", "address": address}]
    node["spec"]["podCIDRs"] = [pod_cidr]
    made.settings["isolation"] = {"network": network}
    return made


def said(lab):
    return [finding for finding in lab.ill() if finding.check == "network-reach"]


@pytest.mark.parametrize("port", [443, 6443])
def test_the_usual_ports_of_an_api_server_are_well(port):
    assert said(lab(port)) == []


def test_another_port_of_the_api_server_is_said_with_what_to_write():
    (finding,) = said(lab(16443))
    assert finding.health is Health.BROKEN
    assert "it listens at port 16443" in finding.cause
    assert "no vCluster starts" in finding.cause
    assert finding.fix == "write kai-fleet:isolation.network.apiPorts: [443, 16443]"
    assert said(lab(16443, apiPorts=[443, 16443])) == []


@pytest.mark.parametrize(
    ("where", "range_"),
    [
        ({"address": "34.1.2.3"}, "34.1.0.0/16"),
        ({"address": "2a01:4f8::7"}, "2a01:4f8::/32"),
        ({"pod_cidr": "2600:1f14:1::/80"}, "2600:1f14::/32"),
    ],
)
def test_a_node_or_pods_with_public_addresses_are_a_warning(where, range_):
    (finding,) = said(lab(**where))
    assert finding.health is Health.WARNING
    assert "node ml-0 has " in finding.cause
    assert finding.fix.endswith("in kai-fleet:isolation.network.private")
    assert said(lab(**where, private=[range_])) == []
    assert said(lab(**where, internet=False)) == []


def test_nothing_is_said_where_there_are_no_policies_or_no_real_nodes():
    assert said(lab(16443, enabled=False)) == []
    fake = lab(16443)
    fake.host["nodes"][0]["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    assert said(fake) == []
