"""How a vCluster is reached, by type of access: Service, names in the certificate, server."""

from typing import Any

import pytest

from kai_fleet.cluster.tenant_kubeconfig import address_of
from kai_fleet_stack.settings.sections.access import Access

KINDS = {
    "NodePort": Access(type="NodePort", host="node.example.org"),
    "LoadBalancer": Access(type="LoadBalancer"),
    "named": Access(type="LoadBalancer", host="ml.example.org"),
    "ClusterIP": Access(type="ClusterIP"),
}


def service(**given: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "ml", "namespace": "team-ml"},
        "spec": {"ports": [{"port": 443, "nodePort": 30443}]},
        "status": {"loadBalancer": {"ingress": [given]} if given else {}},
    }


GIVEN = service(ip="10.1.2.3")


@pytest.mark.parametrize(
    ("kind", "found", "server"),
    [
        ("NodePort", service(), "node.example.org:30443"),
        ("LoadBalancer", service(), None),
        ("LoadBalancer", GIVEN, "10.1.2.3:443"),
        ("named", GIVEN, "ml.example.org:443"),
        ("ClusterIP", service(), "ml.team-ml.svc:443"),
    ],
)
def test_the_server_is_where_pulumi_reaches_it(kind, found, server):
    assert address_of(found, KINDS[kind].type, KINDS[kind].host) == server


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ({"hostname": "a-1.elb.example.org"}, "a-1.elb.example.org:443"),
        ({"ip": "2001:db8::1"}, "[2001:db8::1]:443"),
        ({"ip": "127.0.0.1"}, "127.0.0.1:443"),  # as on a laptop
        ({"ip": "169.254.169.254"}, None),
        ({"ip": "::ffff:169.254.169.254"}, None),
        ({"ip": "fe80::1"}, None),
        ({"ip": "0.0.0.0"}, None),
        ({"ip": "224.0.0.1"}, None),
        ({"hostname": "2852039166"}, None),
        ({"hostname": "evil.example/?"}, None),
        ({"hostname": "me@evil.example"}, None),
        ({"hostname": "a b"}, None),
        ({"ip": "2001:db8::1%/@evil"}, None),
    ],
)
def test_a_load_balancer_says_an_address_and_nothing_else(given, server):
    assert address_of(service(**given), "LoadBalancer", None) == server


@pytest.mark.parametrize("port", [0, 65536, "443/x", None])
@pytest.mark.parametrize("kind", KINDS)
def test_a_port_is_a_number(kind, port):
    found = service(ip="10.1.2.3")
    found["spec"]["ports"] = [{"port": port, "nodePort": port}]
    assert address_of(found, KINDS[kind].type, KINDS[kind].host) is None
