"""Stacks without isolation, updated to have it.

Nothing is made anew, the preview says so, and it names the running pods that the new guard would
refuse. The tests of a mode build on each other.
"""

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from kai_fleet_cli.engine import runs
from kai_fleet_cli.engine.report import operation
from tests.engine.guarded_pods import pod
from tests.engine.product import Product, api, project
from tests.engine.sandbox_commands import until

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.timeout(600)]

POOL = {"kai-fleet/pool": "ml"}
UNLIMITED = {resource: {"quota": "unlimited"} for resource in ("cpu", "memory", "gpu")}
VIRTUAL = {
    "kai-fleet:teams": {
        "ml": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": POOL,
            "gpus": 2,
            "queues": {"all": {"children": {"train": {"gpu": 2}}}},
        }
    }
}
ON_HOST = {
    "kai-fleet:kai": {"version": "v0.16.8"},
    "kai-fleet:queues": {"all": {**UNLIMITED, "children": {"ml": UNLIMITED}}},
    "kai-fleet:teams": {
        "ml": {"scheduler": {"mode": "host"}, "queue": "ml", "nodePool": POOL, "gpus": 2}
    },
}


@pytest.fixture(scope="module", params=[VIRTUAL, ON_HOST], ids=["virtual", "host"])
def product(request, sandbox, place, tmp_path_factory):
    place.empty()
    directory = project(tmp_path_factory.mktemp("old") / "project")
    copied = (directory / "Pulumi.sandbox.yaml").read_text()
    (directory / "Pulumi.older.yaml").write_text(copied)
    product = Product.of("older", sandbox, directory)

    def one_team(config):
        config["kai-fleet:cluster"]["name"] = "older"
        config["kai-fleet:gpu"]["provider"] = "none"
        config["kai-fleet:isolation"] = {"level": "off"}
        config.pop("kai-fleet:teamStacks")
        config.update(request.param)

    product.edit(one_team, named=False)
    return product


@pytest.fixture(scope="module")
def host(sandbox):
    return client.CoreV1Api(api(sandbox.kubeconfig.read_text()))


@pytest.fixture(scope="module")
def old(product, host):
    """The stack as it was, with a tenant's pods on the host: its resources by kind and name, and
    the UIDs of what is on the host.
    """
    product.up()
    exported = product.stack.export_stack()
    bad = pod("root", scheduler=None, nodeSelector=POOL, hostPID=True)
    every = pod("every-gpu", scheduler=None, nodeSelector=POOL)
    every["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    for body in (bad, every, pod("good", scheduler=None, nodeSelector=POOL)):
        host.create_namespaced_pod("team-ml", body)

    def on_nodes():
        return all(it.spec.node_name for it in host.list_namespaced_pod("team-ml").items)

    assert until(on_nodes, 60)

    def no_isolation_key(config):
        del config["kai-fleet:isolation"]

    product.edit(no_isolation_key, named=False)
    kept = exported.deployment["resources"]
    return {f"{it['type'].rsplit(':', 1)[-1]} {name_of(it)}" for it in kept}, uids(host)


def name_of(resource):
    return resource["urn"].rpartition("::")[2]


def uids(host):
    quota = host.read_namespaced_resource_quota("gpus", "team-ml")
    found = {"namespace": host.read_namespace("team-ml"), "quota": quota}
    found |= {it.metadata.name: it for it in host.list_namespaced_pod("team-ml").items}
    return {name: it.metadata.uid for name, it in found.items()}


def labels(host):
    return host.read_namespace("team-ml").metadata.labels


LEVEL = "pod-security.kubernetes.io/enforce"


def test_the_preview_names_the_pods_and_replaces_nothing(product, host, old):
    lines = []
    outcome = runs.preview(product.stack, lines.append)
    said = "\n".join(lines)
    assert "pod root: it has hostPID: true" in said
    assert "by itself: NVIDIA_VISIBLE_DEVICES in container main" in said
    assert "2 of its 4 pods would be refused" in said
    assert "pod good" not in said and "pod ml-0" not in said
    assert {operation(it) for it in outcome.steps} <= {"same", "create", "update"}, said
    assert LEVEL not in labels(host)


def test_the_update_makes_nothing_anew(product, host, old):
    run = product.up()
    assert {op for op, _ in run.steps} <= {"same", "create", "update"}
    made = {name for name, op in run.operations.items() if op == "create"}
    resources, before = old
    assert {"Release ml-release", "Namespace ml-namespace", "ResourceQuota ml-gpus"} <= resources
    assert not made & resources
    assert run.operations["Namespace ml-namespace"] == "update"
    # The vCluster's own pod starts anew by its StatefulSet's template.
    now = uids(host)
    assert {**before, "ml-0": None} == {**now, "ml-0": None}


def test_what_is_made_from_now_on_is_judged(product, host, old):
    assert labels(host)[LEVEL] == "baseline"

    def denied():
        body = pod("late", scheduler=None, nodeSelector=POOL)
        body["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
        try:
            host.create_namespaced_pod("team-ml", body, dry_run="All")
        except ApiException as why:
            return "drop the variable" in why.body
        return False

    assert until(denied, 30)


def test_a_second_update_changes_nothing_and_says_nothing_of_pods(product, old):
    run = product.up()
    assert run.changed == {}
    assert "would be refused" not in run.printed


def test_a_stricter_level_is_told_before_it_holds_too(product, old):
    def strict(config):
        config["kai-fleet:isolation"] = {"level": "restricted"}

    product.edit(strict, named=False)
    lines = []
    runs.preview(product.stack, lines.append)
    said = "\n".join(lines)
    assert "the guard of team ml wants other things" in said
    assert "pod good: it is not as isolation level restricted wants it" in said
    assert "write securityContext." in said
    product.edit(lambda config: config.pop("kai-fleet:isolation"), named=False)
