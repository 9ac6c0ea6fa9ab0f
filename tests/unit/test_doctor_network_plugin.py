"""Network policies that nobody enforces: said where it shows, in a warning."""

from __future__ import annotations

import pytest

from kai_fleet.cli.doctor.finding import Health
from tests.unit.doctor_samples import Lab, meta


def lab(*daemonsets):
    made = Lab()
    made.host["daemonsets"] = [{"metadata": meta(name, "kube-system")} for name in daemonsets]
    return made


def said(lab):
    return [finding for finding in lab.ill() if finding.check == "network-plugin"]


def test_flannel_alone_is_a_warning_that_says_what_follows():
    (finding,) = said(lab("kube-proxy", "kube-flannel-ds"))
    assert finding.health is Health.WARNING
    assert "(kube-flannel-ds, kube-proxy): pods of one team may reach" in finding.cause
    assert "Calico or Cilium" in finding.fix


@pytest.mark.parametrize(
    "plugin", ["calico-node", "cilium", "rke2-canal", "kindnet", "ovnkube-node", "aws-node"]
)
def test_a_plugin_that_enforces_is_well(plugin):
    assert said(lab("kube-proxy", plugin)) == []


def test_k3s_enforces_in_its_own_process():
    made = lab("svclb-traefik")
    made.host["nodes"][0]["status"]["nodeInfo"] = {"kubeletVersion": "v1.34.1+k3s1"}
    assert said(made) == []


def test_nothing_is_said_where_nothing_is_known():
    assert said(lab()) == []
    fake = lab("kube-flannel-ds")
    fake.host["nodes"][0]["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    assert said(fake) == []


def test_nothing_is_said_where_no_network_policies_are_wanted():
    made = lab("kube-flannel-ds")
    made.settings["isolation"] = {"network": {"enabled": False}}
    assert said(made) == []
