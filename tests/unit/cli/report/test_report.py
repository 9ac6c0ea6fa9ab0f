"""The report's numbers, and that its page is one file that loads nothing."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
import yaml
from typer.testing import CliRunner

from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet_cli.app import app
from kai_fleet_cli.doctor.checks import examine
from kai_fleet_cli.doctor.diagnosis import ExitCode
from kai_fleet_cli.report import build
from kai_fleet_cli.report.page import gpus, page
from kai_fleet_cli.stack_file import reading
from kai_fleet_policies.finding import Level
from kai_fleet_stack.settings import Settings
from tests.unit.cli.doctor.doctor_samples import NOW, Lab, in_host_mode, node, pod
from tests.unit.cli.report.report_samples import busy

GPU = "nvidia.com/gpu"
FORBIDDEN = {"pods": "403 Forbidden"}


def report(lab):
    snapshot = lab.look()
    return build.build_report("lab", snapshot, examine(snapshot, without="pending"))


def running(name, queue="train", gpus="1", **more):
    return pod(name, queue, node="ml-0", limits={GPU: gpus}, **more)


def on_host(name, gpus="1", namespace="team-ml", **more):
    return running(name, None, gpus, namespace=namespace, **more)


def test_the_page_says_when_a_teams_backup_was_verified():
    lab = Lab()
    labels = {"kai-fleet/team": "ml", "kai-fleet/backup": "verify"}
    success = (NOW - timedelta(hours=50)).isoformat()
    lab.host["cronjobs"] = [
        {
            "metadata": {"name": "verify-ml", "namespace": "backups", "labels": labels},
            "status": {"lastSuccessfulTime": success},
        }
    ]
    assert "2 d 2 h ago" in page(report(lab))
    lab.host["cronjobs"] = []
    assert " ago" not in page(report(lab))


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0.125, "0.12"), (100, "100"), (12_345.67, "12,345.67"), (999_999.5, "999,999.5")],
)
def test_an_amount_has_its_digits(amount, text):
    assert gpus(amount) == text


def test_numbers_of_the_lab():
    """Four GPUs; inside, 0.5 and 0.25 share one, which its reservation pod holds on the host."""
    lab = Lab()
    lab.host["pods"].append(on_host("reservation-x"))
    found = report(lab)
    assert found.figures == {"promised": 4, "in use": 1, "free": 3, "waiting": 0}
    (team,) = found.teams
    assert (team.promised, team.in_use, team.waiting) == (4, 1, 0)
    assert team.scheduler == "KAI v0.16.8"
    assert team.verified is None
    (pool,) = found.pools
    assert (pool.labels, pool.teams, pool.nodes, pool.gpus) == ("kai-fleet/pool=ml", ["ml"], 1, 4)
    queues = {queue.name: queue for queue in found.queues["ml"]}
    assert list(queues) == ["default", "serve", "train"]
    assert (queues["train"].quota, queues["train"].in_use, queues["train"].borrowed) == (3, 0.75, 0)
    assert {finding.level for finding in found.findings} == {Level.OK}
    assert (found.missing, found.exit_code) == ([], ExitCode.HEALTHY)


def test_who_waits_is_the_same_in_figures_teams_queues_and_the_table():
    """The figure said "Waiting 0" above a team that waits for more than it may ever have."""
    lab = Lab()
    for number in range(3):
        lab.waits(f"w-{number}", queue="serve", gpus=9)
    lab.waits("young", gpus=1, created="2026-11-01T11:59:50Z")
    found = report(lab)
    first, second = found.waits
    assert (first.team, first.queues, first.pods, first.gpus) == ("ml", ["serve"], 3, 27)
    assert "queue serve may hold at most 2 GPUs: it never runs" in first.cause
    assert NOW - first.since == timedelta(hours=1)
    assert (second.queues, second.pods, second.gpus, second.cause) == (["train"], 1, 1, "")
    top, *_ = found.queues["ml"]
    assert found.figures["waiting"] == found.teams[0].waiting == top.waiting == 28
    assert '<dd class="number calls">28</dd>\n<dd>for 4 pods without a node' in page(found)
    ill = [finding for finding in found.findings if finding.level is not Level.OK]
    assert ill == [], "a waiting pod stands in one place"


def test_what_a_tenant_hides_inside_is_in_use_on_the_host():
    """Copies with fractions count with the pod that reserves their GPU, and any other pod too."""
    half = {"gpu-fraction": "0.5"}
    lab = Lab()
    lab.host["pods"] += [
        pod("infer-a-x", node="ml-0", namespace="team-ml", annotations=half),
        pod("infer-b-x", node="ml-0", namespace="team-ml", annotations=half),
        on_host("reservation-x"),
        on_host("miner-x-kube-system-x-ml"),
        on_host("of-somebody-else", namespace="other"),
    ]
    found = report(lab)
    assert found.teams[0].in_use == 2
    assert (found.figures["in use"], found.figures["free"]) == (3, 1)


def test_in_host_mode_parts_count_for_the_team_and_whole_gpus_for_the_node():
    lab = in_host_mode()
    half = {"gpu-fraction": "0.5"}
    lab.ml["pods"] = [pod("a", node="ml-0", annotations=half)]
    lab.host["pods"] = [
        pod("a-x-ml", node="ml-0", namespace="team-ml", annotations=half),
        on_host("reservation", namespace="kai-resource-reservation"),
    ]
    found = report(lab)
    assert (found.teams[0].in_use, found.figures["in use"]) == (0.5, 1)
    assert list(found.queues) == ["the host"]
    assert found.teams[0].scheduler.startswith("the host's KAI v")


def test_a_vcluster_that_does_not_answer_is_named_and_its_pods_count_on_the_host():
    lab = Lab()
    lab.unreached = "it does not answer in time"
    lab.host["pods"].append(on_host("copy", "3"))
    for name, namespace in (("waits", "team-ml"), ("other", "default")):
        lab.host["pods"].append(pod(name, None, namespace=namespace, limits={GPU: "2"}))
    assert sorted(wait.team for wait in report(lab).waits) == ["host", "ml"]
    del lab.host["pods"][-2:]
    found = report(lab)
    (team,) = found.teams
    assert (team.in_use, team.waiting) == (3, None)
    assert found.missing == ["team ml: it does not answer in time"]
    assert (found.queues, found.exit_code) == ({}, ExitCode.UNREAD)
    text = page(found)
    assert "No pod that was read." in text
    assert "every pod has a node" not in text


def test_what_may_not_be_listed_is_not_zero():
    snapshot = Lab().look()
    no_host = replace(snapshot, host=replace(snapshot.host, unreadable=FORBIDDEN))
    found = build.build_report("lab", no_host, [])
    assert found.missing == ["host: this user may not list pods there (403 Forbidden)"]
    assert (found.pools, found.figures["free"], found.teams[0].in_use) == (None, None, None)
    assert found.exit_code == ExitCode.UNREAD
    team = snapshot.teams["ml"]
    closed = replace(team, inside=replace(team.inside, unreadable=FORBIDDEN))
    found = build.build_report("lab", replace(snapshot, teams={"ml": closed}), [])
    assert found.missing == ["team ml: this user may not list pods there (403 Forbidden)"]
    assert (found.queues, found.teams[0].waiting, found.exit_code) == ({}, None, ExitCode.UNREAD)


def test_a_teams_own_stack_does_not_miss_what_it_may_not_list(monkeypatch):
    monkeypatch.setattr(Settings, "platform_stack", "prod")
    snapshot = Lab().look()
    no_host = replace(snapshot, host=replace(snapshot.host, unreadable=FORBIDDEN))
    assert build.build_report("lab", no_host, []).exit_code == ExitCode.HEALTHY


def test_an_api_server_that_starts_is_no_missing_right():
    snapshot = Lab().look()
    starts = replace(snapshot.host, unreadable={"pods": "429 Too Many Requests"})
    snapshot = replace(snapshot, host=starts)
    assert "may not" not in build.build_report("lab", snapshot, []).missing[0]
    (found,) = (each for each in examine(snapshot) if each.level is Level.ADVISORY)
    assert (found.check, found.subject) == ("readable", "read access to pods")
    assert "is put off (429" in found.cause and found.fix == "run the doctor again in a minute"


def test_a_teams_own_stack_is_about_its_own_nodes(monkeypatch):
    lab = Lab()
    lab.host["nodes"].append(node("other", "8"))
    lab.host["nodes"][1]["metadata"]["labels"]["kai-fleet/pool"] = "other"
    assert [pool.gpus for pool in report(lab).pools] == [4, 8]
    monkeypatch.setattr(Settings, "platform_stack", "prod")
    assert [pool.gpus for pool in report(lab).pools] == [4]


def test_a_page_is_one_file_that_loads_nothing():
    text = page(busy())
    assert text.lstrip().startswith("<!doctype html>")
    for wrong in ("<script", "<link", "<img", "<iframe", "src=", "url(", "@import", "http"):
        assert wrong not in text.replace("http-equiv", ""), wrong
    assert "default-src 'none'; style-src 'unsafe-inline'" in text


def test_what_is_written_by_others_is_text():
    found, odd = busy(), "<script>alert(1)</script>"
    text = page(
        replace(
            found,
            stack=odd,
            teams=[replace(found.teams[0], name=odd, scheduler=odd)],
            queues={odd: [replace(found.queues["ml"][0], display_name=odd)]},
            findings=[replace(found.findings[0], cause=odd, fix=f"`{odd}`")],
            waits=[replace(found.waits[0], queues=(odd,), cause=odd, fix=odd)],
            missing=[odd],
        )
    )
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 9


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command for a stack file whose clusters answer as a lab does."""
    config = {f"kai-fleet:{key}": value for key, value in Lab().settings.items()}
    (tmp_path / "Pulumi.lab.yaml").write_text(yaml.safe_dump({"config": config}))
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)

    def command(lab, *arguments):
        monkeypatch.setattr(build, "read_clusters", lambda source: lab.look())
        return CliRunner().invoke(app, ["report", "--stack", "lab", *arguments])

    return command


def test_as_json_keys_are_in_camel_case_and_what_is_not_known_is_null(run):
    lab = Lab()
    lab.unreached = "it does not answer in time"
    ran = run(lab, "--json")
    found = json.loads(ran.stdout)
    assert (ran.exit_code, found["teams"][0]["waiting"]) == (3, None)
    assert found["teams"][0]["inUse"] == 0


def test_the_page_is_written_and_what_it_lacks_is_said(run, tmp_path):
    lab = Lab()
    lab.unreached = "it does not answer in time"
    ran = run(lab)
    assert ran.exit_code == 3
    assert "not read: team ml: it does not answer in time" in ran.stderr
    assert "GPUs of stack lab" in (tmp_path / "report.html").read_text()
    assert ran.stdout == ""


def test_what_goes_wrong_is_a_sentence(run, tmp_path, monkeypatch):
    ran = run(Lab(), "--html", str(tmp_path / "no" / "folder.html"))
    assert "cannot be written" in str(ran.exception)
    assert "Pulumi.other.yaml is not there" in str(run(Lab(), "--stack", "other").exception)

    def away(source):
        raise UnreachableError("it does not answer in time")

    monkeypatch.setattr(build, "read_clusters", away)
    ran = CliRunner().invoke(app, ["report", "--stack", "lab"])
    assert ran.exit_code == 2
    assert "the host cluster is not reached: it does not answer in time" in ran.stderr
