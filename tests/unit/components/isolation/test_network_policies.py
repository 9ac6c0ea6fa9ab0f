"""Who reaches whom, as a team's network policies say it, read as a network plugin reads them."""

from ipaddress import ip_address, ip_network

import pytest

from kai_fleet.isolation.limits import network_policies
from kai_fleet_stack.settings.loading import load

API, DNS = 6443, 53


def reached(policy, address, port):
    """Whether a policy's egress lets packets to an address that is no pod's through."""

    def within(block):
        found = ip_address(address)
        nets = [ip_network(each) for each in block.get("except", [])]
        if found.version != ip_network(block["cidr"]).version:
            return False
        return found in ip_network(block["cidr"]) and not any(found in each for each in nets)

    return any(
        ("ports" not in rule or any(each["port"] == port for each in rule["ports"]))
        and (
            "to" not in rule or any(within(to["ip_block"]) for to in rule["to"] if "ip_block" in to)
        )
        for rule in policy["egress"]
    )


def pods(**network):
    return network_policies("ml", {"isolation": {"network": network}})["kai-fleet-pods"]


def control_plane(**network):
    return network_policies("ml", {"isolation": {"network": network}})["kai-fleet-control-plane"]


@pytest.mark.parametrize(
    "server",
    [
        "169.254.20.10",  # NodeLocal DNSCache
        "169.254.169.254",  # GKE's Cloud DNS
        "168.63.129.16",  # Azure's
        "10.0.0.2",
        "fd00:ec2::253",
    ],
)
def test_the_dns_server_of_a_node_is_reached_and_nothing_else_there(server):
    """A vCluster's DNS asks it for every name from outside, the internet being allowed or not."""
    for internet in (True, False):
        assert reached(pods(internet=internet), server, DNS)
        assert not reached(pods(internet=internet), server, 80)
        assert not reached(pods(internet=internet), server, 443)


def test_public_dns_servers_are_internet():
    assert reached(pods(), "8.8.8.8", DNS)
    assert not reached(pods(internet=False), "8.8.8.8", DNS)


@pytest.mark.parametrize(
    ("own", "address", "other"),
    [
        ("34.1.0.0/16", "34.1.2.3", "34.2.2.3"),
        ("2a01:4f8::/32", "2a01:4f8::7", "2a01:4f9::7"),
    ],
)
def test_public_addresses_of_the_host_are_no_internet_once_written(own, address, other):
    assert reached(pods(), address, 10250)
    assert not reached(pods(private=[own]), address, 10250)
    assert reached(pods(private=[own]), address, DNS)
    assert reached(pods(private=[own]), other, 10250)


def test_a_control_plane_reaches_the_hosts_api_wherever_it_is():
    assert reached(control_plane(), "10.0.0.7", API)
    assert reached(control_plane(), "34.1.2.3", 443)
    assert not reached(control_plane(), "169.254.169.254", 80)
    assert not reached(control_plane(), "10.0.0.7", 16443)
    assert reached(control_plane(api_ports=[443, 16443]), "10.0.0.7", 16443)


def test_a_control_plane_reaches_the_hosts_api_only_where_its_addresses_are_written():
    written = control_plane(api_cidrs=["10.0.0.7/32", "10.96.0.1/32"])
    assert reached(written, "10.0.0.7", API)
    assert reached(written, "10.96.0.1", 443)
    assert not reached(written, "10.0.0.8", API)
    assert not reached(written, "169.254.169.254", 443)
    assert not reached(written, "10.0.0.7", 22)


@pytest.mark.parametrize("written", ["10.0.0.0/99", "999.1.1.1/8", "1.2.3/8"])
@pytest.mark.parametrize("key", ["cidrs", "private", "apiCidrs", "ingressCidrs"])
def test_what_only_looks_like_a_network_is_a_mistake_of_the_stack_file(key, written):
    raw = {"teams": {"ml": {"isolation": {"network": {key: [written]}}}}}
    (mistake,) = (item for item in load(raw).mistakes if "network" in str(item))
    assert mistake.path == f"kai-fleet:teams.ml.isolation.network.{key}.0"
    assert mistake.message.endswith(
        f"is '{written}', which is no network; write one such as 10.20.0.0/16 or fd00:1::/32"
    )


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("64:ff9b::8.8.8.8", True),
        ("64:ff9b::10.0.0.1", False),
        ("64:ff9b::169.254.169.254", False),
        ("64:ff9b::168.63.129.16", False),
    ],
)
def test_ipv6_pods_reach_by_nat64_what_ipv4_pods_reach(address, public):
    assert reached(pods(), address, 443) == public
    assert not reached(pods(private=["8.8.8.0/24"]), "64:ff9b::8.8.8.8", 443)
