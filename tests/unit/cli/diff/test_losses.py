"""What an update would lose is found from the state and the file, and asked for by name."""

import builtins
import copy

import pytest
import yaml

from kai_fleet.cluster.kube.errors import UnreachableError
from kai_fleet_cli.commands import updates
from kai_fleet_cli.diff import losses
from kai_fleet_cli.display import terminal
from kai_fleet_cli.doctor import diagnosis
from kai_fleet_cli.doctor.read import Source
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.plan import recorder
from kai_fleet_cli.recovery.state import State
from tests.unit.cli.doctor.doctor_samples import Lab, meta, pod
from tests.unit.cli.teams.team_project import LAB

PREFIX = "kai-fleet:"
SETTINGS = {key.removeprefix(PREFIX): value for key, value in yaml.safe_load(LAB)["config"].items()}
SETTINGS["gpu"] = {"provider": "device-plugin"}


@pytest.fixture(scope="module")
def known():
    """The state after an update of the lab."""
    return of_records(recorder.record("lab", SETTINGS))


def of_records(records):
    """The state after an update that registers these."""
    resources = {
        item.urn: {
            "urn": item.urn,
            "type": item.type,
            "parent": item.parent,
            "provider": f"{item.provider}::id" if item.provider else "",
            "inputs": item.inputs,
        }
        for item in sorted(records, key=lambda each: "providers" not in each.type)
    }
    return State(resources)


def lost(known, edit):
    settings = copy.deepcopy(SETTINGS)
    edit(settings)
    return losses.lost_lines(known, recorder.record("lab", settings))


def no_train(settings):
    del settings["teams"]["ml"]["queues"]["default"]["children"]["train"]


def test_a_queue_that_goes_is_its_teams_loss(known):
    (item,) = lost(known, no_train)
    assert (item.team, item.subject) == ("ml", "Queue train")
    assert "pods that name it are no longer scheduled" in item.words


def test_a_team_that_goes_takes_its_namespace_and_its_vcluster(known):
    items = lost(known, lambda settings: settings["teams"].pop("ml"))
    assert {item.team for item in items} == {"ml"}
    assert {"Namespace ml-namespace", "Release ml-release"} <= {item.subject for item in items}


def no_gpu_stack(settings):
    settings["gpu"] = {"provider": "none"}


def test_what_all_teams_share_is_a_loss_of_the_host(known):
    assert {item.team for item in lost(known, no_gpu_stack)} == {"host"}


@pytest.mark.parametrize(
    "edit",
    [
        lambda settings: None,
        lambda settings: settings["teams"]["ml"]["scheduler"].update(version="v0.16.8"),
        lambda settings: settings["teams"]["ml"].update(gpus=6),
        lambda settings: settings["teams"].update(
            new=dict(settings["teams"]["dev"], nodePool={"pool": "new"})
        ),
    ],
    ids=["nothing", "a version", "a quota", "a team"],
)
def test_what_goes_on_is_no_loss(known, edit):
    assert lost(known, edit) == []


@pytest.fixture
def lab(monkeypatch):
    """The clusters, of which nothing is read before something is lost."""
    lab = Lab()
    claim = {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}
    lab.host["persistentvolumeclaims"] = [claim | {"metadata": meta("data-ml-0", "team-ml")}]
    lab.host["pods"] = [pod(name, namespace="team-ml") for name in ("ml-0", "job-x-default-x-ml")]
    lab.ml["pods"] += [pod("a", "train", "ml-0"), pod("b", "train"), pod("c", "serve")]
    monkeypatch.setattr(diagnosis, "source_of_stack", lambda _: Source(None, None))
    monkeypatch.setattr(diagnosis, "read_clusters", lambda _: lab.look())
    return lab


def counts(items):
    found = diagnosis.with_live_counts("lab", items)
    return {item.subject: item.words.rpartition("; ")[2] for item in found}


def test_a_loss_says_which_pods_and_volumes_are_there(known, lab):
    assert counts(lost(known, no_train)) == {"Queue train": "3 pods run and 1 pod waits"}
    words = counts(lost(known, lambda settings: settings["teams"].pop("ml")))
    assert words["Namespace ml-namespace"] == "2 pods and 1 volume data-ml-0 5Gi"
    assert words["Release ml-release"] == "goes with everything inside its vCluster"


def test_what_cannot_be_counted_is_one_line(known, lab, monkeypatch, capsys):
    lab.unreached = "it does not answer"
    items = lost(known, no_train)
    assert counts(items)["Queue train"] == "its pods could not be counted"

    def refuse(_):
        raise UnreachableError("it cannot be connected to")

    monkeypatch.setattr(diagnosis, "read_clusters", refuse)
    assert diagnosis.with_live_counts("lab", items) == items
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("in what is lost are not counted: it cannot be connected to")


def test_without_a_terminal_each_loss_is_named_in_the_command(known, lab):
    items = lost(known, no_train)
    with pytest.raises(UserError, match=r"fleet up --stack lab --yes ml$"):
        updates.confirm("lab", items, [])
    assert updates.confirm("lab", items, ["ml"]) == ["ml"]
    assert updates.confirm("lab", items, ["lab"]) == ["lab", "ml"]  # the stack is all its teams
    everything = lost(known, no_gpu_stack)
    with pytest.raises(UserError, match=r"fleet up --stack lab --yes lab$"):
        updates.confirm("lab", everything, ["ml"])
    gone = lost(known, lambda settings: settings["teams"].pop("ml"))
    assert updates.confirm("lab", gone, [], ["ml"]) == []  # the file names it


def test_the_stacks_name_agrees_to_the_removal_of_a_team_beside_a_loss_of_the_host(known, lab):
    def without_both(settings):
        no_gpu_stack(settings)
        del settings["teams"]["ml"]

    assert "ml" in updates.confirm("lab", lost(known, without_both), ["lab"])


def test_at_a_terminal_another_answer_changes_nothing(known, lab, monkeypatch, capsys):
    asked, answers = [], ["ml", "no"]
    monkeypatch.setattr(terminal, "can_ask", lambda: True)
    monkeypatch.setattr(
        terminal.Prompt, "ask", lambda text, **_: asked.append(text) or answers.pop(0)
    )
    items = lost(known, no_train)
    assert updates.confirm("lab", items, []) == ["ml"]
    assert "Queue train goes" in capsys.readouterr().out
    with pytest.raises(UserError, match="nothing is changed"):
        updates.confirm("lab", items, [])
    assert asked == ["Type ml to lose this"] * 2


def test_enter_alone_agrees_to_nothing_whatever_the_name_is(monkeypatch):
    monkeypatch.setattr(builtins, "input", lambda *_: "")
    with pytest.raises(UserError, match="nothing is changed"):
        terminal.confirm_name("no")


def test_a_driver_upgrade_ends_the_pods_with_gpus_and_counts_them(lab):
    before, after = (copy.deepcopy(SETTINGS) for _ in range(2))
    before["gpu"] = {"provider": "operator", "version": "v25.3.0"}
    after["gpu"] = {"provider": "operator", "version": "v25.10.0"}
    lab.host["pods"] = [
        pod("a", None, "ml-0", namespace="team-ml", limits={"nvidia.com/gpu": "1"}),
        pod("b", None, "ml-0", namespace="team-ml"),
    ]
    for off in (False, True):
        if off:
            for settings in (before, after):
                settings["gpu"]["values"] = {"driver": {"enabled": False}}
        old = of_records(recorder.record("lab", before))
        items = losses.lost_lines(old, recorder.record("lab", after))
        assert [item.team for item in items] == ([] if off else ["host"])
        if not off:
            assert "the pods with GPUs there end" in items[0].words
            (words,) = counts(items).values()
            assert words == "1 such pod runs now"
