"""Alerts fire and stop, as promtool sees it; every file is what Prometheus takes."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from kai_fleet.components.monitoring import rules, scraping
from kai_fleet.components.releases import KAI, version_key
from kai_fleet.components.settings import load
from kai_fleet.components.settings.sections.monitoring import Monitoring
from sandbox.tools import toolbox

pytestmark = [pytest.mark.engine, pytest.mark.prometheus]
CASES = Path(__file__).with_name("monitoring_alerts.yaml")
QUEUES = {"top": {"gpu": {"quota": 4}, "children": {"train": {"gpu": 3}, "serve": {"gpu": 1}}}}


@pytest.fixture(scope="module")
def promtool():
    return toolbox.ensure(["promtool"], print)["promtool"].path


@pytest.fixture
def rule_file(tmp_path):
    """The rules of a stack that is called lab."""
    loaded = load(
        {
            "cluster": {"name": "lab", "context": "lab"},
            "teams": {
                "ml": {
                    "scheduler": {"mode": "virtual", "version": "v0.16.8"},
                    "gpus": 4,
                    "queues": QUEUES,
                }
            },
        }
    )
    queues = loaded.settings.teams["ml"].queues
    groups = [
        *rules.of_fleet(Monitoring(), "lab", host_kai=True),
        rules.of_team("ml", queues, own_kai=True, host_queues=[]),
        rules.of_team("nlp", {}, own_kai=False, host_queues=["nlp", "shared"]),
        rules.of_team("asr", {}, own_kai=False, host_queues=["shared"]),
    ]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": groups}, sort_keys=False))
    return path


def ran(promtool, *arguments):
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def cases(path, rule_file, content):
    groups = [group["name"] for group in yaml.safe_load(rule_file.read_text())["groups"]]
    # promtool takes groups in any order; the alerts look at what the others count.
    order = sorted(groups, key=lambda name: (name.endswith("alerts"), name.endswith("numbers")))
    told = {"rule_files": [str(rule_file)], "group_eval_order": order}
    path.write_text(yaml.safe_dump({**content, **told}))
    return str(path)


def test_prometheus_takes_rules_and_scrape_config(promtool, rule_file, tmp_path):
    ran(promtool, "check", "rules", "--lint-fatal", str(rule_file))
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"scrape_configs": [scraping.scrape_config(Monitoring())]}))
    ran(promtool, "check", "config", str(config))


def test_every_alert_fires_and_stops(promtool, rule_file, tmp_path):
    content = yaml.safe_load(CASES.read_text())
    named = {t["alertname"] for case in content["tests"] for t in case["alert_rule_test"]}
    groups = yaml.safe_load(rule_file.read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert named == alerts - {"KaiFleetVersionOutOfSupport"}
    ran(promtool, "test", "rules", cases(tmp_path / "cases.yml", rule_file, content))


@pytest.mark.parametrize("version", [v for v, it in KAI.items() if it.support_end])
def test_a_version_is_said_to_end_sixty_days_before_it_does(promtool, rule_file, tmp_path, version):
    end = datetime.combine(KAI[version].support_end, datetime.max.time(), UTC)
    image = f"ghcr.io/kai-scheduler/kai-scheduler/scheduler:{version}"
    series = (
        'kube_pod_container_info{namespace="team-ml", pod="p", container="c",'
        f' image_spec="{image}"}}'
    )
    start = end - timedelta(days=62)
    test = {
        "interval": "12h",
        "start_timestamp": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "input_series": [{"series": series, "values": "1x12"}],
        "promql_expr_test": [
            {
                "expr": 'count(ALERTS{alertname="KaiFleetVersionOutOfSupport",'
                f' version="{version}", scheduler="ml"}}) or vector(0)',
                "eval_time": time,
                "exp_samples": [{"labels": "{}", "value": value}],
            }
            for time, value in (("36h", 0), ("60h", 1))
        ],
    }
    content = {"evaluation_interval": "12h", "tests": [test]}
    ran(promtool, "test", "rules", cases(tmp_path / "cases.yml", rule_file, content))


def test_a_line_that_is_in_no_support_list_is_said_and_the_newest_is_not(
    promtool, rule_file, tmp_path
):
    newest = max(KAI, key=version_key)
    shown = {version: KAI[version].line for version in KAI if KAI[version].support_end is None}
    assert newest in shown
    assert len(shown) > 1
    test = {
        "interval": "1m",
        "input_series": [
            {
                "series": f'kube_pod_container_info{{namespace="team-t{n}", pod="p",'
                f' container="c", image_spec="mirror.example.com/kai/scheduler:{version}"}}',
                "values": "1x5",
            }
            for n, version in enumerate(shown)
        ],
        "promql_expr_test": [
            {
                "expr": 'count by (version) (ALERTS{alertname="KaiFleetVersionOutOfSupport"})',
                "eval_time": "3m",
                "exp_samples": [
                    {"labels": f'{{version="{version}"}}', "value": 1}
                    for version in shown
                    if version != newest
                ],
            }
        ],
    }
    content = {"evaluation_interval": "1m", "tests": [test]}
    ran(promtool, "test", "rules", cases(tmp_path / "cases.yml", rule_file, content))
