"""What keeps teams apart, and what a control plane runs, is not undone by a chart value."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kai_fleet.releases import KAI
from kai_fleet.releases.allowed_values import READ
from kai_fleet.releases.chart_values import nested
from kai_fleet.values import UNKNOWN
from kai_fleet_policies.finding import Level
from kai_fleet_policies.model.cluster import ClusterModel, TeamModel
from kai_fleet_policies.model.installed import Kai
from kai_fleet_stack import validation
from tests import chart_keys
from tests.unit.policies.samples import found, granted, open_question

pytestmark = pytest.mark.texts("rules")

RULE = "vcluster-values"
ON = {"enabled": True}
API = "controlPlane.distro.k8s.apiServer.extraArgs"
STATEFUL = "controlPlane.statefulSet"
ROLE = "v1\nkind: ClusterRole\nmetadata: {name: x}\n---\napiVersion: v1"
LOOKUP = '{{ lookup "v1" "Secret" "kube-system" "" | toJson }}'


def refused(key, value, level="baseline", **more):
    """What is refused of one value, by its key."""
    team = TeamModel("ml", path="ml", namespace="team-ml", level=level, **more)
    host = ClusterModel("host", teams=(TeamModel(**vars(team) | {"values": nested(key, value)}),))
    problems = found(RULE, host)
    assert all(each.level is Level.MANDATORY and each.fix for each in problems)
    return {each.path.partition("values.")[2]: each for each in problems}


BEYOND = [
    ("rbac.clusterRole.enabled", True),
    ("sync.fromHost.secrets.enabled", True),
    ("policies.podSecurityStandard", "privileged"),
    ("policies.networkPolicy", {"enabled": True, "workload": {"egress": [{}]}}),
    ("controlPlane.backingStore.etcd.deploy.statefulSet.scheduling.nodeSelector.a", "b"),
    ("rbac", None),
    ("exportKubeConfig.secret.namespace", "default"),
    ("exportKubeConfig.context", "prod"),
    ("controlPlane.service.labels", {"pool": "of-another"}),
    ("deploy", {"localPathProvisioner": {"enabled": True, "nodePath": "/etc"}}),
    ("experimental.deploy.host", {"manifestsTemplate": "kind: ClusterRoleBinding"}),
    ("experimental.syncSettings.targetNamespace", "kube-system"),
    ("plugins", {"p": {"rbac": {"role": {}}, "image": "ghcr.io/loft-sh/p"}}),
    ("sync.toHost.customResources", {"enabled": False, "roles.rbac.authorization.k8s.io": ON}),
    ("sync.toHost.pods.patches", [{"path": "spec", "expression": "value"}]),
    ("controlPlane.advanced.serviceAccount", {"annotations": {"iam.example.com/role": "x"}}),
    ("controlPlane.backingStore.etcd.external", {"enabled": True, "endpoint": "x.example:443"}),
    ("controlPlane.statefulSet.initContainers", [{"image": "ghcr.io/loft-sh/x"}]),
    ("controlPlane.statefulSet.persistence.addVolumes", [{"name": "h", "hostPath": {"path": "/"}}]),
    ("controlPlane.service.spec.externalIPs", ["1.1.1.1"]),
    ("networking.replicateServices", {"fromHost": [{"from": "a/b", "to": "c/d"}]}),
    ("aKeyOfTomorrow", {"enabled": True}),
    ("controlPlane.ingress.spec", {"rules": [{"host": LOOKUP}]}),
    (f"{STATEFUL}.dnsPolicy", "ClusterFirst\r---\rkind: Pod"),
    (f"{STATEFUL}.labels", {LOOKUP: "x"}),
    (f"{STATEFUL}.annotations", {"a": ROLE}),
    (f"{STATEFUL}.scheduling.tolerations", [{"key": LOOKUP}]),
    ("exportKubeConfig.additionalSecrets", [{"name": "x", "server": "https://evil.example"}]),
]


@pytest.mark.parametrize(("key", "value"), BEYOND, ids=[key for key, _ in BEYOND])
def test_vcluster_values_refuses_what_is_not_allowed(key, value, texts):
    problems = refused(key, value)
    assert problems
    assert all(place.startswith(key) or key.startswith(place) for place in problems)
    assert "evil.example" not in str(problems), "a value may be a secret"
    assert "level: off" not in str(refused(key, value, level="off"))
    texts(*problems.values())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("controlPlane.advanced.defaultImageRegistry", "ghcr.io/loft-sh"),
        ("controlPlane.coredns.overwriteConfig", ".:1053 {\n  template {{ .Name }}\n}"),
        ("controlPlane.coredns.deployment", {"replicas": 2, "resources": {"limits": {"cpu": 1}}}),
        (f"{STATEFUL}.scheduling.tolerations", [{"key": "x"}]),
        ("sync.fromHost.storageClasses", {"enabled": "auto"}),
        ("integrations.metricsServer", {**ON, "pods": True}),
        ("experimental.deploy.vcluster.manifests", "kind: ConfigMap\n---\na: b"),
        ("telemetry.enabled", False),
    ],
)
def test_vcluster_values_allowed_passes(key, value):
    assert refused(key, value) == {}


@pytest.mark.parametrize(
    "key", ["controlPlane.ingress.enabled", "sync.fromHost.nodes.selector.all"]
)
def test_vcluster_values_names_the_key_that_says_the_same(key, texts):
    texts(*refused(key, True).values())


FLAGS = [
    *("authorization-mode=AlwaysAllow", "anonymous-auth=true", "token-auth-file=/x"),
    *("authentication-config=/x", "enable-admission-plugins=AlwaysAdmit", "insecure-port=8080"),
    *("client-ca-file=/x", "requestheader-allowed-names=x", "kubelet-certificate-authority=/x"),
    *("encryption-provider-config=/x", "service-account-issuer=https://evil.example"),
    *("etcd-servers=http://evil.example", "tls-min-version=VersionTLS10"),
    *("oidc-username-prefix=-", "oidc-groups-prefix=system:", "oidc-username-prefix=sys"),
    *("a-flag-of-tomorrow=x", "bind-address=0.0.0.0", "config=/x", "client-cert-auth=false"),
    *("endpoint=mysql://evil.example", "kube-apiserver-arg=anonymous-auth=true"),
]
SPELT = [
    ["--anonymous-auth", "true"],
    ["-anonymous-auth=true"],
    ["--anonymous_auth=true"],
    ["\t--anonymous-auth\n", "true"],
    ['"--anonymous-auth=true"'],
    ["--v=2 --anonymous-auth=true"],
    ["--v", "2", "--anonymous-auth"],
    ["--ANONYMOUS-AUTH=true"],
    "--anonymous-auth=true",
]
ODD = [["true"], ["--"], [{"a": 1}], [["--v=2"]], {"v": "2"}, ["--=x"]]


WRONG_FLAGS = [*([f"--{flag}"] for flag in FLAGS), *SPELT, *ODD]


@pytest.mark.parametrize("flags", WRONG_FLAGS)
@pytest.mark.parametrize("program", [API, "controlPlane.distro.k3s.extraArgs"])
@pytest.mark.parametrize("level", ["off", None])
def test_vcluster_values_refuses_flags_that_may_open_a_control_plane(program, flags, level):
    problem = refused(program, flags, level=level)[program]
    assert "evil.example" not in problem.message
    assert flags not in SPELT or "--anonymous-auth" in problem.message


def test_vcluster_values_flags_are_named_in_words(texts):
    groups = refused(API, ["--oidc-groups-claim=groups"], level="off")[API]
    texts(groups, *(refused(API, flags, level="off")[API] for flags in WRONG_FLAGS))


@pytest.mark.parametrize(
    "flags",
    [
        ["--oidc-issuer-url=https://id.example", "--oidc-username-claim", "email"],
        ["--oidc-groups-claim=groups", "--oidc-groups-prefix=oidc:"],
        ["--oidc-username-prefix=sysop:"],
        ["--audit-policy-file=/etc/audit/policy.yaml", "--audit-log-path=-"],
        ["--feature-gates=A=true,B=false", "--event-ttl=2h", "-v=2", "--v", "4"],
        ["--node-monitor-grace-period=60s", "--kube-api-qps=100", "--leader-elect=true"],
        ["--auto-compaction-retention=1h", "--datastore-max-open-connections=20"],
        [],
        None,
    ],
)
def test_vcluster_values_flags_that_open_nothing_pass(flags):
    assert refused(API, flags, level="off") == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("controlPlane.distro.k8s.apiServer.command", ["/evil"]),
        (f"{STATEFUL}.command", ["sh", "-c", "evil"]),
        (f"{STATEFUL}.env", [{"name": "LD_PRELOAD", "value": "/evil.so"}]),
        ("controlPlane.backingStore.etcd.deploy.statefulSet.env", [{"name": "ETCD_X"}]),
    ],
)
def test_vcluster_values_commands_and_variables_are_the_control_planes_own(key, value, texts):
    problem = refused(key, value, level="off")[key]
    assert "evil" not in problem.message
    texts(problem)


def test_vcluster_values_a_proxy_passes():
    proxy = [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}, {"name": "no_proxy"}]
    assert refused(f"{STATEFUL}.env", proxy, level="off") == {}


@pytest.mark.parametrize(
    ("key", "value", "by_licence"),
    [
        ("sync.fromHost.customResources", {"podgroups.x": {}}, False),
        ("sleep.auto.afterInactivity", "1h", True),
    ],
    ids=["podgroups", "licence"],
)
def test_vcluster_values_refuses_what_breaks_a_vcluster(key, value, by_licence, texts):
    assert (refused(key, value, None, licensed=True) == {}) is by_licence
    texts(*refused(key, value, None).values())


@pytest.mark.parametrize(
    "value",
    [
        UNKNOWN,
        nested(API, UNKNOWN),
        nested(API, ["--v=2", UNKNOWN]),
        nested("sleep", UNKNOWN),
        nested("sleep.enabled", UNKNOWN),
    ],
)
def test_vcluster_values_waits_for_unknown_ones(value):
    host = ClusterModel("host", teams=(TeamModel("ml", values=value),))
    assert open_question(RULE, host)


def kai(level, /, version="v0.16.8", **values):
    own = Kai(version, path="kai", values=values)
    team = TeamModel("ml", path="ml", level=level, inside=ClusterModel("ml", kai=(own,)))
    host = ClusterModel("host", "", teams=(team,))
    return {item.path: item for item in found("kai-values", *host.with_insides)}


def test_kai_values_allowed_passes_and_others_are_refused(texts):
    own = {"global": {"registry": "x", "tolerations": []}, "binder": {"runtimeClassName": ""}}
    assert kai("baseline", **own, scheduler={"resources": {"limits": {"cpu": 1}}}) == {}
    wrong = {"operator": {"image": {"name": "x"}}, "binder": {"additionalArgs": ["--x"]}}
    assert list(kai("baseline", **wrong)) == [
        "kai.values.operator.image",
        "kai.values.binder.additionalArgs",
    ]
    assert kai("off", **wrong) == {}
    sharing = {"global": {"gpuSharing": False}}
    texts(*kai("baseline", **wrong).values(), *kai("baseline", **sharing).values())


@pytest.mark.parametrize("level", ["baseline", "off"])
@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("defaultQueue", "createDefaultQueue"),
        ("topologyMigration", "enabled"),
        ("postCleanup", "enabled"),
    ],
)
def test_kai_values_what_the_program_switched_off_stays_off(level, section, key, texts):
    ((path, problem),) = kai(level, **{section: {key: True}}).items()
    assert (path, problem.level) == (f"kai.values.{section}.{key}", Level.MANDATORY)
    texts(problem)


def test_values_of_a_team_stack_are_held_to_the_same_lists():
    facts = granted({"nlp": {"nodePool": {"pool": "nlp"}, "gpus": 2}})
    scheduler = {"mode": "virtual", "version": "v0.16.8", "values": {"operator": {"args": ["x"]}}}
    team = {"name": "nlp", "scheduler": scheduler, "queues": {"a": {"gpu": 2}}}
    team["vcluster"] = {"values": {"rbac": {"role": {"enabled": True}}}}
    raw = {"platform": {"stack": "lab"}, "team": team}
    found = validation.validate(raw, facts_of=lambda _: facts).refused
    assert [(item.check, item.path) for item in found] == [
        ("kai-values", "kai-fleet:team.scheduler.values.operator.args"),
        ("vcluster-values", "kai-fleet:team.vcluster.values.rbac"),
    ]


@pytest.mark.parametrize("chart", ["vcluster", "kai"])
def test_allowed_values_are_keys_of_some_version_of_the_chart(chart):
    groups = json.loads((Path(chart_keys.__file__).with_name(f"{chart}.json")).read_text())["keys"]
    keys = [key.split(".") for group in groups for key in group["keys"]]
    for path in READ[chart]["allowed"]:
        steps = path.split(".")
        same = (zip(steps, key, strict=False) for key in keys)
        assert any(all(a in (b, "*") for a, b in pairs) for pairs in same), path


@pytest.mark.parametrize("version", list(KAI))
def test_kai_values_of_a_version_are_what_its_chart_reads(version):
    """The catalogue is that of the charts' own templates."""
    for path in READ["kai"]["allowed"]:
        values = nested(path, {"limits": {"memory": "4Gi"}})
        keys = chart_keys.keys_of("kai", version)
        reads = path in keys or any(key.startswith(f"{path}.") for key in keys)
        problems = kai("baseline", version, **values)
        assert list(problems) == ([] if reads else [f"kai.values.{path}"]), path
        assert all(version in each.cause for each in problems.values())


@pytest.mark.parametrize("level", ["baseline", "off"])
@pytest.mark.parametrize(
    ("version", "key"),
    [
        ("v0.12.23", "podgrouper.resources"),
        ("v0.9.20", "pod-grouper.resources"),
        ("v0.16.8", "pod-grouper.resources"),
        ("v0.16.8", "schedulr.resources"),
        ("v0.9.8", "schedulr.affinity"),
        ("v0.16.9", "webhookmanager.resources"),
        ("v0.14.7", "operator.logLevel"),
    ],
)
def test_kai_values_that_helm_would_drop_are_refused_by_name(level, version, key, texts):
    ((path, problem),) = kai(level, version, **nested(key, {"limits": {}})).items()
    assert (path, problem.level) == (f"kai.values.{key}", Level.MANDATORY)
    texts(problem)


def test_kai_values_of_a_host_have_the_same_parts():
    own = Kai("v0.12.23", path="kai", values={"podgrouper": {"resources": {"limits": {}}}})
    (found_once,) = found("kai-values", ClusterModel("host", "", kai=(own,)))
    assert found_once.path == "kai.values.podgrouper.resources"
    newer = replace(own, version="v0.18.6", untested=True)
    assert found("kai-values", ClusterModel("host", "", kai=(newer,))) == []
