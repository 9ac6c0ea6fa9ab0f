"""What Prometheus is told: names that KAI has, and nothing where monitoring is off."""

import json
import re

import pytest
import yaml

from kai_fleet.fleet.resolve import platform_facts
from kai_fleet.monitoring import dashboards, fleet_rules, pod_monitor, scrape_config
from kai_fleet.releases import KAI
from kai_fleet.releases.metric_names import APPS
from kai_fleet.settings import load
from kai_fleet.settings.sections.team_stack import PlatformFacts
from kai_fleet.settings.tenant import load_tenant
from kai_fleet_cli.plan.recorder import record
from tests.unit.kai_metric_names import OF_OTHERS, kai_metrics

CLUSTER = {"name": "lab", "context": "lab"}
QUEUES = {"top": {"gpu": 4, "children": {"train": {"gpu": 3}, "serve": {"gpu": 1}}}}
ML = {
    "scheduler": {"mode": "virtual", "version": "v0.9.3"},
    "gpus": 4,
    "queues": QUEUES,
    "nodePool": {"pool": "ml"},
}
DEV = {"scheduler": {"mode": "default"}, "nodePool": {"pool": "dev"}, "gpus": 1}
HOST = {
    "kai": {"version": "v0.16.8"},
    "queues": {"all": {"children": {"nlp": {"gpu": 2}}}},
    "teams": {"nlp": {"scheduler": {"mode": "host"}, "queue": "nlp", "gpus": 2}},
}
NAME = re.compile(r"\b(?:kai_fleet:|kai_|kube_|DCGM_|apiserver_)\w+|\bALERTS\b|\bup\b")
FACTS = {"kai_fleet:kai_support_end_seconds", "kai_fleet:kai_in_no_support_list"}
OF_TEAMS = {"kai_fleet:scheduler_wanted", "kai_fleet:parent_queue", "kai_fleet:host_queue"}


def groups():
    return fleet_rules("lab", {})


def every_rule():
    return [rule for group in groups() for rule in group["rules"]]


def shown():
    """The queries of every panel."""
    return [
        target["expr"]
        for text in dashboards().values()
        for panel in json.loads(text)["panels"]
        for target in panel["targets"]
    ]


def declared(**settings):
    found = record("lab", {"cluster": CLUSTER, **settings})
    return {(item.type.rsplit(":", 1)[-1], item.name): item for item in found}


def of_monitoring(found):
    return {key: item for key, item in found.items() if "monitoring" in key[1]}


@pytest.mark.parametrize("version", KAI)
def test_every_name_of_rules_and_dashboards_is_one_of_that_version(version):
    recorded = {rule["record"] for rule in every_rule() if "record" in rule}
    assert recorded >= FACTS
    known = {*kai_metrics(version), *OF_OTHERS, *recorded, *OF_TEAMS, "ALERTS"}
    asked = [*(rule["expr"] for rule in every_rule()), *shown()]
    used = {name for expr in asked for name in NAME.findall(expr)}
    assert {"kai_queue_fair_share_gpu", "kube_resourcequota"} <= used
    assert used <= known


def test_what_is_recorded_is_used():
    asked = [*(rule["expr"] for rule in every_rule()), *shown()]
    used = {name for expr in asked for name in NAME.findall(expr)}
    assert {rule["record"] for rule in every_rule() if "record" in rule} <= used


@pytest.mark.parametrize("version", KAI)
def test_the_pods_of_scheduler_and_queue_controller_are_found_by_their_names(version):
    for component, apps in APPS.items():
        found = [name for name in KAI[version].deployments if re.fullmatch(apps, name)]
        assert len(found) == 1, f"{component}: {found}"


def test_nothing_is_declared_where_it_is_off():
    found = declared(teams={"ml": ML})
    assert of_monitoring(found) == {}
    assert not {kind for kind, _ in found} & {"Monitoring", "TeamMonitoring"}


def test_without_the_operator_config_maps_hold_all_of_it():
    found = of_monitoring(declared(teams={"ml": ML, "dev": DEV}, monitoring={}))
    assert sorted(found) == [
        ("ConfigMap", "host-monitoring-dashboard-fleet"),
        ("ConfigMap", "host-monitoring-dashboard-team"),
        ("ConfigMap", "host-monitoring-prometheus"),
        ("ConfigMap", "ml-monitoring-rules"),
        ("NetworkPolicy", "ml-monitoring-network"),
    ]
    held = found[("ConfigMap", "host-monitoring-prometheus")].inputs
    assert held["metadata"]["namespace"] == "monitoring"
    assert yaml.safe_load(held["data"]["kai-fleet-rules.yml"])["groups"] == groups()
    facts = yaml.safe_load(
        found[("ConfigMap", "ml-monitoring-rules")].inputs["data"]["kai-fleet-team-ml.yml"]
    )
    assert [(r["record"], r["labels"].get("queue")) for r in facts["groups"][0]["rules"]] == [
        ("kai_fleet:scheduler_wanted", None),
        ("kai_fleet:parent_queue", "top"),
    ]
    board = found[("ConfigMap", "host-monitoring-dashboard-fleet")].inputs
    assert board["metadata"]["labels"] == {"grafana_dashboard": "1"}


def test_with_the_operator_its_objects_have_the_labels_that_it_selects_by():
    told = {"operator": True, "labels": {"release": "kps"}, "namespace": "mon", "dashboards": False}
    found = of_monitoring(declared(teams={"ml": ML, "dev": DEV}, monitoring=told))
    places = {
        (kind, name): (item.inputs["metadata"]["namespace"], item.inputs["metadata"].get("labels"))
        for (kind, name), item in found.items()
        if kind != "NetworkPolicy"
    }
    labels = {"release": "kps"}
    assert places == {
        ("PodMonitor", "host-monitoring-pods"): ("mon", labels),
        ("PrometheusRule", "host-monitoring-rules"): ("mon", labels),
        ("PrometheusRule", "ml-monitoring-prometheusrule"): ("team-ml", labels),
        ("ServiceMonitor", "ml-monitoring-servicemonitor"): ("team-ml", labels),
        ("ServiceMonitor", "dev-monitoring-servicemonitor"): ("team-dev", labels),
    }


def test_prometheus_gets_no_certificate_where_it_is_not_to():
    told = {"operator": True, "certificates": False}
    found = declared(teams={"ml": ML}, monitoring=told)
    assert not [kind for kind, _ in found if kind == "ServiceMonitor"]
    assert ("PrometheusRule", "ml-monitoring-prometheusrule") in found


def test_a_team_that_comes_changes_nothing_of_the_fleets():
    one = declared(teams={"ml": ML}, monitoring={})
    two = declared(teams={"ml": ML, "dev": DEV}, monitoring={})
    fleet = {key: item.inputs for key, item in one.items() if key[1].startswith("host-monitoring")}
    assert fleet
    assert {key: two[key].inputs for key in fleet} == fleet


def test_what_is_told_of_a_team_is_below_its_namespace():
    """So a command about the team takes it along, and the team's removal takes it away."""
    found = declared(teams={"ml": ML}, monitoring={"operator": True})
    team = found[("TeamMonitoring", "ml")]
    assert team.parent == found[("TeamNamespace", "ml")].urn
    inside = [i for (_, name), i in found.items() if name.startswith("ml-monitoring")]
    assert inside
    assert {item.parent for item in inside} == {team.urn}


def test_a_team_stack_declares_nothing_of_it():
    grant = {"vision": {"nodePool": {"pool": "vision"}, "gpus": 2}}
    told = {"monitoring": {}, "teamStacks": grant}
    platform = load({"cluster": CLUSTER, **told}).settings
    facts = platform_facts(platform).output()
    team = {**ML, "name": "vision", "nodePool": {"pool": "vision"}, "gpus": 2}
    raw = {
        "platform": {"stack": "lab"},
        "team": {**team, "queues": {"a": {"children": {"b": {"gpu": 2}}}}},
    }
    tenant = load_tenant(raw, lambda stack: PlatformFacts.read(facts))
    assert tenant.mistakes == ()
    assert tenant.settings.monitoring is not None
    assert [it.name for it in record("own", raw, facts) if "onitoring" in it.urn] == []
    of_platform = record("lab", {"cluster": CLUSTER, **told})
    assert [it.name for it in of_platform if "TeamMonitoring" in it.type] == ["vision"]


def test_prometheus_alone_is_let_in_and_only_to_kais_metrics():
    found = declared(teams={"ml": ML}, monitoring={"namespace": "mon"})
    spec = found[("NetworkPolicy", "ml-monitoring-network")].inputs["spec"]
    assert spec["podSelector"]["matchLabels"] == {"vcluster.loft.sh/namespace": "kai-scheduler"}
    (rule,) = spec["ingress"]
    assert rule["ports"] == [{"port": 8080, "protocol": "TCP"}]
    (source,) = rule["from"]
    assert source["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "mon"}


def test_where_isolation_is_off_nobody_has_to_be_let_in():
    off = {"network": {"enabled": False}}
    found = declared(teams={"ml": {**ML, "isolation": off}}, monitoring={})
    assert ("NetworkPolicy", "ml-monitoring-network") not in found


def test_in_host_mode_the_queues_of_teams_are_told():
    found = declared(**HOST, monitoring={})
    facts = yaml.safe_load(
        found[("ConfigMap", "nlp-monitoring-rules")].inputs["data"]["kai-fleet-team-nlp.yml"]
    )["groups"][0]["rules"]
    assert [(rule["record"], rule["labels"]) for rule in facts] == [
        ("kai_fleet:host_queue", {"queue": "nlp", "team": "nlp"})
    ]
    fleet = yaml.safe_load(
        found[("ConfigMap", "host-monitoring-prometheus")].inputs["data"]["kai-fleet-rules.yml"]
    )["groups"][0]["rules"]
    told = [(rule["record"], rule["labels"]) for rule in fleet]
    assert ("kai_fleet:parent_queue", {"scheduler": "host", "queue": "all"}) in told
    assert ("kai_fleet:scheduler_wanted", {"scheduler": "host"}) in told


def test_no_name_of_this_programs_own_is_taken_from_a_tenant():
    """A pod of a tenant can serve what it likes, under the labels of its own namespace."""
    (keep,) = scrape_config({})["metric_relabel_configs"]
    assert keep["action"] == "keep"
    assert all(re.fullmatch(keep["regex"], name) for name in kai_metrics("v0.17.0"))
    assert not re.fullmatch(keep["regex"], "kai_fleet:team_gpus_held")
    assert not re.fullmatch(keep["regex"], "kube_resourcequota")


def test_both_ways_to_scrape_say_the_same():
    """PodMonitor and scrape_configs differ in how they write a key, and in nothing else."""
    monitor = pod_monitor({"interval": "1m"})
    (endpoint,) = monitor["podMetricsEndpoints"]
    plain = scrape_config({"interval": "1m"})
    assert plain["scrape_interval"] == endpoint["interval"] == "1m"
    assert (plain["follow_redirects"], endpoint["followRedirects"]) == (False, False)
    assert (plain["honor_timestamps"], endpoint["honorTimestamps"]) == (False, False)
    assert [list(step.values()) for step in plain["relabel_configs"]] == [
        list(step.values()) for step in endpoint["relabelings"]
    ]


@pytest.mark.parametrize(
    ("wrong", "key", "says"),
    [
        ({"labels": {"release": "kps"}}, "labels", "operator: true"),
        ({"namespace": "team-ml"}, "namespace", "a team"),
        ({"namespace": "kai-scheduler"}, "namespace", "kai-scheduler"),
        ({"interval": "often"}, "interval", "30s"),
    ],
)
def test_a_slip_is_refused_with_what_to_write(wrong, key, says):
    found = load({"cluster": CLUSTER, "teams": {"ml": ML}, "monitoring": wrong})
    (mistake,) = found.mistakes
    assert mistake.path == f"kai-fleet:monitoring.{key}"
    assert says in mistake.message


def test_values_that_move_kais_metrics_are_refused_while_they_are_read():
    values = {"scheduler": {"ports": {"metricsPort": 9000}}}
    moved = {**ML, "scheduler": {**ML["scheduler"], "values": values}}
    off = load({"cluster": CLUSTER, "teams": {"ml": moved}})
    assert off.mistakes == ()
    on = load({"cluster": CLUSTER, "teams": {"ml": moved}, "monitoring": {}})
    (mistake,) = on.mistakes
    assert mistake.path == ("kai-fleet:teams.ml.scheduler.values.scheduler.ports.metricsPort")
    assert "8080" in mistake.message
