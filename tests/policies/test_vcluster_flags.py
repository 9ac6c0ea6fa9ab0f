"""vcluster-flags: what weakens a team's control plane is refused in every spelling."""

import json
from pathlib import Path

import pytest

from kai_fleet.fleet.model import DeclaredCluster, DeclaredTeam
from kai_fleet.releases import chart_values
from kai_fleet.values import UNKNOWN
from kai_fleet_policies import validation
from kai_fleet_policies.rules.vclusters.vcluster_flags import FLAGS
from tests.policies.samples import found, open_question

API = "controlPlane.distro.k8s.apiServer.extraArgs"
MANAGER = "controlPlane.distro.k8s.controllerManager.extraArgs"
SCHEDULER = "controlPlane.distro.k8s.scheduler.extraArgs"
ETCD = "controlPlane.backingStore.etcd.deploy.statefulSet.extraArgs"
KINE = "controlPlane.backingStore.database.embedded.extraArgs"


def nested(key, value):
    for step in reversed(key.split(".")):
        value = {step: value}
    return value


def told(key, value, **changes):
    team = DeclaredTeam("ml", path="kai-fleet:teams.ml", values=nested(key, value), **changes)
    cluster = DeclaredCluster("host", teams=(team,))
    return {p.path.partition("values.")[2]: p.message for p in found("vcluster-flags", cluster)}


WEAK = [
    (API, "authorization-mode", "AlwaysAllow"),
    (API, "authorization-config", "/x"),
    (API, "authorization-webhook-config-file", "/x"),
    (API, "anonymous-auth", "true"),
    (API, "token-auth-file", "/x"),
    (API, "authentication-token-webhook-config-file", "/x"),
    (API, "authentication-config", "/x"),
    (API, "enable-admission-plugins", "AlwaysAdmit"),
    (API, "disable-admission-plugins", "NodeRestriction"),
    (API, "admission-control-config-file", "/x"),
    (API, "insecure-port", "8080"),
    (API, "insecure-bind-address", "0.0.0.0"),
    (API, "client-ca-file", "/x"),
    (API, "requestheader-client-ca-file", "/x"),
    (API, "requestheader-allowed-names", "x"),
    (API, "kubelet-certificate-authority", "/x"),
    (API, "audit-webhook-config-file", "/x"),
    (API, "egress-selector-config-file", "/x"),
    (API, "encryption-provider-config", "/x"),
    (API, "profiling", "true"),
    (API, "service-account-key-file", "/x"),
    (API, "service-account-issuer", "https://evil.example"),
    (API, "etcd-servers", "http://evil.example"),
    (API, "tls-min-version", "VersionTLS10"),
    (API, "tls-cipher-suites", "TLS_RSA_WITH_RC4_128_SHA"),
    (API, "oidc-username-prefix", "-"),
    (API, "oidc-groups-prefix", "system:"),
    (API, "a-flag-of-tomorrow", "x"),
    (MANAGER, "cluster-signing-key-file", "/x"),
    (MANAGER, "root-ca-file", "/x"),
    (MANAGER, "flex-volume-plugin-dir", "/x"),
    (MANAGER, "bind-address", "0.0.0.0"),
    (SCHEDULER, "config", "/x"),
    (SCHEDULER, "authentication-skip-lookup", "true"),
    (ETCD, "client-cert-auth", "false"),
    (ETCD, "listen-client-urls", "http://0.0.0.0:2379"),
    (KINE, "endpoint", "mysql://evil.example"),
    (KINE, "listen-address", "tcp://0.0.0.0:2379"),
    ("controlPlane.distro.k3s.extraArgs", "kube-apiserver-arg", "anonymous-auth=true"),
    ("deploy.kubeProxy.extraArgs", "bind-address", "0.0.0.0"),
]


@pytest.mark.parametrize(("key", "flag", "value"), WEAK)
@pytest.mark.parametrize("isolation", ["baseline", "off", None])
def test_a_flag_that_weakens_is_refused_by_its_name_with_the_reason(key, flag, value, isolation):
    message = told(key, [f"--{flag}={value}"], isolation=isolation)[key]
    assert f" --{flag}, which " in message
    assert "drop it" in message
    assert "evil.example" not in message, "a value may be a secret"


@pytest.mark.parametrize(
    "spelled",
    [
        ["--anonymous-auth=true"],
        ["--anonymous-auth", "true"],
        ["--anonymous-auth true"],
        ["-anonymous-auth=true"],
        ["--anonymous_auth=true"],
        ["---anonymous-auth=true"],
        [" --anonymous-auth=true"],
        ["\t--anonymous-auth\n", "true"],
        ['"--anonymous-auth=true"'],
        ["--v=2 --anonymous-auth=true"],
        ["--v", "2", "--anonymous-auth"],
        ["--anonymous-auth"],
        ["--event-ttl=1h", "--anonymous-auth=true", "--v=2"],
        "--anonymous-auth=true",
        ["--ANONYMOUS-AUTH=true"],
    ],
)
def test_every_spelling_of_a_flag_is_the_flag(spelled):
    assert "--anonymous-auth" in told(API, spelled)[API]


@pytest.mark.parametrize("odd", [["true"], ["--"], [{"a": 1}], [["--v=2"]], {"v": "2"}, ["--=x"]])
def test_what_is_no_flag_is_refused(odd):
    assert "no flag" in told(API, odd)[API]


@pytest.mark.parametrize(
    ("key", "given"),
    [
        (
            API,
            [
                "--oidc-issuer-url=https://id.example",
                "--oidc-client-id=kubernetes",
                "--oidc-username-claim",
                "email",
                "--oidc-groups-claim=groups",
                "--oidc-groups-prefix=oidc:",
            ],
        ),
        (API, ["--audit-policy-file=/etc/audit/policy.yaml", "--audit-log-path=-"]),
        (API, ["--audit-log-maxage=7", "--audit-log-maxbackup=3", "--audit-log-maxsize=100"]),
        (API, ["--feature-gates=A=true,B=false", "--event-ttl=2h", "-v=2", "--v", "4"]),
        (API, ["--max-requests-inflight=800", "--max-mutating-requests-inflight=400"]),
        (API, ["--tls-min-version=VersionTLS13", "--runtime-config=api/all=true"]),
        (MANAGER, ["--node-monitor-grace-period=60s", "--concurrent-deployment-syncs=20"]),
        (MANAGER, ["--kube-api-qps=100", "--kube-api-burst=200", "--leader-elect=true"]),
        (SCHEDULER, ["--kube-api-qps=100", "--feature-gates=A=true"]),
        (ETCD, ["--auto-compaction-retention=1h", "--quota-backend-bytes=8589934592"]),
        (KINE, ["--datastore-max-open-connections=20"]),
        (API, []),
        (API, None),
    ],
)
def test_flags_that_open_nothing_pass(key, given):
    assert told(key, given) == {}


def test_groups_of_an_identity_provider_need_a_prefix():
    message = told(API, ["--oidc-groups-claim=groups"])[API]
    assert "add --oidc-groups-prefix=oidc:" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("controlPlane.distro.k8s.apiServer.command", ["/evil"]),
        ("controlPlane.distro.k8s.scheduler.command", ["/evil"]),
        ("controlPlane.statefulSet.command", ["sh", "-c", "evil"]),
        ("controlPlane.statefulSet.args", ["evil"]),
        ("controlPlane.statefulSet.env", [{"name": "LD_PRELOAD", "value": "/evil.so"}]),
        ("controlPlane.statefulSet.env", [{"name": "KUBECONFIG", "value": "/evil"}]),
        ("controlPlane.distro.k8s.env", [{"name": "SSL_CERT_FILE", "value": "/evil"}]),
        ("controlPlane.distro.k8s.env", {"GODEBUG": "x"}),
        ("controlPlane.backingStore.etcd.deploy.statefulSet.env", [{"name": "ETCD_X"}]),
    ],
)
def test_commands_and_variables_of_the_control_plane_are_its_own(key, value):
    message = told(key, value)[key]
    assert "drop it" in message
    assert "evil" not in message


def test_a_proxys_variables_pass():
    proxy = [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}, {"name": "no_proxy"}]
    assert told("controlPlane.statefulSet.env", proxy) == {}
    assert told("controlPlane.statefulSet.env", [{"name": "GOMEMLIMIT", "value": "1GiB"}]) == {}


def test_flags_not_known_yet_are_an_open_question():
    for value in (UNKNOWN, ["--v=2", UNKNOWN]):
        team = DeclaredTeam("ml", values=nested(API, value))
        assert open_question("vcluster-flags", DeclaredCluster("host", teams=(team,)))


def test_a_team_stack_and_a_platform_are_refused_at_their_own_keys():
    values = nested(API, ["--authorization-mode=AlwaysAllow"])
    ml = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "ml"}}
    raw = {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": ml}}
    ml["vcluster"] = {"values": values}
    refused = validation.validate(raw).refused
    assert [(p.rule, p.path) for p in refused] == [
        ("vcluster-flags", f"kai-fleet:teams.ml.vcluster.values.{API}")
    ]


def test_every_list_of_flags_in_any_version_is_looked_at():
    read = json.loads((Path(chart_values.__file__).parent / "vcluster_value_keys.json").read_text())
    keys = {key for group in read["keys"] for key in group["keys"] if key.endswith("extraArgs")}
    assert keys == set(FLAGS)


@pytest.mark.parametrize("flag", ["oidc-username-prefix", "oidc-groups-prefix"])
@pytest.mark.parametrize("prefix", ["s", "sys", "system", "system:"])
def test_no_prefix_lets_a_provider_write_the_rest_of_kubernetes_own_names(flag, prefix):
    message = told(API, [f"--{flag}={prefix}"])[API]
    assert f"--{flag}, which lets a provider of identities name Kubernetes' own" in message
    assert told(API, [f"--{flag}=sysop:"]) == {}
