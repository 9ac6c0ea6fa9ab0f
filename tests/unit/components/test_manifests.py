"""A manifest is an object of a cluster and nothing else, wherever its file is named."""

import re
from pathlib import Path

import pulumi_kubernetes
import pytest
import yaml

from kai_fleet.manifests import name_of, type_of
from kai_fleet.marks import REFUSAL, SIGNATURE, UNKNOWN
from kai_fleet_cli.plan.offline import plan_settings
from kai_fleet_stack import validation
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts, load_team_stack
from tests.unit.stack.stack_arguments import settings_of, stack

ASSET = "c44067f5952c0a294b673a41bacd8c17"
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
STACK = "a::pulumi:pulumi:Stack::b"
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """What each reader of a team's files says of one with these documents."""
    monkeypatch.setattr("kai_fleet_stack.settings.files.yaml_file.ROOT", tmp_path)

    def of(*documents):
        (tmp_path / "a.yaml").write_text(yaml.safe_dump_all(documents))
        raw = stack(workloads={"ml": ["a.yaml"]})
        facts = Facts.of(settings_of(stack(teamStacks={"nlp": {}})))
        team = {"name": "nlp", "scheduler": {"mode": "default"}}
        own = {"platform": {"stack": "lab"}, "team": team, "workloads": {"nlp": ["a.yaml"]}}
        planned = plan_settings(raw)
        assert bool(planned.resources) is planned.ok
        found = [load(raw).mistakes, validation.validate(raw).refused, planned.problems]
        found.append(load_team_stack(own, lambda _: facts).mistakes)
        return [[item.message for item in each] for each in found]

    return of


def of_provider():
    """The type tokens that Pulumi's Kubernetes SDK has."""
    folder = Path(pulumi_kubernetes.__file__).parent
    text = "".join(file.read_text() for file in folder.rglob("*.py"))
    return sorted(set(re.findall(r'"(kubernetes:[^":{]+:[A-Za-z]+)"', text)))


def accepted(api_version, kind):
    from kai_fleet_stack.settings.files.manifests import _object

    try:
        _object({"apiVersion": api_version, "kind": kind, "metadata": {"name": "m"}})
    except ValueError:
        return False
    return True


def test_of_all_types_of_the_plugin_only_kubernetes_own_are_taken():
    """Under every apiVersion that would lead to one."""
    tokens, taken = of_provider(), set()
    for token in tokens:
        _, module, kind = token.split(":")
        versions = {module, module.removeprefix("core/")}
        taken |= {token for version in versions if accepted(version, kind)}
    kubernetes = re.compile(r"kubernetes:((core|apps|autoscaling|batch|policy)/|[a-z.]+\.k8s\.io/)")
    objects = {t for t in tokens if kubernetes.match(t) and not t.endswith(("List", "Patch"))}
    assert taken == objects
    assert len(objects) > 100
    assert {"kubernetes:helm.sh/v3:Release", "kubernetes:yaml/v2:ConfigGroup"} <= {*tokens} - taken


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"apiVersion": version}
            for version in (
                *("helm.sh/v3", "helm.sh/v4", "helm.sh/v2", "Helm.sh/v3", "helm.sh./v3", "helm/v3"),
                *("kustomize/v2", "kustomize", "yaml", "yaml/v2", "core/v1", "meta/v1", "/v1"),
                *("v1:x", "v1/", "", "v1\n", "a/b/v1", "example.com/v1/v2", "example..com/v1"),
                *("pulumi:providers:kubernetes", "kai-fleet:index:Team", "apiregistration/v1"),
                *(
                    "example.com/1",
                    "example.com/v",
                    "example.com/V1",
                    "example.com/v1-x",
                    "EX.com/v1",
                ),
            )
        ),
        *(
            {"kind": kind}
            for kind in (
                *("ConfigMapPatch", "ConfigMapList", "List", "Patch", "configMap", "Config-Map"),
                *("ConfigMap$Release", "x:ConfigMap", "ConfigMap::b", "", "Konfiguratiön"),
            )
        ),
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourcePatch"},
        *(
            {"metadata": {"name": name}}
            for name in (STACK, "a:b", "A", "a/b", "", "a..b", "-a", "a$b", "a b", "x" * 254)
        ),
        {**ROLE, "metadata": {"name": STACK}},
        {**ROLE, "metadata": {"name": "a/b"}},
        *(
            {"metadata": {"name": "m", "namespace": namespace}}
            for namespace in (STACK, "a.b", "A", "", None, 1, ["a"], "x" * 64)
        ),
        *(
            {"metadata": {"name": "m", "annotations": {f"pulumi.com/{key}": value}}}
            for key, value in (
                *(("timeoutSeconds", "360000"), ("waitFor", "jsonpath={.never}")),
                *(("patchForce", "true"), ("patchFieldManager", "x"), ("replaceUnready", "true")),
                *(("deletionPropagationPolicy", "orphan"), ("autonamed", "true")),
                *(("skipAwait", "true"), ("skipAwait", True), ("next", "")),
            )
        ),
        {"_providers": {}},
        {"__inputs": {}},
        {"__fieldManager": "x"},
        {"": 1},
    ],
    ids=str,
)
def test_what_is_no_object_of_a_cluster_is_refused_by_every_reader(refused, change):
    for messages in refused({**MAP, **change}):
        assert len(messages) == 1
        assert "; " in messages[0] and messages[0].startswith(("has ", "is no "))


@pytest.mark.parametrize("mark", [SIGNATURE, UNKNOWN, ASSET])
@pytest.mark.parametrize(
    "change",
    [
        lambda mark: {"data": {mark: ASSET, "path": "/etc/passwd"}},
        lambda mark: {"metadata": {"name": "m", "labels": {"x": mark}}},
        lambda mark: {"spec": {"template": [{"deep": [{mark: "x", "uri": "http://x"}]}]}},
        lambda mark: {mark: "x"},
    ],
)
def test_no_part_of_one_is_a_value_of_pulumis_protocol(refused, change, mark):
    for messages in refused({**MAP, **change(mark)}):
        assert len(messages) == 1
        assert REFUSAL in messages[0]


def test_one_resource_is_declared_once(refused):
    """Of two the engine would end every team's update."""
    spaced = {**MAP, "metadata": {"name": "m", "namespace": "x"}}
    other = {**MAP, "kind": "Secret"}
    assert refused(MAP, spaced, other) == [[], [], [], []]
    for messages in refused(MAP, spaced, dict(spaced)):
        assert messages == ["has ConfigMap x/m twice; write it once"]


@pytest.mark.parametrize(
    ("manifest", "token"),
    [
        (MAP, "core/v1:ConfigMap"),
        ({**MAP, "apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v1:Deployment"),
        ({**MAP, "apiVersion": "ray.io/v1alpha1", "kind": "RayJob"}, "ray.io/v1alpha1:RayJob"),
        (
            {**MAP, "apiVersion": "x.azure.com/v1api20230101", "kind": "A1"},
            "x.azure.com/v1api20230101:A1",
        ),
        ({**ROLE, "metadata": {"name": "system:My_x"}}, "rbac.authorization.k8s.io/v1:ClusterRole"),
        ({**MAP, "metadata": {"name": "a.b"}}, "core/v1:ConfigMap"),
    ],
)
def test_objects_of_clusters_are_declared_with_their_types(refused, manifest, token):
    assert refused(manifest) == [[], [], [], []]
    assert type_of(manifest) == f"kubernetes:{token}"
    assert name_of("ml", manifest) == f"ml/{manifest['metadata']['name']}"
