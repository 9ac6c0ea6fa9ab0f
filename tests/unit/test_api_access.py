"""An API behind an Ingress, a Gateway or a load balancer: keys, values, names, refusals."""

import copy

import pytest

from kai_fleet.cluster.tenant_kubeconfig import address_of
from kai_fleet.settings import load
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_policies.model.declared import clusters_of
from kai_fleet_policies.rules.vclusters import vcluster_access
from tests.unit.doctor_samples import SETTINGS, Lab
from tests.unit.stack_arguments import settings_of, team_of, team_values
from tests.unit.test_access import GIVEN

INGRESS = {"type": "Ingress", "host": "ml.vc.example.com", "class": "nginx"}
GATEWAY = {"type": "Gateway", "host": "ml.vc.example.com", "gateway": "gateways/tls"}


def stack(access=None, of_all=None, **teams):
    raw = copy.deepcopy(SETTINGS)
    ml = raw["teams"]["ml"]
    for name, own in ({"ml": access} | teams).items():
        raw["teams"][name] = copy.deepcopy(ml)
        raw["teams"][name]["nodePool"] = {"kai-fleet/pool": name}
        if own is not None:
            raw["teams"][name]["vcluster"] = {"access": own}
    return raw | ({"vcluster": {"access": of_all}} if of_all else {})


def access_of(access, of_all=None):
    return team_of(stack(access, of_all)).access


def values(access, version="v0.36.1"):
    return team_values(stack(access), version)["controlPlane"]


def mistakes(access=None, of_all=None, **teams):
    return {
        mistake.path: mistake.message for mistake in load(stack(access, of_all, **teams)).mistakes
    }


def refused(access=None, of_all=None, **teams):
    host, *_ = clusters_of(settings_of(stack(access, of_all, **teams)))
    return {item.path: item.message for item in vcluster_access.check(host)}


def test_an_ingress_leads_its_name_to_the_api():
    created = values(INGRESS)
    assert created["ingress"] == {
        "enabled": True,
        "host": "ml.vc.example.com",
        "spec": {"ingressClassName": "nginx"},
    }
    assert created["service"]["spec"] == {"type": "ClusterIP"}
    names = ["ml.team-ml.svc", "ml.team-ml.svc.cluster.local", "ml.vc.example.com"]
    assert created["proxy"]["extraSANs"] == names


def test_a_gateway_leads_its_name_to_the_api():
    created = values(GATEWAY | {"annotations": {"example.com/a": "b"}})
    assert created["tlsRoute"] == {
        "enabled": True,
        "host": "ml.vc.example.com",
        "parentRefs": [{"namespace": "gateways", "name": "tls"}],
        "annotations": {"example.com/a": "b"},
    }
    assert "ingress" not in created


@pytest.mark.parametrize(
    ("access", "server"),
    [
        (INGRESS, "ml.vc.example.com:443"),
        (GATEWAY | {"port": 8443}, "ml.vc.example.com:8443"),
        ({"type": "NodePort", "host": "2001:db8::5"}, "[2001:db8::5]:30443"),
        ({}, "10.1.2.3:443"),
    ],
)
def test_the_kubeconfig_has_the_server_that_leads_there(access, server):
    own = access_of(access)
    assert address_of(GIVEN, own.type, own.endpoint or None) == server
    ready = next(
        resource
        for resource in plan_settings(stack(access)).resources
        if resource.name == "ml-ready"
    )
    assert ready.inputs["environment"]["VCLUSTER_HOST"] == own.endpoint


def test_the_service_of_a_load_balancer_has_what_its_cloud_reads():
    internal = {"service.beta.kubernetes.io/aws-load-balancer-internal": "true"}
    spec = {
        "loadBalancerClass": "service.k8s.aws/nlb",
        "loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8"],
    }
    service = values({"annotations": internal, **spec})["service"]
    assert service == {"annotations": internal, "spec": {"type": "LoadBalancer", **spec}}


@pytest.mark.parametrize(
    ("access", "key", "says"),
    [
        ({"type": "ClusterIP", "host": "a.example.com"}, "host", "or type: Gateway, or drop it"),
        ({"type": "LoadBalancer", "port": 443}, "port", "no use with type LoadBalancer"),
        ({"type": "NodePort", "host": "a", "class": "nginx"}, "class", "write type: Ingress"),
        ({"type": "Ingress"}, "host", "is missing"),
        ({"type": "Ingress", "host": "10.0.0.1"}, "host", "write a name of your DNS"),
        ({"type": "Gateway", "host": "a.example.com"}, "gateway", "NAMESPACE/NAME"),
        (INGRESS | {"gateway": "a/b"}, "gateway", "write type: Gateway"),
        (GATEWAY | {"gateway": "tls"}, "gateway", "write NAMESPACE/NAME"),
        ({"host": "a.example.com:6443"}, "host", "and a port at port"),
        ({"host": "fe80::1%eth0"}, "host", "write a name such as ml.vc.example.com, or an address"),
        (INGRESS | {"annotations": {"a.example/b": True}}, "annotations.a.example/b", '"true"'),
    ],
)
def test_what_would_be_ignored_or_cannot_be_is_refused(access, key, says):
    (found,) = mistakes(access).items()
    assert found[0] == f"kai-fleet:teams.ml.vcluster.access.{key}"
    assert says in found[1]


def test_the_file_from_the_field_is_refused_and_told_what_to_write():
    access = {"type": "ClusterIP", "host": "ml.vc.example.com", "port": 443}
    found = mistakes(of_all=access)
    assert set(found) == {f"kai-fleet:vcluster.access.{key}" for key in ("host", "port")}
    assert "write type: LoadBalancer, type: NodePort, type: Ingress or type: Gateway" in str(found)
    assert mistakes(INGRESS | {"port": 443}) == {}, "what it says to write passes"


def test_a_team_says_what_differs_from_the_stacks_access():
    of_all = {"type": "Ingress", "class": "nginx", "annotations": {"a.example/b": "c"}}
    own = {"host": "ml.vc.example.com"}
    access = access_of(own, of_all)
    assert (access.type, access.class_name, access.host) == ("Ingress", "nginx", own["host"])
    other = access_of({"type": "LoadBalancer"}, of_all)
    assert (other.class_name, other.annotations) == (None, {})


@pytest.mark.parametrize("way", [INGRESS, GATEWAY, {"host": "ML.vc.example.com"}])
def test_a_host_name_is_one_teams(way):
    found = refused(INGRESS, nlp=way)
    assert list(found) == ["kai-fleet:teams.nlp.vcluster.access.host"]
    assert "where team ml is reached already" in str(found)
    assert "such as nlp.vc.example.com" in str(found)
    assert refused(INGRESS, nlp=way | {"host": "nlp.vc.example.com"}) == {}
    node = {"type": "NodePort", "host": "node.example.com"}  # of ports there are several
    assert refused(node, nlp=node) == {}


@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [
        ("nginx.ingress.kubernetes.io/configuration-snippet", "x", "run configuration"),
        ("haproxy.org/backend-config-snippet", "x", "run configuration"),
        ("nginx.ingress.kubernetes.io/server-alias", "bank.example.com", "run configuration"),
        ("haproxy-ingress.github.io/server-alias-regex", ".*", "run configuration"),
        ("haproxy-ingress.github.io/config-backend", "x", "run configuration"),
        ("haproxy-ingress.github.io/redirect-from", "bank.example.com", "run configuration"),
        ("konghq.com/host-aliases", "bank.example.com", "run configuration"),
        ("zalando.org/skipper-routes", "x", "run configuration"),
        ("getambassador.io/config", "x", "run configuration"),
        ("dns.gardener.cloud/dnsnames", "bank.example.com", "access.host too"),
        ("nginx.ingress.kubernetes.io/auth-url", "http://10.0.0.1", "nginx does not read"),
        ("nginx.ingress.kubernetes.io/ssl-passthrough", "false", "nobody is let in"),
        ("external-dns.alpha.kubernetes.io/hostname", "bank.example.com", "access.host too"),
    ],
)
def test_annotations_take_nothing_of_others(annotation, value, says):
    found = refused(INGRESS | {"annotations": {annotation: value}})
    assert list(found) == ["kai-fleet:teams.ml.vcluster.access.annotations"]
    assert says in str(found)


@pytest.mark.parametrize(
    "annotations",
    [
        {"nginx.ingress.kubernetes.io/ssl-passthrough": "true"},
        {"haproxy.org/ssl-passthrough": "true"},
        {"external-dns.alpha.kubernetes.io/hostname": "ml.vc.example.com"},
        {"cert-manager.io/cluster-issuer": "x"},
    ],
)
def test_annotations_of_the_apis_own_pass(annotations):
    assert refused(INGRESS | {"annotations": annotations}) == {}


def test_an_api_that_is_not_reached_behind_an_ingress_says_where_it_was_looked_for():
    created = Lab(settings=stack(INGRESS))
    created.unreached = "its certificate is signed by unknown authority"
    cause = created.ill()[0].cause
    assert "ml.vc.example.com:443 has to resolve to the Ingress's controller" in cause
    assert "which has to pass TLS through" in cause
