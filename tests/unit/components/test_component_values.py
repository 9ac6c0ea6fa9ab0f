"""Values of charts from arguments of components, held against each version's chart."""

import pytest

from kai_fleet.kai.chart_values import kai_values
from kai_fleet.releases import KAI, VCLUSTER, kai, minor_line
from kai_fleet.values import value_at
from kai_fleet.vcluster.chart_values import vcluster_values
from tests.chart_keys import unknown_keys
from tests.unit.components import component_samples

SCHEMAS_AT_HAND = ("v0.27.3", "v0.30.5", "v0.34.7", "v0.36.1")
ACCESS = {
    "load balancer": {"load_balancer_class": "a/b", "load_balancer_source_ranges": ["10.0.0.0/8"]},
    "node port": {"type": "NodePort", "host": "10.0.0.5", "port": 30001},
    "ingress": {"type": "Ingress", "host": "ml.example.com", "class_name": "nginx"},
    "gateway": {"type": "Gateway", "host": "ml.example.com", "gateway": "gateways/tls"},
}
STORES = {
    "etcd": {"store": {"type": "etcd", "replicas": 3}, "replicas": 3, "size": "8Gi"},
    "database": {"store": {"type": "external", "data_source": "postgres://db"}, "licensed": True},
    "inside": {"store": {"type": "embeddedEtcd"}, "licensed": True, "size": "8Gi"},
}
VCLUSTERS = {
    "bare": {},
    "full": component_samples.VCLUSTER,
    **{mode: {"mode": mode, "node_pool": {"pool": "ml"}} for mode in ("host", "default")},
    **{name: {"access": access} for name, access in ACCESS.items()},
    **STORES,
}
KAIS = {
    "bare": {},
    "off": {"gpu_sharing": False},
    "full": {key: item for key, item in component_samples.KAI.items() if key != "values"},
}


# The first chart with a TLSRoute; a rule says so.
GATEWAY_SINCE = (0, 34)
OF_VERSIONS = [
    (version, name)
    for version in VCLUSTER
    for name in VCLUSTERS
    if name != "gateway" or minor_line(version) >= GATEWAY_SINCE
]


def values(args):
    return vcluster_values("ml", args, "team-ml")


@pytest.mark.parametrize(("version", "name"), OF_VERSIONS)
def test_every_version_of_vcluster_reads_the_values(version, name, vcluster_schema):
    found = values(VCLUSTERS[name])
    assert unknown_keys("vcluster", version, found) == []
    if version in SCHEMAS_AT_HAND:
        vcluster_schema(version).validate(found)


@pytest.mark.parametrize("name", KAIS)
@pytest.mark.parametrize("version", KAI)
def test_every_version_of_kai_reads_the_values(version, name):
    # What no version had before it could share GPUs in that mode.
    args = {**KAIS[name], "gpu_sharing_mode": "NonMemoryEnforced"}
    assert unknown_keys("kai", version, kai_values(kai(version), args)) == []


def test_a_vcluster_without_a_licence_has_the_open_image_and_no_token_in_an_annotation():
    assert value_at(values({}), "sync.toHost.pods.useSecretsForSATokens") is True
    assert value_at(values({}), "controlPlane.statefulSet.image.repository") == (
        "loft-sh/vcluster-oss"
    )
    assert value_at(values({"licensed": True}), "controlPlane.statefulSet.image") is None
