"""Network policies that nobody enforces: said where it shows, in a warning."""

import pytest
from kai_fleet_cli.waiting.finding import Health

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
    "plugin",
    ["calico-node", "cilium", "rke2-canal", "kindnet", "ovnkube-node", "kube-network-policies"],
)
def test_a_plugin_that_enforces_is_well(plugin):
    assert said(lab("kube-proxy", plugin)) == []


def amazon(told):
    agent = {"name": "aws-eks-nodeagent", "args": [f"--enable-network-policy={told}"]}
    return running(lab("kube-proxy", "aws-node"), {"name": "aws-node"}, agent)


def running(made, *containers, **status):
    item = made.host["daemonsets"][-1]
    item["spec"] = {"template": {"spec": {"containers": list(containers)}}}
    item["status"] = status
    return made


def test_amazons_enforces_only_where_its_agent_is_told_to():
    assert said(amazon("true")) == []
    (finding,) = said(amazon("false"))
    assert "aws-node enforces no NetworkPolicies" in finding.cause
    assert "enableNetworkPolicy: true" in finding.fix
    (older,) = said(lab("aws-node"))
    assert "aws-node enforces no NetworkPolicies" in older.cause


def test_amazons_beside_one_that_enforces_is_well():
    assert said(lab("aws-node", "calico-node")) == []


def test_an_enforcer_in_a_pod_of_another_plugin_is_well():
    made = running(
        lab("kube-flannel-ds"), {"name": "kube-flannel"}, {"name": "kube-network-policies"}
    )
    assert said(made) == []


def test_one_that_is_not_ready_on_a_node_is_a_warning_that_says_where():
    made = running(lab("calico-node"), desiredNumberScheduled=2, numberReady=1)
    (finding,) = said(made)
    assert finding.health is Health.WARNING
    assert "it is ready on 1 of 2 nodes" in finding.cause
    assert "-n kube-system get pods -o wide` shows where" in finding.fix
    assert said(running(lab("calico-node"), desiredNumberScheduled=2, numberReady=2)) == []


def test_k3s_enforces_in_its_own_process():
    made = lab("svclb-traefik")
    made.host["nodes"][0]["status"]["nodeInfo"] = {"kubeletVersion": "v1.34.1+k3s1"}
    assert said(made) == []


def test_a_host_without_any_daemon_set_is_a_warning_too():
    (finding,) = said(lab())
    assert "(there are none): pods of one team may reach" in finding.cause


def test_nothing_is_said_where_nothing_is_known():
    unread = lab()
    del unread.host["daemonsets"]
    assert said(unread) == []
    fake = lab("kube-flannel-ds")
    fake.host["nodes"][0]["metadata"]["annotations"] = {"kwok.x-k8s.io/node": "fake"}
    assert said(fake) == []


def test_nothing_is_said_where_no_network_policies_are_wanted():
    made = lab("kube-flannel-ds")
    made.settings["isolation"] = {"network": {"enabled": False}}
    assert said(made) == []
