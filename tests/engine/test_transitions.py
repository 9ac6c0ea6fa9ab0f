"""One team among several: installed, switched, rolled back. The tests build on each other.

The way of each switch is seen in the engine's steps and in the cluster. How long it takes beside
a script with helm and kubectl: `make bench`.
"""

from base64 import b64encode
from typing import Any

import pytest
import yaml
from kubernetes import client

from kai_fleet.releases import KAI
from sandbox.control_plane.certificates import Authority
from sandbox.vcluster import vcluster
from tests.engine.product import (
    Product,
    Run,
    api,
    deployments,
    namespaces,
    project,
    queues,
)
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]

# What differs by version is inside the release and in what judges its pods.
BY_VERSION = {"Stack kai-fleet-switching", "ValidatingAdmissionPolicy mover-guard-policy"}
OLD, NEW, OTHER = "v0.14.7", "v0.16.8", "v0.9.3"
OLD_VCLUSTER, NEW_VCLUSTER = "v0.35.3", "v0.36.1"
FREE = {"quota": "unlimited"}


def team(version: str, pool: str) -> dict[str, Any]:
    test = {"cpu": FREE, "memory": FREE, "gpu": {"quota": 2}}
    return {
        "scheduler": {"mode": "virtual", "version": version},
        "nodePool": {"kai-fleet/pool": pool},
        "gpus": 2,
        "queues": {"default": {**test, "children": {"test": test}}},
    }


@pytest.fixture(scope="module")
def product(sandbox, tmp_path_factory):
    directory = project(tmp_path_factory.mktemp("switch") / "project")
    copied = (directory / "Pulumi.sandbox.yaml").read_text()
    (directory / "Pulumi.switching.yaml").write_text(copied)
    product = Product.of("switching", sandbox, directory)

    def only_a_neighbour(config):
        config["kai-fleet:cluster"]["name"] = "switching"
        config["kai-fleet:gpu"]["provider"] = "none"
        neighbour = team(NEW, "research") | {"vcluster": {"access": {"type": "LoadBalancer"}}}
        config["kai-fleet:teams"] = {"neighbour": neighbour}

    product.edit(only_a_neighbour)
    return product


@pytest.fixture(scope="module")
def first(product):
    """The stack with the team in it, which came to a neighbour that was there before."""
    product.up()
    mover = team(OLD, "ml") | {"vcluster": {"version": OLD_VCLUSTER}}
    product.edit(lambda config: config["kai-fleet:teams"].update(mover=mover))
    return product.up()


def switched(product, version, **more):
    def edit(config):
        config["kai-fleet:teams"]["mover"]["scheduler"].update(version=version, **more)

    product.edit(edit)
    return product.up()


def inside(run, name="mover"):
    return api(run.outputs["kubeconfigs"][name])


def revisions(cluster) -> dict[str, str]:
    """Helm's revisions of KAI with their states."""
    found = client.CoreV1Api(cluster).list_namespaced_secret(
        "kai-scheduler", label_selector="owner=helm,name=kai-scheduler"
    )
    return {item.metadata.labels["version"]: item.metadata.labels["status"] for item in found.items}


def uids(cluster) -> dict[str, str]:
    return {name: item["metadata"]["uid"] for name, item in queues(cluster).items()}


def images(cluster) -> dict[str, str]:
    found = client.AppsV1Api(cluster).list_namespaced_deployment("kai-scheduler").items
    return {
        entry.metadata.name: entry.spec.template.spec.containers[0].image.rpartition(":")[2]
        for entry in found
    }


def only_mover(run: Run) -> None:
    others = {name for name in run.changed if " mover" not in name}
    assert others <= {"Stack kai-fleet-switching"}, others


def at(run: Run, operation: str, resource: str) -> int:
    """The place of a finished step among all of them."""
    assert (operation, resource) in run.steps, [s for s in run.steps if s[0] != "same"]
    return run.steps.index((operation, resource))


def test_a_new_team_leaves_its_neighbour_alone(first):
    only_mover(first)
    assert deployments(inside(first), "kai-scheduler") == set(KAI[OLD].deployments)
    assert revisions(inside(first)) == {"1": "deployed"}


def test_a_load_balancers_address_is_the_server(first):
    kubeconfig = first.outputs["kubeconfigs"]["neighbour"]
    server = yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"]
    assert server == first.outputs["teams"]["neighbour"]["server"]
    assert server.endswith(":443") or server.rpartition(":")[2].isdigit()
    # The certificate is checked against that name.
    assert "kube-system" in namespaces(api(kubeconfig))
    assert kubeconfig not in first.printed


def test_no_queue_comes_before_its_scheduler_works(first):
    ready = at(first, "create", "Command mover-kai-ready")
    assert at(first, "create", "Release mover-kai-release") < ready
    assert ready < at(first, "create", "Queues mover-queues")


@pytest.mark.slow
def test_a_newer_version_is_an_upgrade_in_place(first, product):
    before = uids(inside(first)), uids(inside(first, "neighbour")), images(inside(first))
    run = switched(product, NEW)
    only_mover(run)
    assert {name for name in run.changed if "mover-kai" not in name} <= BY_VERSION
    assert run.operations["Release mover-kai-release"] == "update"
    assert f"KAI is upgraded in place: {OLD} → {NEW}" in run.printed
    assert revisions(inside(run)) == {"1": "superseded", "2": "deployed"}
    assert set(before[2].values()) == {OLD}
    assert set(images(inside(run)).values()) == {NEW}, "ready means: the new one's parts"
    assert (uids(inside(run)), uids(inside(run, "neighbour"))) == before[:2]
    assert not [name for name in run.changed if name.startswith("Queues ")]


def test_a_downgrade_replaces_the_release_after_its_clean_up(first, product):
    before, neighbour = uids(inside(first)), revisions(inside(first, "neighbour"))
    run = switched(product, OTHER, verify=True)
    only_mover(run)
    assert f"→ {OTHER}: helm cannot downgrade" in run.printed
    cleaned = at(run, "delete-replaced", "Command mover-kai-clean-up")
    gone = at(run, "delete-replaced", "Release mover-kai-release")
    installed = at(run, "create-replacement", "Release mover-kai-release")
    ready = at(run, "create-replacement", "Command mover-kai-ready")
    assert cleaned < gone < installed < ready
    assert revisions(inside(run)) == {"1": "deployed"}
    assert images(inside(run)) == dict.fromkeys(KAI[OTHER].deployments, OTHER), (
        "the newer one's scheduler would take pods too"
    )
    assert uids(inside(run)) == before
    assert revisions(inside(run, "neighbour")) == neighbour
    assert f"KAI {OTHER} with a gang of pods is ready" in run.printed
    assert "no share of a GPU is verified" not in run.printed, "two GPUs are free"
    assert placed(inside(run)) == []


def placed(cluster) -> list[str]:
    """What is left of the pods that a wait places."""
    groups = client.CustomObjectsApi(cluster).list_namespaced_custom_object(
        "scheduling.run.ai", "v2alpha2", "default", "podgroups"
    )
    pods = client.CoreV1Api(cluster).list_namespaced_pod("default").items
    return [pod.metadata.name for pod in pods] + [
        group["metadata"]["name"]
        for group in groups["items"]
        if group["metadata"]["name"].startswith("kai-fleet")
    ]


def replaced(run: Run) -> set[str]:
    return {name for name, op in run.changed.items() if op not in ("create", "update", "delete")}


def test_what_goes_with_a_vcluster_is_replaced_with_that_alone(first, product, sandbox, host):
    """An update replaces what is `deletedWith` something that it replaces.

    All that is inside a vCluster goes with its provider, what bounds a team with its namespace.
    """
    before = uids(inside(first))
    renew_certificate(sandbox, host)

    def edit(config):
        config["kai-fleet:guard"] = {"mode": "audit"}

    product.edit(edit)
    renewed = product.up()
    assert "kubernetes mover" in renewed.changed, "it has the new certificate"
    assert "ValidatingAdmissionPolicyBinding mover-guard-binding" in renewed.changed
    assert (replaced(renewed), uids(inside(renewed))) == (set(), before)

    def upgrade(config):
        config["kai-fleet:teams"]["mover"]["vcluster"]["version"] = NEW_VCLUSTER

    product.edit(upgrade)
    upgraded = product.up()
    assert upgraded.operations["Release mover-release"] == "update"
    assert (replaced(upgraded), uids(inside(upgraded))) == (set(), before)


def renew_certificate(sandbox: Any, host: client.ApiClient) -> None:
    """Have the vCluster issue its administrator's certificate anew, as a restart of it does."""
    authority = Authority(vcluster.folder(sandbox.directory, "team-mover", "mover") / "certs")
    authority.path("admin").certificate.unlink()
    issued = authority.client("admin", "kubernetes-admin", "system:masters")
    files = {"admin.crt": issued.certificate, "admin.key": issued.key}
    data = {key: b64encode(file.read_bytes()).decode() for key, file in files.items()}
    core = client.CoreV1Api(host)
    # vCluster takes what this Secret has before its own files.
    core.patch_namespaced_secret("mover-certs", "team-mover", {"data": data})
    old = core.read_namespaced_secret("vc-mover", "team-mover").data["client-certificate"]
    restarted = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
    client.AppsV1Api(host).patch_namespaced_stateful_set(
        "mover", "team-mover", {"spec": {"template": restarted}}
    )

    def is_new() -> bool:
        found = core.list_namespaced_secret("team-mover").items
        secrets = {entry.metadata.name: entry.data for entry in found}
        return secrets.get("vc-mover", {}).get("client-certificate", old) != old

    until(is_new)
