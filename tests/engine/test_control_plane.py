"""A control plane with etcds and replicas, which people enter by tokens of an identity provider."""

import os
import subprocess
import time

import pytest
import yaml
from kubernetes import client

from kai_fleet_cli.teams import state
from kai_fleet_stack.settings.sections.vcluster import Oidc
from tests.engine import identity_provider
from tests.engine.product import Product, project
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

OWN = {
    "replicas": 2,
    "store": {"type": "etcd", "replicas": 3},
    "size": "1Gi",
    "resources": {"requests": {"cpu": "30m", "memory": "48Mi", "ephemeralStorage": "8Mi"}},
    "access": {"type": "LoadBalancer", "annotations": {"example.com/internal": "true"}},
}
LABELS = {"example.com/site": "hq"}
GROUPS = {"ml-team-vision": "edit", "leads": "admin", "auditors": "view"}
# What stands in for kubectl's plugin: it hands out the token in a variable.
PLUGIN = """#!/bin/sh
echo "$@" > "$TOKEN_FILE.asked"
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", \
"status": {"token": "%s"}}' "$(cat "$TOKEN_FILE")"
"""


@pytest.fixture(scope="module")
def provider():
    with identity_provider.serving() as found:
        yield found


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    return Product.of("sandbox", sandbox, project(tmp_path_factory.mktemp("oidc") / "project"))


@pytest.fixture(scope="module")
def kubeconfig(product, provider, tmp_path_factory):
    """The file for people of team dev, in a stack where it is alone."""
    oidc = {"issuer": provider.issuer, "clientId": identity_provider.CLIENT}
    oidc["ca"] = provider.authority

    def one_team(config):
        for name in ("ml", "research"):
            del config["kai-fleet:teams"][name]
        config.pop("kai-fleet:teamStacks")
        config["kai-fleet:labels"] = LABELS
        config["kai-fleet:keyDomains"] = ["example.com"]
        config["kai-fleet:vcluster"]["oidc"] = oidc
        config["kai-fleet:teams"]["dev"]["vcluster"] = {**OWN, "groups": GROUPS}

    product.edit(one_team)
    created = product.up().outputs["kubeconfigs"]["dev"]
    assert product.up().changed == {}
    resources = product.stack.export_stack().deployment["resources"]
    declared = Oidc.model_validate(oidc)
    (release,) = (resource for resource in resources if resource["urn"].endswith("::dev-release"))
    server = release["inputs"]["values"]["controlPlane"]["distro"]["k8s"]["apiServer"]
    assert f"--oidc-issuer-url={declared.issuer}" in server["extraArgs"]
    file = tmp_path_factory.mktemp("people") / "kubeconfig"
    file.write_text(state.for_people(created, declared))
    return file


@pytest.fixture
def kubectl(sandbox, kubeconfig, tmp_path):
    """kubectl with that file, as who has a token; the plugin is found on PATH, as a real one is."""
    plugin = tmp_path / "kubectl-oidc_login"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    token_file = tmp_path / "token"

    def run(token, *arguments, stdin=""):
        token_file.write_text(token)
        env = {**os.environ, **sandbox.env(), "TOKEN_FILE": str(token_file)}
        env |= {"PATH": f"{tmp_path}:{env['PATH']}", "KUBECONFIG": str(kubeconfig)}
        return subprocess.run(
            ["kubectl", *arguments],
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "first"},
    "spec": {"containers": [{"name": "main", "image": "busybox:1.37"}]},
}


def test_the_file_for_people_holds_nobodys_credentials(kubeconfig, provider):
    document = yaml.safe_load(kubeconfig.read_text())
    assert [set(item["user"]) for item in document["users"]] == [{"exec"}]
    assert "PRIVATE KEY" not in kubeconfig.read_text()


def test_who_may_edit_makes_a_pod_in_default_and_nothing_of_the_cluster(kubectl, provider):
    token = provider.token("ana", "ml-team-vision")
    who = until(lambda: kubectl(token, "auth", "whoami", "-o", "yaml").stdout, 60)
    user = yaml.safe_load(who)["status"]["userInfo"]
    assert user["username"] == "oidc:ana"
    assert user["groups"] == ["oidc:ml-team-vision", "system:authenticated"]
    created = kubectl(token, "create", "-f", "-", stdin=yaml.safe_dump(POD))
    assert created.returncode == 0, created.stderr
    role = kubectl(token, "create", "clusterrole", "mine", "--verb=*", "--resource=*")
    assert 'cannot create resource "clusterroles"' in role.stderr
    elsewhere = kubectl(token, "-n", "kube-system", "create", "-f", "-", stdin=yaml.safe_dump(POD))
    assert "is forbidden" in elsewhere.stderr
    for asked in (
        ("impersonate", "serviceaccounts", "-n", "kube-system"),
        ("create", "serviceaccounts/token", "-n", "kube-system"),
        ("get", "secrets", "-n", "kube-system"),
        ("delete", "validatingadmissionpolicybindings"),
    ):
        assert kubectl(token, "auth", "can-i", *asked).stdout == "no\n", asked
    for asked in (("list", "pods", "-A"), ("list", "nodes")):
        assert kubectl(token, "auth", "can-i", *asked).stdout == "yes\n", asked


def test_who_may_view_changes_nothing_and_who_administers_gives_rights_in_default(
    kubectl, provider
):
    viewer, lead = provider.token("vera", "auditors"), provider.token("leo", "leads")
    until(lambda: kubectl(viewer, "auth", "whoami").returncode == 0, 60)
    assert kubectl(viewer, "auth", "can-i", "create", "pods").stdout == "no\n"
    assert kubectl(viewer, "get", "nodes").returncode == 0
    assert kubectl(viewer, "auth", "can-i", "get", "secrets").stdout == "no\n"
    given = ("create", "rolebinding", "given", "--clusterrole=view", "--user=oidc:x")
    assert kubectl(lead, *given).returncode == 0
    assert "forbidden" in kubectl(lead, "-n", "kube-system", *given).stderr
    bound = kubectl(lead, "get", "rolebinding", "kai-fleet-edit", "-o", "yaml").stdout
    assert yaml.safe_load(bound)["metadata"]["labels"] == LABELS


def test_a_providers_system_masters_is_none_of_kubernetes(kubectl, provider):
    token = provider.token("system:kube-controller-manager", "system:masters", "system:nodes")
    who = until(lambda: kubectl(token, "auth", "whoami", "-o", "yaml").stdout, 60)
    user = yaml.safe_load(who)["status"]["userInfo"]
    assert user["username"] == "oidc:system:kube-controller-manager"
    assert user["groups"][:2] == ["oidc:system:masters", "oidc:system:nodes"]
    assert "is forbidden" in kubectl(token, "get", "pods").stderr


def test_it_runs_as_a_deployment_with_its_etcds(kubeconfig, host):
    apps, core = client.AppsV1Api(host), client.CoreV1Api(host)
    plane = apps.read_namespaced_deployment("dev", "team-dev")
    assert plane.status.ready_replicas == 2
    requests = plane.spec.template.spec.containers[0].resources.requests
    assert requests == {"cpu": "30m", "memory": "48Mi", "ephemeral-storage": "8Mi"}
    assert apps.read_namespaced_stateful_set("dev-etcd", "team-dev").status.ready_replicas == 3
    claims = core.list_namespaced_persistent_volume_claim("team-dev").items
    assert {claim.metadata.name for claim in claims} == {f"data-dev-etcd-{n}" for n in range(3)}
    service = core.read_namespaced_service("dev", "team-dev")
    assert service.metadata.annotations["example.com/internal"] == "true"
    quotas = core.list_namespaced_resource_quota("team-dev").items
    spaces = core.list_namespace(label_selector="example.com/site=hq").items
    assert quotas
    assert all(LABELS.items() <= quota.metadata.labels.items() for quota in quotas)
    assert {space.metadata.name for space in spaces} >= {"team-dev", "nvidia-device-plugin"}


def test_tokens_of_others_are_none(kubectl, provider):
    good = provider.token("ana", "leads")
    until(lambda: kubectl(good, "auth", "whoami").returncode == 0, 60)
    with identity_provider.serving() as other:
        for token in (
            provider.token("ana", "leads", aud="another"),
            provider.token("ana", "leads", exp=int(time.time()) - 60),
            other.token("ana", "leads"),
            other.token("ana", "leads", iss=provider.issuer),
        ):
            assert "Unauthorized" in kubectl(token, "get", "pods").stderr


def test_another_store_is_refused_before_anything_is_changed(kubeconfig, product, host):
    def embedded(config):
        config["kai-fleet:teams"]["dev"]["vcluster"].pop("store")
        config["kai-fleet:teams"]["dev"]["vcluster"]["replicas"] = 1

    product.edit(embedded)
    with pytest.raises(Exception, match="changes from etcd to embedded"):
        product.up()
    assert client.AppsV1Api(host).read_namespaced_deployment("dev", "team-dev")
