"""What Prometheus reads: names that KAI has, and nothing that a tenant could make up."""

import json
import re

import pulumi
import pytest
import yaml

from kai_fleet.isolation.team_namespace import TeamNamespace
from kai_fleet.monitoring.fleet_monitoring import FleetMonitoring
from kai_fleet.monitoring.rules import dashboards, fleet_rules, pod_monitor
from kai_fleet.releases import KAI
from kai_fleet_cli.stack_file.reading import ROOT
from tests.scrape_config import scrape_config
from tests.unit.components.component_samples import declared, known
from tests.unit.components.monitoring.kai_metric_names import OF_OTHERS, kai_metrics

NAME = re.compile(r"\b(?:kai_fleet:|kai_|kube_|DCGM_|apiserver_)\w+|\bALERTS\b|\bup\b")
FACTS = {"kai_fleet:kai_support_end_seconds", "kai_fleet:kai_in_no_support_list"}
OF_TEAMS = {"kai_fleet:scheduler_wanted", "kai_fleet:parent_queue", "kai_fleet:host_queue"}
RULES = [rule for group in fleet_rules("lab", {}) for rule in group["rules"]]
PANELS = [panel for text in dashboards().values() for panel in json.loads(text)["panels"]]
QUERIES = [
    *(rule["expr"] for rule in RULES),
    *(target["expr"] for panel in PANELS for target in panel["targets"]),
]
NAMES = {name for query in QUERIES for name in NAME.findall(query)}
SCRAPED = scrape_config(pod_monitor({}))
RECORDED = {rule["record"] for rule in RULES if "record" in rule}


def fleet(**args):
    return declared(lambda: FleetMonitoring("host", args))


def team(args=None, **monitoring):
    own = {"guards": "declared", "monitoring": monitoring, **(args or {})}
    found = declared(lambda: TeamNamespace("ml", own))
    return {name: item for name, item in found.items() if "ml-monitoring" in name}


def rules_in(prometheus_rule):
    found = [rule for group in prometheus_rule.inputs["spec"]["groups"] for rule in group["rules"]]
    return [
        (rule["record"], rule["labels"]) for rule in found if "record" in rule and "labels" in rule
    ]


@pytest.mark.parametrize("version", KAI)
def test_every_name_of_rules_and_dashboards_is_one_of_that_version(version):
    assert RECORDED >= FACTS
    assert {"kai_queue_fair_share_gpu", "kube_resourcequota"} <= NAMES
    assert {*kai_metrics(version), *OF_OTHERS, *RECORDED, *OF_TEAMS, "ALERTS"} >= NAMES


@pytest.mark.parametrize("version", KAI)
def test_the_pods_of_scheduler_and_queue_controller_are_found_by_their_names(version):
    steps = SCRAPED["relabel_configs"]
    apps = {
        step["regex"]: step["replacement"]
        for step in steps
        if step.get("target_label") == "component"
    }
    assert {*apps.values()} == {"scheduler", "queue-controller"}
    (kept,) = [step["regex"] for step in steps if "pod_label_app" in str(step) and "action" in step]
    assert kept == "|".join(apps)
    for regex in apps:
        found = [name for name in KAI[version].deployments if re.fullmatch(regex, name)]
        assert len(found) == 1, f"{regex}: {found}"


def test_the_page_has_the_scrape_configuration_for_a_prometheus_without_the_operator():
    page = (ROOT / "docs" / "monitoring.md").read_text()
    by_hand = page.partition("## Without the operator")[2]
    (block,) = re.findall(r"```yaml\n(.*?)```", by_hand, re.S)
    assert yaml.safe_load(block)["scrape_configs"] == [SCRAPED]


def test_the_host_has_scheduler_and_queues_as_rules_and_two_dashboards():
    found = fleet(parent_queues=["all"], host_kai=True)
    assert {*found} == {
        "Monitoring host",
        "ConfigMap host-monitoring-dashboard-fleet",
        "ConfigMap host-monitoring-dashboard-team",
        "PodMonitor host-monitoring-pods",
        "PrometheusRule host-monitoring-rules",
    }
    held = found["PrometheusRule host-monitoring-rules"]
    assert held.inputs["metadata"]["namespace"] == "monitoring"
    rules = rules_in(held)
    assert ("kai_fleet:parent_queue", {"scheduler": "host", "queue": "all"}) in rules
    assert ("kai_fleet:scheduler_wanted", {"scheduler": "host"}) in rules
    board = found["ConfigMap host-monitoring-dashboard-fleet"].inputs
    assert board["metadata"]["labels"] == {"grafana_dashboard": "1"}


def test_an_interval_from_another_resource_is_that_of_the_host_as_of_a_team():
    found = declared(lambda: FleetMonitoring("host", {"interval": known("45s")}))
    spec = found["PodMonitor host-monitoring-pods"].inputs["spec"]
    assert spec == pod_monitor({"interval": "45s"})


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (lambda: {"gpu_resource": known("amd.com/gpu")}, "gpu_resource is an Output"),
        (lambda: {"intervall": "45s"}, "intervall is no argument; write interval"),
        (lambda: {"interval": ["45s"]}, "interval is a list; write a text between quotes"),
    ],
)
def test_arguments_of_the_host_are_checked_as_those_of_other_components(args, says):
    with pytest.raises(pulumi.RunError, match=f"FleetMonitoring host: {says}"):
        declared(lambda: FleetMonitoring("host", args()))


def test_objects_of_the_operator_have_the_labels_that_it_selects_by():
    labels = {"release": "kps"}
    args = {"labels": labels, "namespace": "mon"}
    found = fleet(**args) | team(**args, scheduler=True)
    objects = {
        name: (item.inputs["metadata"]["namespace"], item.inputs["metadata"].get("labels"))
        for name, item in found.items()
        if not name.startswith(("Monitoring ", "NetworkPolicy ", "ConfigMap "))
    }
    assert objects == {
        "PodMonitor host-monitoring-pods": ("mon", labels),
        "PrometheusRule host-monitoring-rules": ("mon", labels),
        "PrometheusRule ml-monitoring-prometheusrule": ("team-ml", labels),
        "ServiceMonitor ml-monitoring-servicemonitor": ("team-ml", labels),
    }


def test_prometheus_gets_no_certificate_where_it_is_not_to():
    found = team(certificates=False, scheduler=True)
    assert {*found} == {
        "NetworkPolicy ml-monitoring-network",
        "PrometheusRule ml-monitoring-prometheusrule",
    }


@pytest.mark.parametrize(
    ("args", "monitoring", "facts"),
    [
        (
            {},
            {"scheduler": True, "parent_queues": ["top"]},
            [
                ("kai_fleet:scheduler_wanted", {"scheduler": "ml", "team": "ml"}),
                ("kai_fleet:parent_queue", {"scheduler": "ml", "queue": "top", "team": "ml"}),
            ],
        ),
        (
            {"scheduler": "host", "queues": ["nlp"]},
            {},
            [("kai_fleet:host_queue", {"queue": "nlp", "team": "ml"})],
        ),
    ],
)
def test_prometheus_has_the_facts_of_a_team_that_no_metric_tells(args, monitoring, facts):
    assert (
        rules_in(team(args, **monitoring)["PrometheusRule ml-monitoring-prometheusrule"]) == facts
    )


def test_prometheus_alone_reaches_a_team_and_only_kais_metrics():
    spec = team(namespace="mon")["NetworkPolicy ml-monitoring-network"].inputs["spec"]
    assert spec["podSelector"]["matchLabels"] == {"vcluster.loft.sh/namespace": "kai-scheduler"}
    (rule,) = spec["ingress"]
    assert rule["ports"] == [{"port": 8080, "protocol": "TCP"}]
    (source,) = rule["from"]
    assert source["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "mon"}


def test_no_name_of_this_programs_own_is_taken_from_a_tenant():
    """A pod of a tenant can serve what it likes, under the labels of its own namespace."""
    (keep,) = SCRAPED["metric_relabel_configs"]
    assert keep["action"] == "keep"
    assert all(re.fullmatch(keep["regex"], name) for name in kai_metrics("v0.17.0"))
    assert not re.fullmatch(keep["regex"], "kai_fleet:team_gpus_held")
    assert not re.fullmatch(keep["regex"], "kube_resourcequota")
