"""What keeps teams apart cannot be undone by a value, a queue's limit, or silently."""

import copy
import json
from pathlib import Path

import pytest

from kai_fleet.releases import chart_values
from kai_fleet_policies import validation
from kai_fleet_policies.problem import Level
from kai_fleet_policies.rules.vclusters import vcluster_isolation

UNLIMITED = {r: {"quota": "unlimited"} for r in ("cpu", "memory", "gpu")}
ON = {"enabled": True}
ETCD = {"deploy": {"statefulSet": {"scheduling": {"nodeSelector": {"a": "b"}}}}}
TOKENS = "sync.toHost.pods.useSecretsForSATokens"
ETCD_NODES = "controlPlane.backingStore.etcd.deploy.statefulSet.scheduling.nodeSelector"
ML = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "ml"}, "gpus": 4}
LAB = {"cluster": {"name": "lab", "context": "lab"}, "teams": {"ml": ML}}
HOST = {
    "cluster": {"name": "lab", "context": "lab"},
    "kai": {"version": "v0.16.8"},
    "queues": {"top": {**UNLIMITED, "children": {"a": UNLIMITED, "b": UNLIMITED}}},
    "teams": {"ml": {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 2}},
    "teamStacks": {"nlp": {"gpus": 3, "parentQueue": "b"}},
}


def told(raw, level=Level.MANDATORY):
    problems = validation.validate(raw).problems
    return {(p.rule, p.path): p.message for p in problems if p.level is level}


def with_values(values, **isolation):
    raw = copy.deepcopy(LAB)
    raw["teams"]["ml"] |= {"vcluster": {"values": values}, "isolation": isolation}
    return raw


@pytest.mark.parametrize("kind", ["nodes", "csiStorageCapacities"])
def test_without_a_scheduler_inside_what_only_one_may_read_is_refused(kind):
    values, key = {"sync": {"fromHost": {kind: ON}}}, f"sync.fromHost.{kind}"
    (message,) = told(with_values(values)).values()
    assert f"has {key} on, which only a team in mode virtual may read" in message
    assert told(with_values({"sync": {"fromHost": {kind: {"enabled": "auto"}}}})) == {}
    inside = with_values(values)
    inside["teams"]["ml"] |= {
        "scheduler": {"mode": "virtual", "version": "v0.16.8"},
        "queues": {"top": {**UNLIMITED, "gpu": {"quota": 4}}},
    }
    assert told(inside) == {}
    assert told(with_values(values, level="off")) == {}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"rbac": {"clusterRole": {"extraRules": [{"verbs": ["*"]}]}}}, "rbac.clusterRole"),
        ({"rbac": {"clusterRole": {"enabled": True}}}, "rbac.clusterRole"),
        ({"rbac": {"role": {"extraRules": [{"verbs": ["get"]}]}}}, "rbac.role"),
        ({"controlPlane": {"hostPathMapper": {"enabled": True}}}, "controlPlane.hostPathMapper"),
        (
            {"sync": {"toHost": {"networkPolicies": {"enabled": True}}}},
            "sync.toHost.networkPolicies",
        ),
        ({"sync": {"fromHost": {"secrets": {"enabled": True}}}}, "sync.fromHost.secrets"),
        (
            {"sync": {"fromHost": {"nodes": {"selector": {"all": True}}}}},
            "sync.fromHost.nodes.selector",
        ),
        (
            {"controlPlane": {"statefulSet": {"scheduling": {"nodeSelector": {"a": "b"}}}}},
            "controlPlane.statefulSet.scheduling.nodeSelector",
        ),
        ({"policies": {"podSecurityStandard": "privileged"}}, "policies.podSecurityStandard"),
        ({"sync": {"toHost": {"pods": {"useSecretsForSATokens": False}}}}, TOKENS),
        ({"platform": {"apiKey": {"namespace": "kube-system", "secretName": "s"}}}, "platform"),
        (
            {"sync": {"toHost": {"customResources": {"roles.rbac.authorization.k8s.io": ON}}}},
            "sync.toHost.customResources",
        ),
        (
            {"policies": {"networkPolicy": {"enabled": True, "workload": {"egress": [{}]}}}},
            "policies.networkPolicy",
        ),
        ({"controlPlane": {"backingStore": {"etcd": ETCD}}}, ETCD_NODES),
        (
            {"experimental": {"deploy": {"host": {"manifests": "kind: Pod"}}}},
            "experimental.deploy.host",
        ),
    ],
)
def test_a_value_that_undoes_isolation_is_refused_unless_it_is_off(values, key):
    found = told(with_values(values))
    place = ("vcluster-isolation", f"kai-fleet:teams.ml.vcluster.values.{key}")
    assert key in found[place] or "Pod Security" in found[place]
    assert not [rule for rule, _ in told(with_values(values, level="off")) if "isolation" in rule]


BEYOND = [
    ("exportKubeConfig.secret.namespace", "default"),
    ("exportKubeConfig.serviceAccount", {"name": "x", "clusterRole": "cluster-admin"}),
    ("exportKubeConfig.insecure", True),
    ("exportKubeConfig.server", "https://evil.example"),
    ("integrations.externalSecrets", {"enabled": True}),
    ("integrations.kubeVirt", {"enabled": True}),
    ("integrations.metricsServer.apiService", {"service": {"namespace": "kube-system"}}),
    ("external", {"x": {"y": 1}}),
    ("deploy", {"argoCD": {"applications": [{}]}}),
    ("deploy", {"localPathProvisioner": {"enabled": True, "nodePath": "/etc"}}),
    ("experimental.deploy.host", {"manifestsTemplate": "kind: ClusterRoleBinding"}),
    ("experimental.genericSync", {"clusterRole": {"extraRules": [{}]}}),
    ("experimental.syncSettings.targetNamespace", "kube-system"),
    ("experimental.isolatedControlPlane", {"enabled": True, "namespace": "x"}),
    ("experimental.virtualClusterKubeConfig", {"clientCACert": "/x"}),
    ("experimental.docker", {"volumes": ["/:/host"]}),
    ("plugins", {"p": {"rbac": {"role": {}}, "image": "ghcr.io/loft-sh/p"}}),
    ("plugins", {"enabled": False, "p": {"image": "ghcr.io/loft-sh/p"}}),
    ("plugin", {"p": {"image": "ghcr.io/loft-sh/p"}}),
    ("sync.toHost.customResources", {"enabled": False, "roles.rbac.authorization.k8s.io": ON}),
    ("sync.toHost.pods.patches", [{"path": "spec", "expression": "value"}]),
    ("sync.fromHost.nodes.patches", [{"path": "spec", "expression": "value"}]),
    ("sync.fromHost.gateways", {"enabled": True, "mappings": {"byName": {"a/b": "c/d"}}}),
    ("rbac.role", {"overwriteRules": [{"verbs": ["*"]}]}),
    ("rbac.enableVolumeSnapshotRules", {"enabled": True}),
    ("controlPlane.advanced.kubeVip", {"enabled": True}),
    ("controlPlane.advanced.konnectivity", {"server": {"enabled": True}}),
    ("controlPlane.advanced.registry", {"enabled": True}),
    ("controlPlane.advanced.serviceAccount", {"annotations": {"iam.example.com/role": "x"}}),
    ("controlPlane.advanced.workloadServiceAccount", {"name": "default"}),
    ("controlPlane.advanced.globalMetadata", {"annotations": {"iam.example.com/role": "x"}}),
    ("controlPlane.standalone", {"enabled": True}),
    ("controlPlane.backingStore.database.embedded.dataSource", "mysql://x"),
    ("controlPlane.backingStore.etcd.external", {"enabled": True, "endpoint": "x.example:443"}),
    ("controlPlane.statefulSet.sidecarContainers", [{"image": "ghcr.io/loft-sh/x"}]),
    ("controlPlane.statefulSet.initContainers", [{"image": "ghcr.io/loft-sh/x"}]),
    ("controlPlane.statefulSet.hostAliases", [{"ip": "1.2.3.4", "hostnames": ["kubernetes"]}]),
    ("controlPlane.statefulSet.persistence.addVolumes", [{"name": "h", "hostPath": {"path": "/"}}]),
    ("controlPlane.statefulSet.persistence.dataVolume", [{"name": "n", "nfs": {"server": "x"}}]),
    ("controlPlane.coredns.overwriteManifests", "kind: Pod"),
    ("controlPlane.service.spec.externalIPs", ["1.1.1.1"]),
    ("policies.centralAdmission", {"mutatingWebhooks": [{}]}),
    ("networking.replicateServices", {"fromHost": [{"from": "a/b", "to": "c/d"}]}),
    ("networking.advanced.proxyKubelets", {"byIP": True}),
    ("privateNodes", {"enabled": True}),
    ("snapshots", {"auto": {"storage": {"s3": {"credential": {"secretNamespace": "x"}}}}}),
    ("aKeyOfTomorrow", {"enabled": True}),
    ("controlPlane.aKeyOfTomorrow", True),
    ("sync.toHost.aKindOfTomorrow", {"enabled": True}),
    ("experimental.aKeyOfTomorrow", "x"),
]


@pytest.mark.parametrize(("key", "value"), BEYOND)
def test_a_value_that_reaches_beyond_the_team_is_refused_or_nobody_has_judged_it(key, value):
    for step in reversed(key.split(".")):
        value = {step: value}
    found = {path: text for (rule, path), text in told(with_values(value)).items() if "iso" in rule}
    (place,) = found
    assert place.startswith(f"kai-fleet:teams.ml.vcluster.values.{key}")
    assert not [r for r, _ in told(with_values(value, level="off")) if r == "vcluster-isolation"]


ROLE = "v1\nkind: ClusterRole\nmetadata: {name: x}\n---\napiVersion: v1"
LOOKUP = '{{ lookup "v1" "Secret" "kube-system" "" | toJson }}'


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("controlPlane.tlsRoute.apiVersion", ROLE, "write one line"),
        ("controlPlane.statefulSet.dnsPolicy", "ClusterFirst\r---\rkind: Pod", "write one line"),
        ("controlPlane.statefulSet.imagePullPolicy", "Always\u2028kind: Pod", "write one line"),
        ("controlPlane.ingress.spec", {"rules": [{"host": LOOKUP}]}, "has {{"),
        ("controlPlane.ingress.spec", {LOOKUP: "x"}, "has {{"),
        ("controlPlane.tlsRoute.spec", {"hostnames": [LOOKUP]}, "has {{"),
        (
            "controlPlane.statefulSet.persistence.addVolumes",
            [{"name": "c", "configMap": {"name": LOOKUP}}],
            "has {{",
        ),
    ],
)
def test_a_value_that_helm_would_run_or_read_as_an_object_is_refused(key, value, said):
    """Helm installs with the rights of the platform, whoever wrote the values."""
    for step in reversed(key.split(".")):
        value = {step: value}
    found = {path: text for (rule, path), text in told(with_values(value)).items() if "iso" in rule}
    ((place, text),) = found.items()
    assert place.startswith(f"kai-fleet:teams.ml.vcluster.values.{key}")
    assert said in text


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"rbac": None}, "rbac"),
        ({"rbac": {"clusterRole": None}}, "rbac.clusterRole"),
        ({"rbac": {"clusterRole": {"enabled": None}}}, "rbac.clusterRole.enabled"),
        ({"rbac": {"clusterRole": {"enabled": "auto"}}}, "rbac.clusterRole.enabled"),
        ({"rbac": {"role": {"enabled": "auto"}}}, "rbac.role.enabled"),
        ({"rbac": {"role": {"enabled": None}}}, "rbac.role.enabled"),
        ({"policies": None}, "policies"),
        ({"policies": {"podSecurityStandard": None}}, "policies.podSecurityStandard"),
        ({"sync": {"toHost": {"pods": None}}}, "sync.toHost.pods"),
        ({"sync": {"toHost": {"pods": {"useSecretsForSATokens": None}}}}, TOKENS),
        ({"sync": {"fromHost": None}}, "sync.fromHost"),
        ({"sync": {"fromHost": {"nodes": {"selector": None}}}}, "sync.fromHost.nodes.selector"),
        ({"controlPlane": {"statefulSet": None}}, "controlPlane.statefulSet"),
        (
            {"networking": {"advanced": {"proxyKubelets": None}}},
            "networking.advanced.proxyKubelets",
        ),
    ],
)
def test_a_value_that_takes_away_what_the_program_writes_is_refused(values, key):
    """The chart's own would come back in its place, such as a cluster role."""
    found = told(with_values(values))
    assert ("vcluster-isolation", f"kai-fleet:teams.ml.vcluster.values.{key}") in found


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "x", "namespace": "default"},
        {"name": "x", "serviceAccount": {"clusterRole": "cluster-admin"}},
        {"name": "x", "server": "https://evil.example"},
        {"name": "x", "insecure": True},
        {"name": "x", "aKeyOfTomorrow": "x"},
    ],
)
def test_more_secrets_with_the_kubeconfig_stay_in_the_teams_namespace(entry):
    values = {"exportKubeConfig": {"additionalSecrets": [{"name": "y"}, entry]}}
    place = "kai-fleet:teams.ml.vcluster.values.exportKubeConfig.additionalSecrets"
    assert "drop it" in told(with_values(values))[("vcluster-isolation", place)]


def test_every_key_of_every_version_has_been_decided_about():
    """Fails for a key that a newer chart brings: decide about it in vcluster_areas.yaml."""
    read = json.loads((Path(chart_values.__file__).parent / "vcluster_value_keys.json").read_text())
    keys = {key for group in read["keys"] for key in group["keys"]}
    assert len(keys) > 600
    assert [key for key in sorted(keys) if vcluster_isolation.decided(key) is None] == []


@pytest.mark.parametrize(
    "values",
    [
        {"exportKubeConfig": {"context": "x", "secret": {"name": "x", "namespace": "team-ml"}}},
        {"exportKubeConfig": {"additionalSecrets": [{"name": "x", "namespace": "team-ml"}]}},
        {"controlPlane": {"advanced": {"virtualScheduler": ON, "podDisruptionBudget": ON}}},
        {"controlPlane": {"ingress": {**ON, "host": "ml.example.com", "annotations": {"a": "b"}}}},
        {"controlPlane": {"statefulSet": {"scheduling": {"tolerations": [{"key": "x"}]}}}},
        {
            "controlPlane": {
                "statefulSet": {"persistence": {"addVolumes": [{"name": "c", "configMap": {}}]}}
            }
        },
        {"controlPlane": {"coredns": {"overwriteConfig": ".:1053 {}", "deployment": ON}}},
        {"sync": {"toHost": {"pods": {"enforceTolerations": ["a=b:NoSchedule"]}, "ingresses": ON}}},
        {"sync": {"fromHost": {"storageClasses": ON, "nodes": {"clearImageStatus": True}}}},
        {"integrations": {"metricsServer": {**ON, "pods": True, "nodes": False}}},
        {"experimental": {"deploy": {"vcluster": {"manifests": "kind: ConfigMap\n---\na: b"}}}},
        {"experimental": {"deploy": {"vcluster": {"manifestsTemplate": "{{ .Release }}"}}}},
        {"controlPlane": {"coredns": {"overwriteConfig": ".:1053 {\n  template {{ .Name }}\n}"}}},
        {"controlPlane": {"service": {"annotations": {"example.com/note": "one\ntwo"}}}},
        {"rbac": {"role": {"extraRules": []}}, "plugins": {}},
        {"telemetry": {"enabled": False}, "logging": {"encoding": "json"}},
    ],
)
def test_what_stays_within_the_team_passes(values):
    assert [rule for rule, _ in told(with_values(values)) if rule == "vcluster-isolation"] == []


@pytest.mark.parametrize(
    "values",
    [
        {"rbac": {"clusterRole": {"enabled": False}}},
        {"controlPlane": {"hostPathMapper": {"enabled": False}}},
        {"controlPlane": {"statefulSet": {"resources": {"limits": {"memory": "2Gi"}}}}},
    ],
)
def test_values_that_change_nothing_of_it_pass(values):
    assert told(with_values(values)) == {}


def test_off_is_said_at_each_preview_of_the_team_and_of_a_grant():
    raw = {
        **LAB,
        "isolation": {"level": "off"},
        "teamStacks": {"nlp": {"nodePool": {"pool": "nlp"}, "isolation": {"level": "baseline"}}},
    }
    found = told(raw, Level.ADVISORY)
    places = [path for rule, path in found if rule == "team-isolation"]
    assert places == ["kai-fleet:isolation.level"]
    assert "write baseline" in found[("team-isolation", places[0])]


def test_off_is_refused_for_a_team_with_a_stack_of_its_own():
    raw = {**LAB, "isolation": {"level": "off"}, "teamStacks": {"nlp": {"nodePool": {"p": "nlp"}}}}
    place = ("team-isolation", "kai-fleet:teamStacks.nlp.isolation.level")
    assert "write kai-fleet:teamStacks.nlp.isolation: {level: baseline}" in told(raw)[place]


def test_a_teams_queue_holds_no_more_gpus_than_the_team():
    assert told(HOST) == {}
    raw = copy.deepcopy(HOST)
    children = raw["queues"]["top"]["children"]
    children["a"] = {**UNLIMITED, "gpu": {"quota": 2, "limit": 4}}
    children["b"] = {**UNLIMITED, "gpu": {"quota": 4}}
    found = told(raw)
    path = "kai-fleet:queues.top.children"
    assert "write 2 or less" in found[("team-queue-limit", f"{path}.a.gpu.limit")]
    assert "write 3 or less" in found[("team-queue-limit", f"{path}.b.gpu.quota")]


def test_two_teams_of_one_queue_have_its_gpus_together():
    raw = copy.deepcopy(HOST)
    raw["teams"]["dev"] = {"scheduler": {"mode": "host"}, "queue": "a", "gpus": 2}
    raw["queues"]["top"]["children"]["a"] = {**UNLIMITED, "gpu": {"quota": 4}}
    assert told(raw) == {}


def test_nothing_goes_beside_the_queues_in_host_mode():
    raw = {**HOST, "guard": {"outsideQueues": "allow"}}
    assert "write deny" in told(raw)[("config", "kai-fleet:guard.outsideQueues")]
    raw = {**raw, "isolation": {"level": "off"}}
    assert ("config", "kai-fleet:guard.outsideQueues") not in told(raw)
