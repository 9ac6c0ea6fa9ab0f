"""Alerts fire and stop, as promtool sees it; every file is what Prometheus takes."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from kai_fleet.monitoring.rules import fleet_rules, pod_monitor, team_facts
from kai_fleet.releases import KAI, version_key
from sandbox.tools import toolbox
from tests.scrape_config import scrape_config

pytestmark = [pytest.mark.engine, pytest.mark.prometheus]
CASES = Path(__file__).with_name("monitoring_alerts.yaml")
NEWEST = max(KAI, key=version_key)
ENDING = [version for version, item in KAI.items() if item.support_end]
OUT_OF_SUPPORT = "KaiFleetVersionOutOfSupport"
SWITCH = "The versions with support, and how to switch: fleet releases; docs/teams.md"


@pytest.fixture(scope="module")
def promtool():
    return toolbox.ensure(["promtool"], print)["promtool"].path


@pytest.fixture
def rule_file(tmp_path):
    """The rules of a stack that is called lab."""
    inside = {"scheduler": True, "parent_queues": ["top"]}
    teams = {
        "ml": team_facts("ml", inside),
        "nlp": team_facts("nlp", {"host_queues": ["nlp", "shared"]}),
        "asr": team_facts("asr", {"host_queues": ["shared"]}),
    }
    groups = [
        *fleet_rules("lab", {"host_kai": True}),
        *({"name": f"kai-fleet-team-{name}", "rules": facts} for name, facts in teams.items()),
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
    message = {"rule_files": [str(rule_file)], "group_eval_order": order}
    path.write_text(yaml.safe_dump({**content, **message}))
    return str(path)


def test_prometheus_takes_rules_and_scrape_config(promtool, rule_file, tmp_path):
    ran(promtool, "check", "rules", "--lint-fatal", str(rule_file))
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"scrape_configs": [scrape_config(pod_monitor({}))]}))
    ran(promtool, "check", "config", str(config))


def ran_by(team, version, values):
    """The scheduler of a team, by its image."""
    series = (
        f'kube_pod_container_info{{namespace="team-{team}", pod="p", container="c",'
        f' image_spec="mirror.example.com/kai/scheduler:{version}"}}'
    )
    return {"series": series, "values": values}


def looks_at(alert, *looks):
    """At each time: the alerts that fire, as labels, summary; none where there are no more."""
    return [
        {
            "eval_time": time,
            "alertname": alert,
            "exp_alerts": [
                {
                    "exp_labels": {"severity": "info", **labels},
                    "exp_annotations": {"summary": summary, "description": SWITCH},
                }
                for labels, summary in expected
            ],
        }
        for time, *expected in looks
    ]


def end_of_support(version):
    """It is said sixty days before, and no more once the team has moved on."""
    end = datetime.combine(KAI[version].support_end, datetime.max.time(), UTC)
    start = end - timedelta(days=62)
    moved = [ran_by("ml", NEWEST, "_x6 1x4")] if version != NEWEST else []
    labels = {"scheduler": "ml", "team": "ml", "version": version}
    left = "gets fixes for another 59d 12h 0m 0s; negative is past."
    message = (labels, f"KAI {version} of ml {left}")
    return {
        "interval": "12h",
        "start_timestamp": start.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "input_series": [ran_by("ml", version, "1x6 _x4"), *moved],
        "alert_rule_test": looks_at(OUT_OF_SUPPORT, ("36h",), ("60h", message), ("96h",)),
    }


def in_no_support_list():
    """Every line that is in none is said, the newest is not; and not after the move to it."""
    shown = [version for version in KAI if KAI[version].support_end is None and version != NEWEST]
    assert len(shown) > 1
    message = [
        (
            {"support": "none", "scheduler": f"t{n}", "team": f"t{n}", "version": version},
            f"KAI {version} of t{n} gets no fixes any more.",
        )
        for n, version in enumerate(shown)
    ]
    return {
        "interval": "1m",
        "input_series": [
            *(ran_by(f"t{n}", version, "1x5 _x10") for n, version in enumerate(shown)),
            *(ran_by(f"t{n}", NEWEST, "_x5 1x10") for n in range(len(shown))),
            ran_by("new", NEWEST, "1x15"),
        ],
        "alert_rule_test": looks_at(OUT_OF_SUPPORT, ("3m", *message), ("13m",)),
    }


@pytest.mark.parametrize(
    ("interval", "own"),
    [("1m", [in_no_support_list()]), ("12h", [*map(end_of_support, ENDING)])],
)
def test_alerts_fire_and_stop(promtool, rule_file, tmp_path, interval, own):
    written = yaml.safe_load(CASES.read_text())
    tests = [*written["tests"], *own] if interval == "1m" else own
    content = {**written, "evaluation_interval": interval, "tests": tests}
    ran(promtool, "test", "rules", cases(tmp_path / "cases.yml", rule_file, content))
