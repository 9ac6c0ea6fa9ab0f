"""`fleet usage` asks a real Prometheus, whose past was written down: exact numbers come out."""

import contextlib
import csv
import io
import json
import subprocess
import time

import pytest
import yaml
from typer.testing import CliRunner

from kai_fleet.releases.metric_names import kai_metrics
from kai_fleet_cli.__main__ import app
from kai_fleet_cli.stack_file import reading
from tests.engine import prometheus

pytestmark = [pytest.mark.engine, pytest.mark.prometheus]
STACK = {
    "kai-fleet:cluster": {"name": "lab", "context": "nowhere"},
    "kai-fleet:kai": {"version": "v0.17.0"},
    "kai-fleet:queues": {"all": {"children": {"nlp": {"gpu": 2}, "free": {"gpu": -1}}}},
    "kai-fleet:teams": {
        "ml": {
            "scheduler": {"mode": "default"},
            "nodePool": {"pool": "ml"},
            "gpus": 4,
        },
        "nlp": {"scheduler": {"mode": "host"}, "queue": "nlp", "gpus": 2},
        "any": {"scheduler": {"mode": "host"}, "queue": "free", "gpus": 8},
    },
}
VIRTUAL = {
    "kai-fleet:cluster": {"name": "lab", "context": "nowhere"},
    "kai-fleet:teams": {
        "old": {
            "scheduler": {"mode": "virtual", "version": "v0.9.3"},
            "nodePool": {"pool": "old"},
            "gpus": 4,
            "queues": {"top": {"children": {"train": {"gpu": 3}, "serve": {"gpu": 1}}}},
        },
        "new": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "new"},
            "gpus": 2,
            "queues": {"top": {"children": {"lab": {"gpu": 2, "displayName": "The lab"}}}},
        },
    },
    "kai-fleet:teamStacks": {"vision": {"nodePool": {"pool": "vision"}, "gpus": 4}},
}
# What was, by scheduler and queue, for the first hour and for the second: GPUs that the queue had,
# its quota, and what KAI would have given it.
PAST = {
    ("old", "v0.9.3"): {
        "top": ((3, 5), (4, 4), (6, 6)),
        "train": ((2, 4), (3, 3), (5, 5)),
        "serve": ((1, 1), (1, 1), (1, 1)),
    },
    ("new", "v0.16.8"): {"top": ((0.5, 0.5), (2, 2), (2, 2)), "lab": ((0.5, 0.5), (2, 2), (2, 2))},
    ("host", "v0.17.0"): {
        "nlp": ((1.5, 2.5), (2, 2), (2.5, 2.5)),
        "free": ((4, 6), (-1, -1), (5, 6)),
    },
}
SHOWN = {"lab": "The lab"}
METRICS = ("kai_queue_allocated_gpus", "kai_queue_deserved_gpus", "kai_queue_fair_share_gpu")
MINUTES = 120


def written():
    """Two hours that ended ten minutes ago, minute by minute, as each version names it."""
    end = int(time.time()) // 60 * 60 - 600
    series = {}
    for (scheduler, version), queues in PAST.items():
        known = kai_metrics(version)
        for queue, amounts in queues.items():
            for name, (first, second) in zip(METRICS, amounts, strict=True):
                shown = SHOWN.get(queue, "")
                legacy = shown or queue if known[name].component == "scheduler" else queue
                values = {
                    "queue_name": legacy,
                    "queue_metadata_name": queue,
                    "queue_display_name": shown,
                }
                labels = {"job": "kai-fleet", "scheduler": scheduler}
                labels |= {label: values[label] for label in known[name].labels}
                series.setdefault(name, []).append((labels, first, second))
            labels = {"job": "kai-fleet", "scheduler": scheduler, "queue_name": queue}
            series.setdefault("kai_queue_info", []).append((labels, 1, 1))
    for team, gpus in (("ml", (1, 3)), ("vision", (4, 4))):
        pod = {"namespace": f"team-{team}", "pod": "a"}
        asked = {**pod, "container": "c", "node": "n", "resource": "nvidia_com_gpu"}
        series.setdefault("kube_pod_container_resource_requests", []).append((asked, *gpus))
        running = {**pod, "phase": "Running"}
        series.setdefault("kube_pod_status_phase", []).append((running, 1, 1))
        quota = {"namespace": f"team-{team}", "resourcequota": "gpus", "type": "hard"}
        series.setdefault("kube_resourcequota", []).append((quota, 8, 8))
    return lines_of(series, MINUTES, 60, end)


def lines_of(series, count, step, end):
    """OpenMetrics: samples of each series until `end`, of which the second half differs."""
    lines = []
    for name, every in series.items():
        lines.append(f"# TYPE {name} gauge")
        for labels, first, second in every:
            text = ",".join(f'{key}="{value}"' for key, value in labels.items())
            for number in range(count):
                value = first if number < count / 2 else second
                lines.append(f"{name}{{{text}}} {value} {end - (count - 1 - number) * step}")
    return "\n".join([*lines, "# EOF\n"])


@contextlib.contextmanager
def remembering(folder, text, *more):
    """A Prometheus with a past in OpenMetrics."""
    (folder / "past.om").write_text(text)
    command = ["tsdb", "create-blocks-from", "openmetrics", "--quiet", "past.om", "data"]
    subprocess.run([prometheus.tool("promtool"), *command], cwd=folder, check=True)
    with prometheus.running(folder, {}, *more) as found:
        yield found


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    # What a minute said is not carried on into the next one.
    folder = tmp_path_factory.mktemp("past")
    with remembering(folder, written(), "--query.lookback-delta=59s") as found:
        yield found


@pytest.fixture
def usage(past, tmp_path, monkeypatch):
    """`fleet usage` of a stack whose clusters nobody reaches."""
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))

    def run(config, *more):
        (tmp_path / "Pulumi.lab.yaml").write_text(
            yaml.safe_dump({"config": config}, sort_keys=False)
        )
        arguments = ["usage", "--stack", "lab", "--since", "6h", "--prometheus", past.url, *more]
        ran = CliRunner().invoke(app, arguments)
        assert ran.exit_code == 0, ran.output + str(ran.exception)
        return ran.stdout

    return run


def numbers(row):
    return [row[key] for key in ("used", "guaranteed", "borrowed", "idle", "owed")]


def test_queues_of_teams_with_their_own_kai(usage):
    found = json.loads(usage(VIRTUAL, "--json"))
    assert (found["source"], found["unit"], found["since"]) == ("prometheus", "GPU-hours", "6h")
    assert found["measuredHours"] == 2
    rows = {
        (team["team"], row["queue"]): numbers(row)
        for team in found["teams"]
        for row in team["queues"]
    }
    assert rows == {
        ("old", "train"): [6, 5, 1, 1, 1],
        ("old", "serve"): [2, 2, 0, 0, 0],
        ("new", "lab"): [1, 1, 0, 3, 3],
        ("vision", None): [8, 8, 0, 0, 0],
    }
    of_team = {team["team"]: numbers(team) for team in found["teams"]}
    assert of_team["old"] == [8, 7, 1, 1, 1]


def test_teams_of_a_host_with_kai_and_those_without(usage):
    found = json.loads(usage(STACK, "--json"))
    of_team = {team["team"]: numbers(team) for team in found["teams"]}
    assert of_team == {
        "ml": [4, 4, 0, 0, 0],
        "nlp": [4, 3.5, 0.5, 0.5, 0.5],
        "any": [10, 10, 0, 0, 1],
    }


def test_one_team_as_csv(usage):
    rows = list(csv.DictReader(io.StringIO(usage(VIRTUAL, "--csv", "--team", "old"))))
    assert [(row["team"], row["queue"], row["used"], row["unit"]) for row in rows] == [
        ("old", "train", "6", "GPU-hours"),
        ("old", "serve", "2", "GPU-hours"),
    ]


def test_a_person_is_told_how_much_was_measured_and_what_is_not_known(usage):
    text = usage(VIRTUAL)
    assert "numbers of 2.0 of the 6 hours" in text
    assert "Who waits now is not known" in text
    assert "GPU-hours, the last 6h" in text


def test_a_longer_window_has_fewer_steps_and_about_the_same_numbers(usage):
    found = json.loads(usage(VIRTUAL, "--json", "--since", "7d"))
    of_team = {team["team"]: team["used"] for team in found["teams"]}
    assert of_team["old"] == pytest.approx(8, rel=0.1)


H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"


def two_weeks():
    """Of each five minutes of two weeks, of which the second is different from the first."""
    series = {}
    for queue, gpus in (("top", (1.5, 3)), ("train", (1, 2.5)), ("serve", (0.5, 0.5))):
        labels = {"job": "kai-fleet", "scheduler": "old", "queue_name": queue}
        series.setdefault("kai_queue_allocated_gpus", []).append((labels, *gpus))
        series.setdefault("kai_queue_deserved_gpus", []).append((labels, 4, 4))
        series.setdefault("kai_queue_info", []).append((labels, 1, 1))
    for node, model, taken in (("a", H100, (2, 3)), ("b", A100, (0, 0))):
        known = {"node": node, "label_nvidia_com_gpu_product": model}
        series.setdefault("kube_node_labels", []).append((known, 1, 1))
        has = {"node": node, "resource": "nvidia_com_gpu"}
        series.setdefault("kube_node_status_allocatable", []).append((has, 4, 4))
        pod = {"namespace": "team-old", "pod": f"on-{node}"}
        holds = {**pod, "container": "c", "node": node, "resource": "nvidia_com_gpu"}
        series.setdefault("kube_pod_container_resource_requests", []).append((holds, *taken))
        running = {**pod, "phase": "Running"}
        series.setdefault("kube_pod_status_phase", []).append((running, 1, 1))
    step = 300
    # The halves meet a week before now, and the second goes on while the test runs.
    return lines_of(series, 2 * 7 * 24 * 12, step, int(time.time()) // step * step)


def test_a_report_has_gpu_hours_their_trend_and_what_they_cost(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with remembering(tmp_path, two_weeks()) as server:
        config = {
            **VIRTUAL,
            "kai-fleet:monitoring": {"prometheus": {"url": server.url}},
            "kai-fleet:prices": {"currency": "EUR", "gpuHour": {H100: 4.2, "default": 1.1}},
        }
        file = tmp_path / "Pulumi.lab.yaml"
        file.write_text(yaml.safe_dump({"config": config}, sort_keys=False))
        ran = CliRunner().invoke(app, ["report", "--stack", "lab", "--format", "json"])
    assert ran.exit_code == 2, "its clusters are not reached"
    use = json.loads(ran.stdout)["overTime"]
    rows = {(row["name"], row["queue"]): row["periods"]["7d"] for row in use["teams"]}
    week = 7 * 24
    about = {"abs": 2}  # the week that Prometheus counts ends a moment later
    assert rows["old", ""]["gpuHours"] == pytest.approx(3 * week, **about)
    assert rows["old", ""]["trend"] == pytest.approx(100, **about)
    assert rows["old", ""]["cost"] == pytest.approx(3 * week * 4.2, abs=10)
    assert rows["old", "serve"]["gpuHours"] == pytest.approx(week / 2, **about)
    assert rows["old", "serve"]["trend"] == pytest.approx(0, abs=1)
    assert rows["new", ""]["gpuHours"] is None
    (idle,) = use["idle"]
    assert idle["name"] == "any node", "no cluster tells of pools"
    assert idle["periods"]["7d"]["gpuHours"] == pytest.approx((1 + 4) * week, **about)
    assert idle["periods"]["7d"]["cost"] == pytest.approx(week * (4.2 + 4 * 1.1), abs=10)
    month = {(row["name"], row["queue"]): row["periods"]["30d"] for row in use["teams"]}
    assert month["old", ""]["gpuHours"] == pytest.approx(4.5 * week, rel=0.02)
    assert (month["old", ""]["before"], month["old", ""]["trend"]) == (None, None)
    (measured,) = [note for note in use["notes"] if note.startswith("Prometheus has numbers of 33")]
    assert measured.endswith("of the 720 hours of 30d.")
