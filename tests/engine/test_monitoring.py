"""What a stack tells Prometheus, given to a real one: it finds KAI's pods and counts."""

import json

import pytest
import yaml
from kubernetes import client

from kai_fleet.monitoring.rules import dashboards
from tests.engine import kai_metrics, prometheus
from tests.engine.product import Product, api, project
from tests.scrape_config import scrape_config

pytestmark = [pytest.mark.engine, pytest.mark.prometheus, pytest.mark.timeout(600)]
# Kinds of the Prometheus operator that a stack declares, by their plurals.
OPERATOR = {
    "podmonitors": "PodMonitor",
    "prometheusrules": "PrometheusRule",
    "servicemonitors": "ServiceMonitor",
}
# GPUs that a queue has, is guaranteed, and would be given.
QUEUES = {"top": (3.5, 4, 6), "train": (1.5, 3, 4), "serve": (2, 1, 2)}


@pytest.fixture(scope="module")
def host(sandbox):
    cluster = api(sandbox.kubeconfig.read_text())
    core = client.CoreV1Api(cluster)
    for plural, kind in OPERATOR.items():
        client.ApiextensionsV1Api(cluster).create_custom_resource_definition(crd(plural, kind))
    for name in ("monitoring", "team-watched", "elsewhere"):
        core.create_namespace({"metadata": {"name": name}})
    return cluster


@pytest.fixture(scope="module")
def product(sandbox, host, tmp_path_factory):
    product = Product.of("sandbox", sandbox, project(tmp_path_factory.mktemp("told") / "project"))

    def watched(config):
        config["kai-fleet:monitoring"] = {"interval": "1s"}
        for team in ("ml", "research"):
            config["kai-fleet:teams"].pop(team)
        config.pop("kai-fleet:teamStacks")

    product.edit(watched)
    product.up()
    return product


def crd(plural, kind):
    """A CRD of the Prometheus operator that takes any `spec`."""
    group = "monitoring.coreos.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def declared(product, host):
    """The `spec` of each object of the operator in namespace monitoring, by its plural."""
    objects = client.CustomObjectsApi(host)
    return {
        plural: objects.get_namespaced_custom_object(
            "monitoring.coreos.com", "v1", "monitoring", plural, "kai-fleet"
        )["spec"]
        for plural in ("podmonitors", "prometheusrules")
    }


def pod(host, namespace, name, address, labels):
    """A pod as the host has it of a vCluster, and its address; nothing runs."""
    core = client.CoreV1Api(host)
    container = {"name": "c", "image": "example.com/none"}
    core.create_namespaced_pod(
        namespace,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": {"schedulerName": "nobody", "containers": [container]},
        },
    )
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    core.patch_namespaced_pod_status(name, namespace, {"status": status})


def of_kai(app, inside="kai-scheduler"):
    return {"app": app, "vcluster.loft.sh/namespace": inside}


@pytest.fixture(scope="module")
def measured(sandbox, host, declared, tmp_path_factory):
    """A Prometheus in front of KAI v0.16.8 of team watched, and pods that are none of KAI's."""
    pods = [
        ("team-watched", "scheduler", "127.0.11.1", of_kai("kai-scheduler-default")),
        ("team-watched", "queues", "127.0.11.2", of_kai("queue-controller")),
        ("team-watched", "tenants", "127.0.11.3", of_kai("scheduler", inside="default")),
        ("elsewhere", "others", "127.0.11.4", of_kai("scheduler")),
    ]
    for each in pods:
        pod(host, *each)
    stranger = "kai_fleet:team_gpus_held 99\nkube_resourcequota 99\n"
    texts = {
        "127.0.11.1": kai_metrics.exposed("v0.16.8", "scheduler", QUEUES) + stranger,
        "127.0.11.2": kai_metrics.exposed("v0.16.8", "queue-controller", QUEUES),
        "127.0.11.3": "kai_queue_allocated_gpus 99\n",
        "127.0.11.4": "kai_queue_allocated_gpus 99\n",
    }
    folder = tmp_path_factory.mktemp("prometheus")
    rules = folder / "rules.yml"
    rules.write_text(yaml.safe_dump(declared["prometheusrules"]))
    scrape = scrape_config(declared["podmonitors"])
    for places in scrape["kubernetes_sd_configs"]:
        places["kubeconfig_file"] = str(sandbox.kubeconfig)  # it runs outside of the cluster here
    config = {
        "global": {"evaluation_interval": "1s"},
        "scrape_configs": [scrape],
        "rule_files": [str(rules)],
    }
    with kai_metrics.every(texts), prometheus.running(folder, config) as found:
        yield found


def test_kais_pods_are_found_through_the_vcluster_and_no_others(measured):
    targets = measured.until('up{job="kai-fleet"} == 1', 2)
    of_team = {("scheduler", "watched"), ("team", "watched"), ("job", "kai-fleet")}
    assert {frozenset(dict(item).items()) for item in targets} == {
        frozenset(
            of_team
            | {("component", "scheduler"), ("shard", "default"), ("instance", "127.0.11.1:8080")}
        ),
        frozenset(of_team | {("component", "queue-controller"), ("instance", "127.0.11.2:8080")}),
    }


def test_queues_are_counted_under_their_team(measured):
    def by_queue(name):
        measured.until(name, 3)
        return {dict(item)["queue"]: value for item, value in measured.values(name).items()}

    assert by_queue("kai_fleet:queue_gpus_allocated") == {"top": 3.5, "train": 1.5, "serve": 2}
    assert by_queue("kai_fleet:queue_gpus_due") == {"top": 4, "train": 3, "serve": 1}
    assert by_queue("kai_fleet:queue_gpus_borrowed") == {"top": 0, "train": 0, "serve": 1}
    assert by_queue("kai_fleet:queue_gpus_idle") == {"top": 0.5, "train": 1.5, "serve": 0}
    (labels,) = measured.values('kai_fleet:queue_gpus_allocated{queue="train"}')
    assert labels == {("scheduler", "watched"), ("team", "watched"), ("queue", "train")}


def test_what_a_tenant_serves_passes_for_nothing_else(measured):
    measured.until('up{job="kai-fleet"} == 1', 2)
    assert measured.values("kai_fleet:team_gpus_held") == {}
    assert measured.values("kube_resourcequota") == {}
    assert 99 not in measured.values("kai_queue_allocated_gpus").values()


def test_every_query_of_the_dashboards_is_answered(measured):
    measured.until("kai_fleet:queue_gpus_due", 3)
    answered = 0
    for text in dashboards().values():
        for panel in json.loads(text)["panels"]:
            for target in panel["targets"]:
                expr = target["expr"].replace("$team", "watched").replace("$__range", "1h")
                # A subquery looks at whole minutes, and this Prometheus is younger than one.
                expr = expr.replace(":1m]", ":1s]")
                answered += bool(measured.values(expr))
    measured.until("count(sum_over_time(kai_fleet:queue_gpus_allocated[1h:1s]))", 1)
    assert answered > 10  # the others wait for kube-state-metrics and DCGM's exporter
