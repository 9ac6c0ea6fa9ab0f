"""GPU-hours, their trend and their cost, of what a Prometheus answers; and how they are written."""

import json
import math
import re
from dataclasses import replace

import pytest
from rich.console import Console

from kai_fleet.settings import load
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.report.model import PeriodUse, record
from kai_fleet_cli.report.page import page
from kai_fleet_cli.report.sections import trend_text
from kai_fleet_cli.report.use_over_time import use_over_time
from tests.unit.doctor_samples import Lab
from tests.unit.report_samples import busy

H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"
PRICES = {"currency": "EUR", "gpuHour": {H100: 4.0, A100: 1.5}}
WINDOW = re.compile(r"\[(7d|30d):(\d+)s\]( offset)?")
HOURS = {"7d": 168, "30d": 720}


class Past:
    """A Prometheus that knows a past: GPUs held on average, in the last days and in those before.

    Each period has what is written for it, else what is written for all.
    """

    def __init__(self) -> None:
        self.queues = {("ml", "train"): (2.0, 1.0), ("ml", "serve"): (0.5, 0.5)}
        self.capacity = {"ml-0": 4.0, "dev-0": 2.0}
        self.held = {("team-ml", "ml-0"): (2.5, 2.5), ("team-dev", "dev-0"): (1.0, 2.0)}
        self.models = {"ml-0": H100, "dev-0": A100}
        self.seen = {"ml": 1.0, "host": 1.0, "team-ml": 1.0, "team-dev": 1.0}  # part of the time
        self.seen_before: dict[str, float] | None = None
        self.asked: list[str] = []

    def query(self, expression):
        self.asked.append(expression)
        if "kube_node_labels" in expression:
            return [
                ({"node": node, "label_nvidia_com_gpu_product": model}, 1.0)
                for node, model in self.models.items()
            ]
        since, step, before = WINDOW.search(expression).groups()
        steps = HOURS[since] * 3600 / int(step)
        return [(labels, amount * steps) for labels, amount in self._averages(expression, before)]

    def _averages(self, expression, before):
        at = 1 if before else 0
        if "group by (scheduler)" in expression:
            seen = self.seen_before if before and self.seen_before is not None else self.seen
            for name, part in seen.items():
                key = "namespace" if name.startswith("team-") else "scheduler"
                yield {key: name}, part
        elif "kube_node_status_allocatable" in expression:
            yield from (({"node": node}, gpus) for node, gpus in self.capacity.items())
        elif "by (namespace, node)" in expression:
            for (namespace, node), gpus in self.held.items():
                yield {"namespace": namespace, "node": node}, gpus[at]
        elif "kai_queue_deserved" not in expression:
            for (scheduler, queue), gpus in self.queues.items():
                yield {"scheduler": scheduler, "queue": queue}, gpus[at]


def stack(prices=PRICES, **more):
    lab = Lab()
    raw = {**lab.settings, **({"prices": prices} if prices else {}), **more}
    raw["teams"] = {
        **lab.settings["teams"],
        "dev": {"scheduler": {"mode": "default"}, "nodePool": {"pool": "dev"}, "gpus": 2},
        **more.get("teams", {}),
    }
    loaded = load(raw)
    assert loaded.mistakes == ()
    return loaded.settings


def used(past, look=None, **settings):
    return use_over_time(lambda: past.query, stack(**settings), look)


def by_name(rows, since="7d"):
    return {(row.name, row.queue): row.periods.get(since) for row in rows}


def test_hours_trend_and_cost_by_team_and_queue():
    rows = by_name(used(Past()).teams)
    assert rows["ml", ""] == PeriodUse(2.5 * 168, 1.5 * 168, pytest.approx(2.5 * 168 * 4))
    assert rows["ml", "train"].trend == pytest.approx(100)
    assert rows["ml", "train"].cost == pytest.approx(2 * 168 * 4)
    assert rows["ml", "serve"] == PeriodUse(84, 84, pytest.approx(84 * 4))
    assert rows["dev", ""].trend == pytest.approx(-50)
    assert rows["dev", ""].cost == pytest.approx(168 * 1.5)
    assert ("dev", "None") not in rows
    month = by_name(used(Past()).teams, "30d")
    assert month["ml", ""].gpu_hours == pytest.approx(2.5 * 720)


def test_what_stands_idle_is_whole_gpus_by_pool_at_the_price_of_their_model():
    lab = Lab()
    lab.host["nodes"][0]["metadata"]["labels"]["nvidia.com/gpu.product"] = H100
    past = Past()
    past.models = {"dev-0": A100}
    idle = by_name(used(past, lab.look()).idle)
    assert idle == {
        ("kai-fleet/pool=ml", ""): PeriodUse(1.5 * 168, cost=1.5 * 168 * 4),
        ("nodes that are gone", ""): PeriodUse(168, cost=168 * 1.5),
    }


def test_the_total_is_of_teams_and_not_of_their_queues():
    total = used(Past()).total["7d"]
    assert total.gpu_hours == pytest.approx(3.5 * 168)
    assert total.cost == pytest.approx(168 * (2.5 * 4 + 1.5))


def test_a_team_on_two_models_pays_by_the_hours_on_each():
    past = Past()
    past.held = {("team-ml", "ml-0"): (1.5, 0), ("team-ml", "dev-0"): (1.0, 0)}
    assert by_name(used(past).teams)["ml", ""].cost == pytest.approx(168 * (1.5 * 4 + 1.5))


def test_what_was_not_measured_is_not_zero():
    past = Past()
    del past.seen["ml"]
    use = used(past)
    assert by_name(use.teams)["ml", ""] == PeriodUse(None)
    assert ("ml", "train") not in by_name(use.teams)
    assert use.total["7d"].gpu_hours == 168
    assert "Team ml is not counted: Prometheus has no numbers of it for 7d." in use.notes


def test_a_kai_of_a_team_that_counts_less_than_the_host_is_named():
    """It is the tenant's to change, and what the host counts is not."""
    assert used(Past()).notes == []
    past = Past()
    past.held["team-ml", "ml-0"] = (4.0, 0)
    past.held["team-dev", "dev-0"] = (2.0, 0)
    (week, month) = used(past).notes
    assert "Team ml held 672.0 whole GPU-hours of the host in 7d" in week
    assert "its own KAI counts 420.0" in week
    assert "in 30d" in month


def test_a_trend_needs_both_periods_measured():
    past = Past()
    past.seen_before = {"ml": 0.5, "team-dev": 1.0}
    rows = by_name(used(past).teams)
    assert rows["ml", ""].trend is None
    assert rows["dev", ""].trend == pytest.approx(-50)
    past.seen = {"ml": 0.25, "team-dev": 0.25}
    notes = used(past).notes
    assert "Prometheus has numbers of 42.0 of the 168 hours of 7d." in notes
    past.seen["team-dev"] = 1.0
    assert "Of team ml, Prometheus has numbers of 42.0 of the 168 hours of 7d." in used(past).notes


@pytest.mark.parametrize(
    ("models", "note"),
    [
        ({"ml-0": "L4", "dev-0": A100}, "write its price at kai-fleet:prices.gpuHour.L4"),
        ({"dev-0": A100}, "metric-labels-allowlist=nodes=[nvidia.com/gpu.product]"),
    ],
)
def test_what_has_no_price_is_named_and_not_free(models, note):
    past = Past()
    past.models = models
    use = used(past)
    assert by_name(use.teams)["ml", ""].cost is None
    assert by_name(use.teams)["dev", ""].cost == pytest.approx(252)
    assert [it for it in use.notes if note in it]
    default = {"currency": "EUR", "gpuHour": {"default": 1.0}}
    assert by_name(used(past, prices=default).teams)["ml", ""].cost == pytest.approx(420)


def test_without_prices_there_is_no_cost_and_nothing_about_it():
    use = used(Past(), prices=None)
    assert use.currency == ""
    assert {it.cost for it in by_name(use.teams).values()} == {None}
    assert use.notes == []


def test_without_kube_state_metrics_idle_gpus_are_not_known():
    past = Past()
    past.capacity, past.held = {}, {}
    use = used(past)
    assert use.idle == []
    assert "are not known: Prometheus has no numbers of kube-state-metrics" in use.notes[0]


def test_teams_of_one_queue_share_its_hours():
    past = Past()
    past.queues["host", "all"] = (3.0, 3.0)
    past.held |= {("team-a", "n"): (2.0, 2.0), ("team-b", "n"): (1.0, 1.0)}
    host = {"scheduler": {"mode": "host"}, "queue": "all", "gpus": 2}
    use = used(
        past, kai={"version": "v0.16.8"}, queues={"all": {"gpu": 3}}, teams={"a": host, "b": host}
    )
    rows = by_name(use.teams)
    assert (rows["a", ""].gpu_hours, rows["b", ""].gpu_hours) == (2 * 168, 168)


@pytest.mark.parametrize(
    ("percent", "text"),
    [(12.4, "↑ 12%"), (-5, "↓ 5%"), (0.2, "→ 0%"), (math.inf, "↑ from 0"), (None, "\u2013")],
)
def test_a_trend_is_an_arrow_and_a_number(percent, text):
    assert trend_text(percent) == text


def forms(report):
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as shown:
        as_text.show_report(report, console)
    return {
        "text": shown.get(),
        "markdown": as_markdown.report_page(report),
        "html": page(report),
        "json": json.dumps(record(report), allow_nan=False),
    }


def test_every_form_has_the_numbers_and_what_they_count():
    past = Past()
    past.queues["ml", "serve"] = (0.5, 0.0)
    report = replace(busy(), over_time=used(past))
    every = forms(report)
    for form in ("text", "markdown", "html"):
        said = " ".join(every[form].replace("\\", "").split())
        for wanted in ("1,680.00", "420.0", "EUR", "↑ 150%", "↑ from 0", "allocated, not used"):
            assert wanted in said, (form, wanted)
        assert "Half a GPU for an hour is half a GPU-hour" in said
        assert "while it stands idle" in said
    found = json.loads(every["json"])["overTime"]
    assert found["currency"] == "EUR"
    first = found["teams"][0]
    assert (first["name"], first["queue"]) == ("ml", "")
    assert first["periods"]["7d"] == {
        "gpuHours": 420,
        "before": 168,
        "cost": 1680,
        "trend": 150,
    }
    assert found["total"]["7d"]["gpuHours"] == 588


def test_the_json_has_these_keys():
    assert list(record(busy())) == [
        *("stack", "cluster", "made", "live", "teams", "pools", "trees", "waits", "findings"),
        *("well", "updates", "gpus", "kubernetes", "whole", "missing", "foreign", "asDeclared"),
        *("overTime", "more", "exitCode"),
    ]


def test_the_number_of_questions_does_not_grow_with_teams():
    few, many = Past(), Past()
    used(few)
    more = {
        f"t{n}": {"scheduler": {"mode": "default"}, "nodePool": {"pool": "d"}} for n in range(9)
    }
    used(many, teams=more)
    assert len(few.asked) == len(many.asked) < 40
