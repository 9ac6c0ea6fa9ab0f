"""`fleet usage` without a Prometheus: what pods hold now, by team and queue, from live clusters."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from typer.testing import CliRunner

from kai_fleet.kube.api import Api
from kai_fleet.kube.errors import UnreachableError
from kai_fleet_cli.__main__ import app
from kai_fleet_cli.doctor import gather
from kai_fleet_cli.doctor.cluster_state import READS
from kai_fleet_cli.stack_file import reading
from tests.unit import canned_api, doctor_samples


def hour_ago() -> str:
    return (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


STACK = {
    "kai-fleet:cluster": {"name": "lab", "context": "lab"},
    "kai-fleet:kai": {"version": "v0.16.8"},
    "kai-fleet:queues": {"all": {"children": {"nlp": {"gpu": 2}}}},
    "kai-fleet:teams": {
        "dev": {"scheduler": {"mode": "default"}, "nodePool": {"pool": "dev"}, "gpus": 4},
        "nlp": {"scheduler": {"mode": "host"}, "queue": "nlp", "gpus": 2},
    },
}
VIRTUAL = {
    "kai-fleet:cluster": {"name": "lab", "context": "lab"},
    "kai-fleet:teams": {
        "ml": {
            "scheduler": {"mode": "virtual", "version": "v0.16.8"},
            "nodePool": {"pool": "ml"},
            "gpus": 4,
            "queues": {"top": {"children": {"train": {"gpu": 3}, "serve": {"gpu": 1}}}},
            "vcluster": {"access": {"type": "NodePort", "host": "127.0.0.1"}},
        }
    },
    "kai-fleet:teamStacks": {"vision": {"nodePool": {"pool": "vision"}, "gpus": 4}},
}


def queue(name, parent=None, gpu=0.0):
    share = {"quota": gpu, "limit": -1, "overQuotaWeight": 1}
    above = {"parentQueue": parent} if parent else {}
    spec = {**above, "resources": {"cpu": share, "memory": share, "gpu": share}}
    return {"metadata": {"name": name}, "spec": spec}


def pod(name, queue, node="n", gpus="1", namespace="default", kai=True, **notes):
    made = doctor_samples.pod(
        name,
        queue,
        node,
        namespace=namespace,
        limits={"nvidia.com/gpu": gpus} if gpus else {},
        annotations={key.replace("_", "-"): value for key, value in notes.items()},
        created=hour_ago(),
    )
    if not kai:
        made["spec"]["schedulerName"] = "default-scheduler"
    return made


@pytest.fixture
def fleet(tmp_path, monkeypatch):
    """Runs `fleet usage` of a stack; gives the two API servers."""
    with canned_api.serving() as (host, host_url), canned_api.serving() as (inside, inside_url):
        monkeypatch.setattr(reading, "ROOT", tmp_path)
        monkeypatch.setattr(
            Api,
            "of_context",
            classmethod(
                lambda cls, file, context, **limits: cls.of_kubeconfig(
                    canned_api.kubeconfig(host_url), **limits
                )
            ),
        )
        # How a vCluster's address is found is tested with the doctor.
        way = gather._Access(canned_api.kubeconfig(inside_url))
        monkeypatch.setattr(gather, "_access", lambda reader, seen, team: way)

        def run(config, *more, code=0):
            text = yaml.safe_dump({"config": config}, sort_keys=False)
            (tmp_path / "Pulumi.lab.yaml").write_text(text)
            ran = CliRunner().invoke(app, ["usage", "--stack", "lab", *more])
            assert ran.exit_code == code, ran.output + str(ran.exception)
            return ran

        run.host, run.inside = host, inside
        yield run


def lists(server, **kinds):
    """What a server answers for a collection; others are not served."""
    paths = {kind: path.format("").partition("?")[0] for kind, path in READS.items()}
    for kind, items in kinds.items():
        server.answers[paths[kind]] = (200, {"items": items})


def numbers(row):
    return [row[key] for key in ("used", "guaranteed", "borrowed", "idle", "owed")]


def test_a_team_with_its_own_kai_is_counted_inside_its_vcluster(fleet):
    lists(
        fleet.inside,
        nodes=[doctor_samples.node("n")],
        queues=[queue("top", gpu=4), queue("train", "top", 3), queue("serve", "top", 1)],
        pods=[
            pod("whole", "train"),
            pod("half", "train", gpus=None, gpu_fraction="0.5"),
            pod("memory", "serve", gpus=None, gpu_memory="40960", gpu_fraction_num_devices="3"),
            pod("waits", "train", node=None, gpus="4"),
            pod("plain", None, kai=False),
            pod("of-a-parent", "top"),
        ],
    )
    found = json.loads(fleet(VIRTUAL, "--json").stdout)
    assert (found["source"], found["unit"], found["since"]) == ("now", "GPUs", None)
    ml = next(team for team in found["teams"] if team["team"] == "ml")
    rows = {row["queue"]: numbers(row) for row in ml["queues"]}
    assert rows == {
        "serve": [1.53, 1, 0.53, 0, 0],
        "train": [1.5, 1.5, 0, 1.5, 1.5],
        None: [2, 0, 2, 0, 0],
    }
    (wait,) = found["waits"]
    assert (wait["pod"], wait["queue"], wait["gpus"]) == ("default/waits", "train", 4)
    assert wait["seconds"] == pytest.approx(3600, abs=120)


@pytest.mark.parametrize(("config", "name"), [(VIRTUAL, "ml"), (STACK, "nlp"), (STACK, "dev")])
def test_pods_that_may_not_be_listed_are_no_pods_at_all(fleet, config, name):
    lists(fleet.inside, nodes=[], queues=[])
    lists(fleet.host, nodes=[], queues=[])
    server = fleet.inside if config is VIRTUAL else fleet.host
    server.answers["/api/v1/pods"] = (403, {"message": "no"})
    found = json.loads(fleet(config, "--json").stdout)
    team = next(team for team in found["teams"] if team["team"] == name)
    assert team["queues"] == []
    assert team["unreached"].startswith("this user may not list pods there (403")
    assert f"Team {name} is not counted: this user may not" in fleet(config).stdout


def test_a_pod_that_never_runs_is_owed_nothing(fleet):
    lists(
        fleet.inside,
        nodes=[doctor_samples.node("n")],
        queues=[queue("top", gpu=16), queue("train", "top", 16)],
        pods=[
            pod("waits", "train", node=None, gpus="4"),
            pod("eight", "train", node=None, gpus="8"),
        ],
    )
    found = json.loads(fleet(VIRTUAL, "--json").stdout)
    ml = next(team for team in found["teams"] if team["team"] == "ml")
    assert ml["owed"] == 4
    assert [wait["pod"] for wait in found["waits"]] == ["default/waits"]
    says = (
        "Pod default/eight of team ml never runs, and is owed nothing: it asks for 8 GPUs, and no"
        " node has more than 4."
    )
    assert says in found["notes"]
    assert says in " ".join(fleet(VIRTUAL).stdout.split())


def test_other_teams_are_counted_by_their_pods_on_the_host(fleet):
    lists(
        fleet.host,
        nodes=[doctor_samples.node("n")],
        queues=[queue("all", gpu=2), queue("nlp", "all", 2)],
        pods=[
            pod("a-x-default-x-nlp", "nlp", namespace="team-nlp", gpus="3"),
            pod("b-x-jobs-x-nlp", "nlp", node=None, namespace="team-nlp", gpus="2"),
            pod("c-x-default-x-dev", None, namespace="team-dev", kai=False),
            pod("someone", "nlp", namespace="elsewhere", gpus="8"),
        ],
    )
    found = json.loads(fleet(STACK, "--json").stdout)
    rows = {team["team"]: numbers(team) for team in found["teams"]}
    assert rows == {"dev": [1, 1, 0, 3, 0], "nlp": [3, 2, 1, 0, 0]}
    (wait,) = found["waits"]
    assert (wait["team"], wait["pod"]) == ("nlp", "jobs/b")


def test_a_team_with_a_stack_of_its_own_is_counted_by_its_pods_on_the_host(fleet):
    lists(fleet.host, pods=[pod("a-x-default-x-vision", "q", namespace="team-vision", gpus="2")])
    found = json.loads(fleet(VIRTUAL, "--json").stdout)
    vision = next(team for team in found["teams"] if team["team"] == "vision")
    assert (vision["mode"], numbers(vision)) == ("own stack", [2, 2, 0, 2, 0])


def test_a_gpu_that_such_a_team_shares_counts_once(fleet):
    half = {"gpus": None, "gpu_fraction": "0.5", "namespace": "team-vision"}
    reserves = pod("gpu-reservation-n-x-kai-resource-reservation-x-vision", None, kai=False)
    reserves["metadata"]["namespace"] = "team-vision"
    shares = [pod(f"{name}-x-default-x-vision", "q", **half) for name in "ab"]
    lists(fleet.host, pods=[*shares, reserves])
    found = json.loads(fleet(VIRTUAL, "--json").stdout)
    vision = next(team for team in found["teams"] if team["team"] == "vision")
    assert vision["used"] == 1


def test_a_sample_says_that_it_is_one_and_how_to_have_more(fleet):
    text = " ".join(fleet(STACK).stdout.split())
    assert "a sample of now, not GPU-hours" in text
    assert "kai-fleet:monitoring: {prometheus: {service:" in text
    asked_for = fleet(STACK, "--now").stdout
    assert "not GPU-hours" not in asked_for


def test_a_team_that_is_not_reached_is_said_and_the_others_are_counted(fleet, monkeypatch):
    away = gather._Access(missing="its Secret vc-ml is not there")
    monkeypatch.setattr(gather, "_access", lambda reader, seen, team: away)
    lists(fleet.host, pods=[pod("a-x-default-x-vision", None, namespace="team-vision")])
    found = json.loads(fleet(VIRTUAL, "--json").stdout)
    by_name = {team["team"]: team for team in found["teams"]}
    assert by_name["ml"]["unreached"] == "its Secret vc-ml is not there"
    assert by_name["vision"]["used"] == 1
    assert "its Secret vc-ml is not there" in " ".join(fleet(VIRTUAL).stdout.split())


@pytest.mark.parametrize("more", [(), ("--json",), ("--csv",)])
def test_a_kubeconfig_that_somebody_planted_is_an_error_of_the_command(fleet, monkeypatch, more):
    says = "its Secret vc-ml has users[0].user.exec in its key config"
    planted = gather._Access(missing=says, foreign=True)
    monkeypatch.setattr(gather, "_access", lambda reader, seen, team: planted)
    ran = fleet(VIRTUAL, *more, code=1)
    said = " ".join(ran.stderr.split())
    assert f"error: team ml: {says}. Somebody who can write in the namespace of team ml" in said
    assert "delete secret vc-ml and kubectl" in said
    assert "rollout restart statefulset ml" in said
    if more == ("--json",):
        by_name = {team["team"]: team for team in json.loads(ran.stdout)["teams"]}
        assert by_name["ml"]["unreached"] == says


def test_as_csv_each_queue_is_a_line(fleet):
    lists(fleet.inside, queues=[queue("top", gpu=4), queue("train", "top", 3)])
    rows = list(csv.DictReader(io.StringIO(fleet(VIRTUAL, "--csv", "--team", "ml").stdout)))
    assert [(row["team"], row["queue"], row["idle"], row["since"]) for row in rows] == [
        ("ml", "train", "3", "now")
    ]


def test_a_vcluster_without_a_kai_of_its_own_is_not_asked(fleet):
    fleet(STACK, "--json")
    assert fleet.inside.asked == []


def test_each_kind_is_asked_once_of_each_cluster(fleet):
    fleet(VIRTUAL, "--json")
    for server in (fleet.host, fleet.inside):
        lists_of = [path.partition("?")[0] for verb, path in server.asked if verb == "GET"]
        kinds = [path for path in lists_of if path != "/version"]
        assert len(kinds) == len(set(kinds)) == 6
        assert {verb for verb, _ in server.asked} == {"GET"}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--team", "nobody"], "no team nobody; its teams: ml, vision"),
        (["--since", "soon"], "write minutes, hours, days or weeks: 90m, 7d"),
        (["--json", "--csv"], "write one of them"),
        (["--stack", "none"], "Pulumi.none.yaml"),
        (["--prometheus", "prom:9090"], "--prometheus: write it with http:// or https://"),
        (["--prometheus", "http://me:word@prom"], "--prometheus: holds a user or a password"),
    ],
)
def test_what_is_asked_wrongly_is_a_sentence(fleet, more, says):
    ran = fleet(VIRTUAL, *more, code=1)
    assert says in str(ran.exception)


def test_a_host_that_is_away_is_a_sentence_and_so_is_prometheus(fleet, monkeypatch):
    ran = fleet(VIRTUAL, "--prometheus", "http://127.0.0.1:1", code=1)
    assert "Prometheus at http://127.0.0.1:1" in str(ran.exception)
    assert "--now" in str(ran.exception)

    def away(*_, **__):
        raise UnreachableError("it does not answer in time")

    monkeypatch.setattr(Api, "of_context", away)
    ran = fleet(VIRTUAL, code=1)
    assert "the host cluster is not reached: it does not answer in time" in str(ran.exception)


def test_a_prometheus_of_the_host_is_asked_through_its_api_server(fleet):
    path = "/api/v1/namespaces/mon/services/prom:9090/proxy/api/v1/query"

    def answer(asked):
        value = [0, "60" if "group" in asked else "30"]
        metric = {"scheduler": "ml", "queue": "train"}
        result = [{"metric": metric, "value": value}]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}

    fleet.host.answers[path] = (200, answer)
    told = {**VIRTUAL, "kai-fleet:monitoring": {"prometheus": {"service": "mon/prom:9090"}}}
    found = json.loads(fleet(told, "--json", "--since", "1h", "--team", "ml").stdout)
    assert found["source"] == "prometheus"
    assert found["measuredHours"] == 1
    (ml,) = found["teams"]
    train = next(row for row in ml["queues"] if row["queue"] == "train")
    assert train["used"] == 0.5
