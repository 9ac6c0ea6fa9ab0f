"""The report's numbers, where they are from, and that it is one file that loads nothing."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import pytest
import yaml
from typer.testing import CliRunner

from kai_fleet.settings import load
from kai_fleet_cli.__main__ import app
from kai_fleet_cli.doctor.examine import examine
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.report import build
from kai_fleet_cli.report import page as writing
from kai_fleet_cli.report.build import last_changes, of_file, planned
from kai_fleet_cli.report.live import live
from kai_fleet_cli.report.page import page
from kai_fleet_cli.report.sections import age, gpus
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.teams import stack_state
from tests.unit.doctor_samples import NOW, Lab, node, pod
from tests.unit.doctor_spoils import in_host_mode, waiting
from tests.unit.report_samples import busy, many

GPU = "nvidia.com/gpu"


def report(lab):
    look = lab.look()
    settings = load(lab.settings).settings
    return live(planned("lab", settings, (), NOW), look, examine(look))


def running(name, queue="train", gpus="1", **more):
    return pod(name, queue, node="ml-0", limits={GPU: gpus}, **more)


def test_numbers_of_the_lab():
    """Four GPUs; one is shared by 0.5 and 0.25, of which reservation pods are no users."""
    found = report(Lab())
    assert found.gpus == replace(found.gpus, ready=4, not_ready=0, in_use=0.75, free=3)
    (team,) = found.teams
    assert (team.promised, team.in_use, team.waiting, team.waiting_pods) == (4, 0.75, 0, 0)
    assert (team.kai.name, team.kai.running, team.vcluster.running) == (
        "v0.16.8",
        "v0.16.8",
        "v0.36.1",
    )
    (pool,) = found.pools
    assert (pool.labels, pool.teams, pool.nodes, pool.ready) == (
        "kai-fleet/pool=ml",
        ("ml",),
        1,
        1,
    )
    (queues,) = found.trees.values()
    shares = {queue.name: queue.share("gpu") for queue in queues}
    assert list(shares) == ["default", "serve", "train"]
    assert (shares["train"].quota, shares["train"].in_use) == (3, 0.75)
    assert found.findings == []
    assert found.well > 10


def test_who_waits_by_queue_with_the_doctors_reason():
    lab = Lab()
    for n in range(3):
        waiting(f"w-{n}", queue="serve", limits={GPU: "9"})(lab)
    waiting("young", queue="train", limits={GPU: "1"}, created="2026-11-01T11:59:50Z")(lab)
    found = report(lab)
    first, second = found.waits
    assert (first.team, first.queues, first.pods, first.gpus) == ("ml", ("serve",), 3, 27)
    assert "queue serve may hold at most 2: it never runs" in first.cause
    assert NOW - first.since == timedelta(hours=1)
    assert (second.queues, second.pods, second.gpus, second.cause) == (("train",), 1, 1, "")
    assert (found.waiting, found.waiting_pods) == (1, 1), "no GPU that comes free is for the others"
    assert found.findings == [], "what waits is told once"


def test_a_copy_on_the_host_is_not_counted_again():
    lab = Lab()
    for name in ("infer-a", "infer-b"):
        lab.host["pods"].append(
            pod(f"{name}-x", node="ml-0", namespace="team-ml", annotations={"gpu-fraction": "0.5"})
        )
    lab.host["pods"].append(running("reservation-x", None, namespace="team-ml"))
    lab.host["pods"].append(running("of-somebody-else", None, namespace="other"))
    found = report(lab)
    assert (found.teams[0].in_use, found.gpus.in_use, found.gpus.free) == (0.75, 1.75, 2)


def test_what_a_vcluster_does_not_tell_of_is_not_free():
    """Its tenant is administrator there: of kube-system, and of what the API says."""
    lab = Lab()
    lab.host["pods"] += [
        running("reservation-x", None, namespace="team-ml"),
        running("miner-x-kube-system-x-ml", None, gpus="2", namespace="team-ml"),
    ]
    lab.ml["pods"].append(running("miner", None, gpus="2", namespace="kube-system"))
    found = report(lab)
    assert (found.gpus.in_use, found.gpus.free) == (2.75, 1)
    assert found.teams[0].in_use == 2.75


def test_times_that_no_api_server_writes_stop_no_report():
    lab = Lab()
    for name, created in (("a", {"x": 1}), ("b", "2026-02-30"), ("c", "")):
        waiting(name, queue="train", limits={GPU: "1"}, created=created)(lab)
    assert [group.pods for group in report(lab).waits] == [3]


def test_in_host_mode_the_hosts_own_pods_count():
    lab = in_host_mode()
    lab.ml["pods"] = [running("a", gpus="2")]
    lab.host["pods"] = [running("a-x-ml", gpus="2", namespace="team-ml")]
    found = report(lab)
    assert (found.teams[0].in_use, found.gpus.in_use) == (2, 2)
    assert list(found.trees) == ["the host"]


def test_a_vcluster_that_does_not_answer_is_said_and_counted_by_the_host():
    lab = Lab()
    lab.unreached = "it does not answer in time"
    lab.host["pods"].append(running("copy", namespace="team-ml", gpus="3"))
    found = report(lab)
    (team,) = found.teams
    assert (team.in_use, team.waiting, team.unreached) == (3, None, "it does not answer in time")
    assert list(found.missing) == ["what team ml holds and waits for"]
    assert list(found.trees) == ["ml"], "the queues as they are declared"


def test_shares_of_a_vcluster_that_is_not_looked_into_count_as_what_reserves_them():
    lab = Lab()
    lab.unreached = "it does not answer in time"
    half = {"gpu-fraction": "0.5"}
    group = {"runai-gpu-group": "g"}
    lab.host["pods"] = [
        pod("half", node="ml-0", namespace="team-ml", annotations=half, labels=group),
        running("reservation-x", None, namespace="team-ml"),
    ]
    found = report(lab)
    assert (found.teams[0].in_use, found.gpus.in_use, found.gpus.free) == (1, 1, 3)


def test_a_teams_own_stack_is_about_its_own_nodes():
    lab = Lab()
    lab.host["nodes"].append(node("other", "8"))
    lab.host["nodes"][1]["metadata"]["labels"]["kai-fleet/pool"] = "other"
    look, settings = lab.look(), load(lab.settings).settings
    own = replace(planned("lab-ml", settings, (), NOW), whole=False)
    found = live(own, look, examine(look))
    assert found.gpus.ready == 4
    assert [pool.labels for pool in found.pools] == ["kai-fleet/pool=ml"]
    assert [pool.gpus.ready for pool in report(lab).pools] == [4, 8]


def test_nodes_that_are_not_ready_have_no_gpus_to_give():
    lab = Lab()
    lab.host["nodes"].append(node("ml-1"))
    lab.host["nodes"][1]["status"]["conditions"] = []
    found = report(lab)
    assert (found.gpus.ready, found.gpus.not_ready) == (4, 4)
    assert (found.pools[0].nodes, found.pools[0].ready) == (2, 1)


def test_the_bar_adds_up():
    for found in (busy(), many(), report(Lab())):
        total = sum(amount for _, amount in writing.parts_of(found))
        assert total == pytest.approx(found.gpus.ready + found.gpus.not_ready)


def test_a_page_is_one_file_that_loads_nothing():
    text = page(busy())
    assert text.startswith("<!doctype html>") or text.lstrip().startswith("<!doctype html>")
    for wrong in ("<script", "<link", "<img", "<iframe", "src=", "url(", "@import", "http://"):
        assert wrong not in text, wrong
    assert re.findall(r"https://[^\"' <]*", text) == []
    assert "default-src 'none'; style-src 'unsafe-inline'" in text


def test_what_is_written_by_others_is_text():
    found = busy()
    odd = "<script>alert(1)</script>"
    text = page(
        replace(
            found,
            stack=odd,
            teams=[replace(found.teams[0], name=odd)],
            updates=[replace(found.updates[0], changes=(odd,), checkout=odd)],
            findings=[replace(found.findings[0], cause=odd, fix=f"`{odd}`")],
            waits=[replace(found.waits[0], queues=(odd,), cause=odd, fix=odd)],
        )
    )
    assert "<script" not in text
    assert text.count("&lt;script&gt;") > 8


def test_a_command_is_code_and_only_that():
    assert "<code><span>kubectl</span> <span>--kubeconfig</span> <span>ml.kube" in page(busy())


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (None, "\u2013"),
        (-1, "unlimited"),
        (2.0, "2"),
        (0.25, "0.25"),
        (1 / 3, "0.33"),
        (1234, "1,234"),
    ],
)
def test_amounts(amount, said):
    assert gpus(amount) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(20, "< 1 min"), (60, "1 min"), (5400, "1 h 30 min"), (97200, "1 d 3 h")],
)
def test_ages(seconds, said):
    assert age(timedelta(seconds=seconds)) == said


def test_of_many_who_wait_the_first_are_shown():
    found = busy()
    text = page(replace(found, waits=[found.waits[0]] * 20, findings=[found.findings[0]] * 15))
    assert re.findall(r"<summary>(\d+ more)</summary>", text) == ["8 more", "3 more"]


def test_many_trees_are_folded_and_few_are_not():
    assert "<details open>" not in page(many(writing.OPEN_TREES + 1))
    assert page(many(3)).count("<details open>") == 3


def run(*arguments):
    return CliRunner().invoke(app, ["report", *arguments])


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A stack file of its own, whose cluster nobody reaches."""
    config = {f"kai-fleet:{key}": value for key, value in Lab().settings.items()}
    (tmp_path / "Pulumi.lab.yaml").write_text(yaml.safe_dump({"config": config}))
    monkeypatch.setattr(reading, "ROOT", tmp_path)
    kubeconfig = tmp_path / "none"
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    def ask(stack, *_):
        raise UserError(f"the state of stack {stack} cannot be read: pulumi is not on PATH")

    monkeypatch.setattr(stack_state, "ask", ask)
    return tmp_path


def test_offline_it_is_the_plan(lab):
    ran = run("--stack", "lab", "--offline", "--html", str(lab / "out.html"))
    assert (ran.exit_code, ran.stderr) == (0, f"{lab / 'out.html'} is written\n")
    text = (lab / "out.html").read_text()
    assert "as declared" in text
    assert "In use" not in text
    assert "Who waits" not in text
    assert "v0.16.8" in text


def test_without_a_cluster_it_is_the_plan_and_says_what_is_missing(lab):
    ran = run("--stack", "lab", "--html", str(lab / "out.html"))
    assert ran.exit_code == 2, "what was not read is not 0 in use"
    assert "not in it: GPUs in use, idle and waited for" in ran.stderr
    text = (lab / "out.html").read_text()
    assert "made from the stack&#39;s file" in text or "made from the stack's file" in text
    assert "GPUs in use, idle and waited for, nodes, the doctor" in text


def test_another_file_offline(lab):
    other = lab / "base" / "Pulumi.lab.yaml"
    other.parent.mkdir()
    text = (lab / "Pulumi.lab.yaml").read_text().replace("gpus: 4", "gpus: 3")
    other.write_text(text.replace("quota: 4", "quota: 3").replace("quota: 3\n", "quota: 2\n"))
    assert of_file("lab", other).promised == 3
    refused = run("--stack", "lab", "--config", str(other), "--html", str(lab / "out.html"))
    assert refused.exit_code == 1
    assert not (lab / "out.html").exists()


def test_a_stack_that_there_is_not_and_a_place_that_cannot_be_written(lab):
    assert "Pulumi.other.yaml is not there" in str(run("--stack", "other", "--html", "x").exception)
    ran = run("--stack", "lab", "--offline", "--html", str(lab / "no" / "folder.html"))
    assert "cannot be written" in str(ran.exception)


def update(start, teams=None, *, message="", result="succeeded", kind="update", **more):
    """An update as `pulumi stack history --json` has it; the teams by version."""
    declared = {
        name: {"scheduler": {"mode": "virtual", "version": version}}
        for name, version in (teams or {}).items()
    }
    return {
        "kind": kind,
        "startTime": f"2026-11-{start:02}T06:42:04.000Z",
        "message": message,
        "result": result,
        "config": {"kai-fleet:teams": {"value": json.dumps(declared), "secret": False}},
        **more,
    }


@pytest.fixture
def history(monkeypatch):
    """Give the stack a history, oldest first; its pages are as long as Pulumi is asked for."""

    def of(*updates):
        def ask(stack, variables, *arguments):
            assert arguments[:2] == ("history", "--json")
            size, page = int(arguments[3]), int(arguments[5])
            return list(updates)[::-1][size * (page - 1) : size * page]

        monkeypatch.setattr(stack_state, "ask", ask)
        return last_changes("prod", {})

    return of


def test_changes_are_those_of_the_stacks_history(history):
    environment = {"git.author": "Ada", "git.head": "3f2b1c9a77", "git.dirty": "true"}
    second, first = history(
        update(1, {"ml": "v0.14.7", "nlp": "v0.9.3"}, resourceChanges={"create": 120}),
        update(
            2,
            {"ml": "v0.16.8", "dev": "v0.17.0"},
            message="Fix a typo\n\nIn the README",
            environment=environment,
            version=2,
            resourceChanges={"create": 3, "same": 120, "delete": 1},
        ),
    )
    assert first.changes == (
        "team ml: new with KAI v0.14.7, vCluster default",
        "team nlp: new with KAI v0.9.3, vCluster default",
    )
    assert second.changes == (
        "team ml: KAI v0.14.7 → v0.16.8",
        "team nlp: removed",
        "team dev: new with KAI v0.17.0, vCluster default",
    )
    assert (second.kind, second.result, second.version) == ("update", "succeeded", 2)
    assert second.resources == "3 created, 1 deleted"
    assert second.checkout == "3f2b1c9a of Ada with edits"
    assert second.message == "Fix a typo"
    text = page(replace(busy(), updates=[second, first]))
    assert "team ml: KAI v0.14.7 → v0.16.8; team nlp: removed" in text
    assert "Fix a typo" not in text, "the checkout's last commit is not what the update changed"


def test_an_update_of_one_team_changed_that_team_alone(history):
    teams = {"ml": "v0.14.7", "nlp": "v0.9.3"}
    newest, of_ml, _ = history(
        update(1, teams),
        update(2, {"ml": "v0.16.8", "nlp": "v0.12.23"}, message="only team ml"),
        update(3, {"ml": "v0.16.8", "nlp": "v0.12.23"}),
    )
    assert of_ml.changes == ("team ml: KAI v0.14.7 → v0.16.8",)
    assert newest.changes == ("team nlp: KAI v0.9.3 → v0.12.23",)


def test_a_failed_update_says_what_it_was_to_change_and_so_does_the_one_that_does(history):
    again, failed, _ = history(
        update(1, {"ml": "v0.14.7"}),
        update(2, {"ml": "v0.16.8"}, result="failed"),
        update(3, {"ml": "v0.16.8"}),
    )
    assert failed.changes == again.changes == ("team ml: KAI v0.14.7 → v0.16.8",)


def test_versions_of_the_host_of_vclusters_and_of_a_teams_own_stack(history):
    def config(**keys):
        return {f"kai-fleet:{key}": {"value": json.dumps(it)} for key, it in keys.items()}

    host = {"scheduler": {"mode": "host"}}
    before = config(kai={"version": "v0.15.3"}, teams={"nlp": host})
    after = config(kai={"version": "v0.17.0"}, teams={"nlp": host}, vcluster={"version": "v0.36.1"})
    gone, changed, _ = history(
        update(1, config=before), update(2, config=after), update(3, kind="destroy")
    )
    assert changed.changes == (
        "the host: KAI v0.15.3 → v0.17.0",
        "team nlp: vCluster default → v0.36.1",
    )
    assert gone.changes == ("the host: KAI v0.17.0 → none", "team nlp: removed")
    own = {"name": "vision", "scheduler": {"mode": "virtual", "version": "v0.16.8"}}
    (first,) = history(update(1, config=config(team=own)))
    assert first.changes == ("team vision: new with KAI v0.16.8, vCluster default",)


def test_of_a_long_history_the_newest_ten_are_told_and_the_first_that_is_read_changed_nothing(
    history,
):
    every = history(*(update(n, {"ml": f"v0.{n}.0"}) for n in range(1, 29)))
    assert [item.when.day for item in every] == list(range(28, 18, -1))
    assert every[-1].changes == ("team ml: KAI v0.18.0 → v0.19.0",)
    of_teams = history(*(update(n, message="only team ml") for n in range(1, 29)))
    assert of_teams[0].changes == ("only team ml",)


def test_an_update_that_changed_no_version_says_so_whatever_the_last_commit_is_called(history):
    newest, _ = history(
        update(1, {"ml": "v0.16.8"}), update(2, {"ml": "v0.16.8"}, message="Switch ml to v0.17.0")
    )
    assert newest.changes == ("no team, no version",)


def test_a_stack_that_was_never_deployed_is_told_as_such(lab, monkeypatch):
    def none(*_):
        raise stack_state.NeverUpdatedError("stack lab was never updated")

    monkeypatch.setattr(stack_state, "ask", none)
    vacant = Lab()
    vacant.host["namespaces"], vacant.unreached = [], "its Secret vc-ml is not there"
    monkeypatch.setattr(build, "gather", lambda sources: vacant.look())
    ran = run("--stack", "lab")
    assert ran.exit_code == 0
    text = " ".join(ran.stdout.split())
    assert "was never deployed" in text
    assert "fleet up --stack lab" in text
    assert "as declared" in text
    assert "None: the stack was never deployed." in text
    # What another login has deployed is there, and is shown.
    monkeypatch.setattr(build, "gather", lambda sources: Lab().look())
    assert "as seen" in run("--stack", "lab").stdout


def test_of_a_team_in_host_mode_its_vcluster_tells_where_the_host_does_not():
    lab = in_host_mode()
    lab.ml["pods"] = [running("a", gpus="2")]
    look = lab.look()
    look = replace(look, host=replace(look.host, unreadable={"pods": "403 Forbidden"}))
    found = live(planned("lab", load(lab.settings).settings, (), NOW), look, examine(look))
    assert found.teams[0].in_use == 2.0


def test_what_may_not_be_listed_is_not_zero(lab, monkeypatch):
    monkeypatch.setattr(stack_state, "ask", lambda *_: [update(1)])
    look = Lab().look()
    look = replace(look, host=replace(look.host, unreadable={"pods": "403 Forbidden"}))
    monkeypatch.setattr(build, "gather", lambda sources: look)
    ran = run("--stack", "lab", "--format", "json")
    assert ran.exit_code == 3
    found = json.loads(ran.stdout)
    assert (found["gpus"], found["exitCode"]) == (None, 3)
    assert found["missing"] == {
        "nodes, and who holds their GPUs": "this user may not list pods there (403 Forbidden)"
    }
    assert found["teams"][0]["inUse"] == 0.75, "of the vCluster, which was read"
    assert '<dt>In use</dt>\n<dd class="number">' not in page(
        build.of_clusters("lab", lambda *_: None)
    )

    team = look.teams["ml"]
    inside = replace(team.inside, unreadable={"pods": "403 Forbidden"})
    look = replace(Lab().look(), teams={"ml": replace(team, inside=inside)})
    ran = run("--stack", "lab", "--format", "json")
    assert ran.exit_code == 3
    (ml,) = json.loads(ran.stdout)["teams"]
    assert (ml["waiting"], ml["unreached"]) == (
        None,
        "this user may not list pods there (403 Forbidden)",
    )
    assert json.loads(ran.stdout)["asDeclared"] == ["ml"]
    text = page(build.of_clusters("lab", lambda *_: None))
    assert "every pod has a node" not in text
    assert "not known of ml" in text


def test_a_vcluster_that_does_not_answer_ends_the_command_with_2(lab, monkeypatch):
    monkeypatch.setattr(stack_state, "ask", lambda *_: [update(1)])
    away = Lab()
    away.unreached = "it does not answer in time"
    monkeypatch.setattr(build, "gather", lambda sources: away.look())
    ran = run("--stack", "lab")
    assert ran.exit_code == 2
    assert "it does not answer in time" in ran.stdout


def test_without_a_prometheus_one_line_says_what_there_would_be_and_how(lab, monkeypatch):
    monkeypatch.setattr(stack_state, "ask", lambda *_: [update(1)])
    monkeypatch.setattr(build, "gather", lambda sources: Lab().look())
    ran = run("--stack", "lab", "--html", str(lab / "out.html"), "--format", "markdown")
    assert ran.exit_code == 0
    assert "with kai-fleet:prices what they cost" in ran.stdout
    text = (lab / "out.html").read_text()
    for said in (ran.stdout.replace("\\", ""), text):
        assert "With a Prometheus this report also has the GPU-hours" in said
        assert "write kai-fleet:monitoring: {prometheus: {service:" in said


def test_a_prometheus_that_does_not_answer_is_said_and_ends_the_command_with_2(lab, monkeypatch):
    monkeypatch.setattr(stack_state, "ask", lambda *_: [update(1)])
    monkeypatch.setattr(build, "gather", lambda sources: Lab().look())
    file = lab / "Pulumi.lab.yaml"
    config = yaml.safe_load(file.read_text())
    config["config"]["kai-fleet:monitoring"] = {"prometheus": {"url": "http://127.0.0.1:1"}}
    file.write_text(yaml.safe_dump(config))
    ran = run("--stack", "lab")
    assert ran.exit_code == 2
    assert "GPU-hours and their cost: Prometheus at http://127.0.0.1:1" in ran.stdout
    assert "0.75 in use" in ran.stdout
