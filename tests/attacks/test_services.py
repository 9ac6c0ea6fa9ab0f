"""Ports and addresses of Services: who chooses them, and what is written back."""

import ipaddress

import pytest
from kubernetes.client.exceptions import ApiException

from tests.attacks.attempts import EVERY_MODE
from tests.attacks.host import says
from tests.attacks.http import Http

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

REFUSED = "which another team may need"
LOCAL = {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
TENANTS = (*EVERY_MODE, "tight", "quiet", "vision", "audio")


def services(team):
    return f"/api/v1/namespaces/team-{team}/services"


def service(name="web", ports=({"port": 80},), **spec):
    own = {"ports": [*ports], "selector": {"app": "web"}, **spec}
    return {"metadata": {"name": name}, "spec": own}


@pytest.fixture
def free(host):
    """A node port that nobody has, of the range of this API server."""
    admin, path = Http(host.admin), services("ml")
    admin.post(path, service("free", type="NodePort"))
    port = admin.get(f"{path}/free")["spec"]["ports"][0]["nodePort"]
    admin.ask("DELETE", f"{path}/free")
    return port


def chosen(port):
    """The parts of a spec that choose a port, by what they choose."""
    two = [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": port}]
    return {
        "nodePort": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
        "nodePort of the second": {"type": "NodePort", "ports": two},
        "nodePort of a load balancer": {"type": "LoadBalancer", "ports": two},
        "healthCheckNodePort": {**LOCAL, "healthCheckNodePort": port},
    }


def denied(api, method, path, body):
    with pytest.raises(ApiException) as refused:
        api.ask(method, path, body, dryRun="All")
    assert says(refused.value, REFUSED), refused.value.body


@pytest.mark.parametrize("team", TENANTS)
def test_no_account_of_a_team_chooses_a_port(host, free, team):
    path, admin = services(team), Http(host.admin)
    admin.post(path, service("there"))
    try:
        for account in (f"vcluster {team}", f"vcluster {team} delegate"):
            api = Http(host.accounts[account])
            for spec in chosen(free).values():
                denied(api, "POST", path, service(**spec))
                denied(api, "POST", path, service(team, **spec))  # as its API's own
                denied(api, "PATCH", f"{path}/there", {"spec": spec})
    finally:
        admin.ask("DELETE", f"{path}/there")


MANAGED = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}


@pytest.mark.parametrize(
    "managers",
    [
        *([], [{}], [{**MANAGED, "fieldsV1": {}}]),
        [{**MANAGED, "fieldsV1": {"f:spec": {"f:type": {}}}}],
        [{**MANAGED, "apiVersion": "v9", "fieldsV1": {"f:spec": {"f:type": {}}}}],
        [{**MANAGED, "fieldsType": "x", "fieldsV1": {"f:spec": {}}}],
    ],
)
def test_nobody_says_that_another_sent_it(host, free, managers):
    path, api = services("nlp"), Http(host.accounts["vcluster nlp"])
    api.post(path, service("there"))
    try:
        for spec in chosen(free).values():
            body = service(**spec)
            body["metadata"]["managedFields"] = managers
            denied(api, "POST", path, body)
            there = api.get(f"{path}/there")
            there["metadata"]["managedFields"] = managers
            there["spec"] |= spec
            denied(api, "PUT", f"{path}/there", there)
    finally:
        api.ask("DELETE", f"{path}/there")


@pytest.mark.parametrize("team", EVERY_MODE)
@pytest.mark.parametrize("spec", [{}, {"type": "NodePort"}, LOCAL, {"clusterIP": "None"}], ids=str)
def test_what_kubernetes_chose_is_written_back(host, team, spec):
    """As a vCluster does it; also once more by somebody who forgets who wrote what."""
    path, api = services(team), Http(host.accounts[f"vcluster {team}"])
    api.post(path, service("there", **spec))
    try:
        for more in ({}, {"managedFields": [{}]}):
            there = api.get(f"{path}/there")
            there["metadata"] |= {"annotations": {"example.com/a": str(more)}, **more}
            api.ask("PUT", f"{path}/there", there)
            api.ask("PATCH", f"{path}/there", {"spec": {"selector": {"app": "other"}}})
    finally:
        api.ask("DELETE", f"{path}/there")


@pytest.mark.parametrize("team", EVERY_MODE)
def test_a_service_gets_a_port_that_kubernetes_chooses_later(host, team):
    path, api = services(team), Http(host.accounts[f"vcluster {team}"])
    api.post(path, service("there"))
    try:
        api.ask("PATCH", f"{path}/there", {"spec": {"type": "NodePort"}})
        more = {"spec": {"ports": [{"name": "first", "port": 80}, {"name": "more", "port": 81}]}}
        api.ask("PATCH", f"{path}/there", more, dryRun="All")
        api.ask("PATCH", f"{path}/there", {"spec": LOCAL})
        api.ask("PATCH", f"{path}/there", {"spec": {"type": "ClusterIP"}}, dryRun="All")
    finally:
        api.ask("DELETE", f"{path}/there")


@pytest.mark.parametrize("team", ["vision", "audio"])
def test_who_installs_a_vcluster_chooses_the_port_of_its_api(host, free, team):
    path, own = services(team), Http(host.accounts[f"stack {team}"])
    for spec in chosen(free).values():
        own.post(path, service(team, **spec), dryRun="All")
        denied(own, "POST", path, service("web", **spec))
        denied(Http(host.accounts[f"stack {team} delegate"]), "POST", path, service(team, **spec))
        Http(host.admin).post(path, service(team, **spec), dryRun="All")


def is_taken_for_of_the_range(api, path, address):
    """What a vCluster learns by asking for an address: GetServiceCIDR in pkg/util/servicecidr."""
    body = service(clusterIP=str(address), ipFamilyPolicy="SingleStack")
    body["metadata"] = {"generateName": "test-service-delete-me-"}
    with pytest.raises(ApiException) as refused:
        api.ask("POST", path, body, dryRun="All")
    return says(refused.value, "is already allocated")


@pytest.mark.parametrize("team", EVERY_MODE)
def test_a_vcluster_finds_the_range_of_addresses(host, team):
    admin, api = Http(host.admin), Http(host.accounts[f"vcluster {team}"])
    cidrs = admin.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes")["spec"]["cidrs"]
    whole = ipaddress.ip_network(cidrs[0])
    for length in range(whole.prefixlen - 3, whole.prefixlen + 9):
        part = ipaddress.ip_network(f"{whole[300]}/{length}", strict=False)
        found = [is_taken_for_of_the_range(api, services(team), part[end]) for end in (1, -2)]
        assert all(found) == (length >= whole.prefixlen), part
