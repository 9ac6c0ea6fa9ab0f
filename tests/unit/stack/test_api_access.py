"""An API behind an Ingress, a Gateway or a load balancer: keys, values, names, refusals."""

import copy

import pytest

from kai_fleet.cluster.tenant_kubeconfig import address_of
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_policies.rules.vcluster_access import vcluster_access
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.settings.loading import load
from tests.unit.cli.doctor.doctor_samples import SETTINGS, Lab
from tests.unit.stack.stack_arguments import settings_of, team_of, team_stack, team_values
from tests.unit.stack.test_access import GIVEN

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


def values(access):
    return team_values(stack(access))["controlPlane"]


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
    access = settings_of(stack(own, of_all)).teams["ml"].vcluster.access
    assert (access.type, access.class_name, access.host) == ("Ingress", "nginx", own["host"])
    other = settings_of(stack({"type": "LoadBalancer"}, of_all)).teams["ml"].vcluster.access
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


_AWS, _AZURE = (f"service.beta.kubernetes.io/{cloud}" for cloud in ("aws-load-balancer", "azure-"))
# Of which a controller takes more than the API's own: names, addresses, shared balancers, programs.
OF_THE_PLATFORM = {
    "alb.ingress.kubernetes.io/group.name": "shared",
    "alb.ingress.kubernetes.io/group.order": "-1000",
    "traefik.ingress.kubernetes.io/router.priority": "9999",
    "traefik.ingress.kubernetes.io/router.tls": "true",
    "haproxy.org/backend-config-snippet": "x",
    "haproxy.org/path-rewrite": "/",
    "haproxy-ingress.github.io/server-alias-regex": ".*",
    "haproxy-ingress.github.io/config-backend": "x",
    "haproxy-ingress.github.io/tcp-service-port": "443",
    "nginx.org/server-snippets": "x",
    "nginx.org/mergeable-ingress-type": "master",
    "nginx.com/jwt-key": "x",
    "nginx.ingress.kubernetes.io/configuration-snippet": "x",
    "nginx.ingress.kubernetes.io/server-alias": "bank.example.com",
    "nginx.ingress.kubernetes.io/auth-url": "http://10.0.0.1",
    f"{_AZURE}load-balancer-ipv4": "10.0.0.9",
    f"{_AZURE}pip-name": "of-another",
    f"{_AZURE}dns-label-name": "bank",
    f"{_AZURE}load-balancer-resource-group": "of-another",
    f"{_AZURE}load-balancer-internal-subnet": "of-another",
    f"{_AWS}-eip-allocations": "eipalloc-1",
    f"{_AWS}-subnets": "subnet-1",
    f"{_AWS}-name": "of-another",
    f"{_AWS}-security-groups": "sg-1",
    f"{_AWS}-attributes": "access_logs.s3.enabled=true",
    f"{_AWS}-internal-more": "x",
    "networking.gke.io/load-balancer-ip-addresses": "of-another",
    "metallb.io/loadBalancerIPs": "10.0.0.9",
    "metallb.universe.tf/allow-shared-ip": "x",
    "metallb.io/address-pool": "of-another",
    "kube-vip.io/loadbalancerIPs": "10.0.0.9",
    "lbipam.cilium.io/ips": "10.0.0.9",
    "io.cilium/lb-ipam-ips": "10.0.0.9",
    "service.cilium.io/global": "true",
    "konghq.com/host-aliases": "bank.example.com",
    "zalando.org/skipper-routes": "x",
    "getambassador.io/config": "x",
    "external-dns.alpha.kubernetes.io/target": "10.0.0.9",
    "external-dns.alpha.kubernetes.io/set-identifier": "x",
    "cert-manager.io/cluster-issuer": "x",
    "of-nobody": "x",
}
EVERY_TYPE = (
    INGRESS,
    GATEWAY,
    {},
    {"type": "ClusterIP"},
    {"type": "NodePort", "host": "n.example.com"},
)


def at_team(annotation, value, access=INGRESS, **more):
    raw = stack(access | {"annotations": {annotation: value}}, **more)
    host, *_ = clusters_of(settings_of(raw))
    return {item.path: item.message for item in vcluster_access.check(host)}


@pytest.mark.parametrize("annotation", OF_THE_PLATFORM)
def test_an_annotation_that_may_take_of_others_is_the_platforms_to_write(annotation):
    value = OF_THE_PLATFORM[annotation]
    for access in EVERY_TYPE:
        found = at_team(annotation, value, access)
        assert list(found) == ["kai-fleet:teams.ml.vcluster.access.annotations"]
        assert f"has {annotation}, which is none of those that take nothing" in str(found)
        assert "have the platform write it in kai-fleet:vcluster.access.annotations" in str(found)
        of_all = {"type": access.get("type", "LoadBalancer"), "annotations": {annotation: value}}
        of_all |= {"host": "any.example.com"} if "host" in access else {}
        of_all |= {"gateway": access["gateway"]} if "gateway" in access else {}
        assert refused(access, of_all) == {}, "the platform writes it for all"


@pytest.mark.parametrize("annotation", [key for key in OF_THE_PLATFORM if "/" in key])
def test_the_platform_may_list_the_domain_of_an_annotation(annotation):
    raw = stack(INGRESS | {"annotations": {annotation: "x"}})
    raw["keyDomains"] = [annotation.partition("/")[0]]
    host, *_ = clusters_of(settings_of(raw))
    assert list(vcluster_access.check(host)) == []


def test_another_value_than_the_platforms_is_the_teams():
    key = "alb.ingress.kubernetes.io/group.name"
    of_all = INGRESS | {"annotations": {key: "shared"}}
    assert refused(INGRESS | {"annotations": {key: "of-another"}}, of_all)
    assert refused(INGRESS | {"annotations": {key: "shared"}}, of_all) == {}


def test_a_team_stack_is_held_to_the_same_and_has_those_of_its_platform():
    key = "alb.ingress.kubernetes.io/group.name"
    platform = stack(of_all=INGRESS | {"annotations": {key: "shared"}})
    for own, wrong in (({}, []), ({key: "mine"}, ["kai-fleet:team.vcluster.access.annotations"])):
        access = {"host": "nlp.vc.example.com", **({"annotations": own} if own else {})}
        loaded = team_stack(platform, vcluster={"access": access})
        assert loaded.mistakes == ()
        host, *_ = clusters_of(loaded.settings)
        assert [item.path for item in vcluster_access.check(host)] == wrong


@pytest.mark.parametrize(
    ("annotation", "value", "says"),
    [
        ("dns.gardener.cloud/dnsnames", "bank.example.com", "not access.host, the API's own"),
        ("nginx.ingress.kubernetes.io/ssl-passthrough", "false", "nobody is let in"),
        ("external-dns.alpha.kubernetes.io/hostname", "bank.example.com", "the API's own"),
        ("coredns.io/hostname", "ml.vc.example.com,bank.example.com", "the API's own"),
    ],
)
def test_no_annotation_asks_for_a_name_of_others(annotation, value, says):
    for found in (
        refused(INGRESS | {"annotations": {annotation: value}}),
        refused(INGRESS, INGRESS | {"annotations": {annotation: value}}),
    ):
        (message,) = found.values()
        assert says in message


@pytest.mark.parametrize(
    "annotations",
    [
        {"nginx.ingress.kubernetes.io/ssl-passthrough": "true"},
        {"haproxy.org/ssl-passthrough": "true"},
        {"external-dns.alpha.kubernetes.io/hostname": "ml.vc.example.com"},
        {f"{_AWS}-internal": "true", f"{_AWS}-scheme": "internal", f"{_AWS}-proxy-protocol": "*"},
        {f"{_AWS}-connection-idle-timeout": "3600", f"{_AWS}-nlb-target-type": "ip"},
        {
            f"{_AZURE}load-balancer-internal": "true",
            f"{_AZURE}load-balancer-tcp-idle-timeout": "30",
        },
        {"networking.gke.io/load-balancer-type": "Internal"},
        {"loadbalancer.openstack.org/proxy-protocol": "true"},
        {"load-balancer.hetzner.cloud/use-private-ip": "true"},
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
