"""A vCluster's API server reaches its identity provider, or the plan says that it does not."""

import copy

import pytest

from kai_fleet_policies.finding import Level
from kai_fleet_policies.rules import BY_NAME, check
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.settings.loading import load

pytestmark = pytest.mark.texts("rules")

SETTINGS = {
    "cluster": {"name": "lab", "context": "lab"},
    "teams": {"ml": {"scheduler": {"mode": "default"}, "nodePool": {"pool": "ml"}, "gpus": 2}},
}
API = {"apiCidrs": ["10.0.0.1/32"]}


def found(issuer, network, level="baseline"):
    settings = copy.deepcopy(SETTINGS)
    oidc = {"issuer": issuer, "clientId": "kubernetes"}
    settings["teams"]["ml"] |= {"vcluster": {"oidc": oidc}}
    settings["isolation"] = {"level": level, "network": network}
    read = load(settings).settings
    return check(clusters_of(read), [BY_NAME["vcluster-provider-reached"]])


@pytest.mark.parametrize(
    ("issuer", "network"),
    [
        ("https://id.example.com", API | {"internet": False}),
        ("https://id.corp", API),
        ("https://keycloak.auth.svc", API),
        ("https://keycloak", API),
        ("https://10.20.0.10:8443/realms/x", API),
        ("https://[fd00::1]", API),
    ],
)
def test_vcluster_provider_reached_warns_where_no_policy_leads_to_it(issuer, network, texts):
    (finding,) = found(issuer, network)
    assert finding.level is Level.ADVISORY
    assert finding.path == "kai-fleet:teams.ml.vcluster.oidc.issuer"
    texts(finding)


@pytest.mark.parametrize(
    ("issuer", "network", "level"),
    [
        ("https://id.example.com", API, "baseline"),
        ("https://id.corp", {}, "baseline"),
        ("https://id.corp", API | {"cidrs": ["10.20.0.0/16"]}, "baseline"),
        ("https://id.corp", API, "off"),
        ("https://id.corp", API | {"enabled": False}, "baseline"),
        ("https://id.auth.svc", API | {"internet": False, "namespaces": ["auth"]}, "baseline"),
        ("https://id.auth.svc", API | {"internet": True, "namespaces": ["auth"]}, "baseline"),
    ],
)
def test_vcluster_provider_reached_passes(issuer, network, level):
    assert found(issuer, network, level) == []
