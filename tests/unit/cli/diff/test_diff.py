"""What a diff says in each format, from plans that are at hand."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from kai_fleet.names import QUEUES, TEAM
from kai_fleet.vcluster.chart_values import argument_values
from kai_fleet_cli.diff.changes import FieldChange, difference, summary_of_changes, summary_of_steps
from kai_fleet_cli.diff.report import Base
from kai_fleet_cli.diff.report import report as diff_report
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.plan.recorder import Registered
from tests.unit.golden import compare as golden
from tests.unit.golden.reports import named, report, reported, with_queue, without

PROBLEM = {
    "check": "queue-quota",
    "level": "mandatory",
    "kind": "queue",
    "name": "all in research",
    "path": "kai-fleet:teams.research.queues.all",
    "cause": "guarantees 5 GPUs of 4",
    "fix": "write 4",
}


def switched():
    record = golden.record()
    named(record, "research-kai-release")["inputs"]["version"] = "v0.14.7"
    named(record, "research-kai-ready")["inputs"]["environment"]["KAI_VERSION"] = "v0.14.7"
    return record


def edited():
    """One of everything: a version, a share, a renamed queue, a bound, a team gone."""
    record = with_queue(without(switched(), "dev"), "research-queues", "serve", "inference")
    named(record, "research-queues-train")["inputs"]["spec"]["resources"]["gpu"]["quota"] = 2.5
    named(record, "research-gpus")["inputs"]["spec"]["hard"]["requests.nvidia.com/gpu"] = "6"
    return record


@pytest.mark.parametrize("format", ["txt", "json", "md"])
def test_a_diff_in_each_format(format):
    found = report(edited())
    assert found.exit_code == 3
    text = {
        "txt": lambda: golden.shown(as_text.show_diff, found),
        "json": lambda: json.dumps(found.record(), indent=2, ensure_ascii=False) + "\n",
        "md": lambda: as_markdown.diff_page(found),
    }[format]()
    golden.check(f"diff.{format}", text)


def test_a_digest_that_only_makes_a_wait_run_again_is_no_row():
    record = golden.record()
    named(record, "dev-release")["inputs"]["values"] = {"controlPlane": {"a": 1}}
    wait = named(record, "dev-ready")["inputs"]
    wait["environment"] |= {"VCLUSTER_VALUES": "0a1b2c3d"}
    wait["triggers"] = ["4e5f6a7b"]
    page = as_markdown.diff_page(report(record))
    assert "0a1b2c3d" not in page and "4e5f6a7b" not in page and "Command" not in page
    assert "controlPlane" in page
    assert "1 resource differs" in page, "the count is of what is shown"


@pytest.mark.parametrize("stack", ["lab", "a.b", "a.yaml"])
def test_the_stack_is_that_of_the_files_whole_name(stack):
    gone = diff_report(Base("HEAD", "0" * 40), None, Path(f"Pulumi.{stack}.yaml"))
    assert gone.stack == stack
    assert f"destroy --stack {stack}" in gone.note


def test_nothing_changes():
    found = report(golden.record())
    assert (found.exit_code, found.verdict) == (0, "nothing changes")


def test_what_comes_or_goes_with_a_component_is_one_line_and_every_loss():
    base, release = golden.record(), "kubernetes:helm.sh/v3:Release"
    stack = named(base, "host-gpu")["urn"]
    urn = f"{stack.rpartition('::')[0]}${release}::plugin"
    place = {"urn": urn, "type": release, "name": "plugin", "parent": stack}
    base["resources"].append({**place, "provider": "", "inputs": {}})
    items = [item for item in base["resources"] if "Platform" not in item["urn"]]
    without_host = {**base, "resources": items}
    assert reported(base, without_host) == ["host: Platform host is created, with 4 resources"]
    assert reported(without_host, base) == [
        "host: Release plugin goes, and with it what makes nodes advertise GPUs",
        "host: Platform host is deleted, with 4 resources",
    ]


@pytest.mark.parametrize(
    ("end", "inputs", "says"),
    [
        (
            "kubernetes::host",
            {"clusterIdentifier": "other"},
            "host: kubernetes host is another cluster: all in it is created again",
        ),
        ("dev-release", {"namespace": "x"}, "everything inside its vCluster, name"),
        ("dev-namespace", {"metadata": {}}, "goes with its pods and volumes"),
    ],
)
def test_what_another_value_loses(end, inputs, says):
    record = golden.record()
    (item,) = (each for each in record["resources"] if each["urn"].endswith(f":{end}"))
    item["inputs"].update(inputs)
    lines = reported(record, part="lost")
    assert [line for line in lines if says in line], lines


def test_a_refused_work_tree_is_not_taken_for_an_empty_one():
    note = "The rules refuse the stack as it is now: there is no plan."
    plan = golden.plan_of({"stack": "lab", "resources": [], "problems": [PROBLEM]})
    found = type(report(golden.record()))("lab", report(golden.record()).base, plan, note)
    page = as_markdown.diff_page(found)
    assert (found.exit_code, found.verdict, found.record()["resources"]) == (1, "refused", [])
    assert "guarantees 5 GPUs of 4; write 4" in page and "there is no plan" in page


def test_fields_of_lists_and_dotted_keys_are_named():
    def resource(inputs):
        return Registered("urn::a", "kubernetes:v1:X", "a", "", "", inputs)

    old = {"list": [1, {"a": 1}], "long": [1], "labels": {"a/b": "x"}, "on": True, "gone": {"k": 1}}
    new = {"list": [1, {"a": 2}], "long": [1, 2], "labels": {"a/b": "y"}, "on": 1}
    (change,) = difference([resource(old)], [resource(new)])
    assert [(f.path, f.old, f.new) for f in change.fields] == [
        ("gone.k", 1, None),
        ("labels.[a/b]", "x", "y"),
        ("list[1].a", 1, 2),
        ("long", [1], [1, 2]),
        ("on", True, 1),
    ]


@pytest.mark.parametrize("same", [0, 41, 300])
def test_what_changes_is_in_what_is_shown(same):
    old, new = FieldChange("spec", "x" * same + "A", "x" * same + "B" + "y" * 40).shown(60)
    assert ("A" in old, "B" in new) == (True, True)
    assert ("…" in old + new) == (same > 0)


def test_a_huge_diff_fits_into_a_comment_and_on_a_screen():
    base = golden.record()
    now = copy.deepcopy(base)
    for number in range(3000):
        item = copy.deepcopy(named(base, "research-queues-serve"))
        item["urn"], item["inputs"]["metadata"]["name"] = f"{item['urn']}-{number}", f"q{number}"
        now["resources"].append(item)
    for found in (report(now, base), report(base, now)):
        page = as_markdown.diff_page(found)
        assert len(page) < 60_000
        assert "and 2900 lines more" in page and "too large to draw" in page
        assert len(golden.shown(as_text.show_diff, found).splitlines()) < 120


def step(op, old=None, new=None):
    """A step of the engine, of resources of a plan's record."""
    item = new or old
    sides = (
        item and SimpleNamespace(**{**item, "provider": f"{item['provider']}::id"})
        for item in (old, new)
    )
    sides = dict(zip(("old", "new"), sides, strict=True))
    return SimpleNamespace(op=op, urn=item["urn"], type=item["type"], **sides)


def test_the_engines_steps_make_the_same_summary():
    base, now = golden.record(), without(switched(), "dev")
    old, new = ({item["urn"]: item for item in record["resources"]} for record in (base, now))
    steps = []
    for urn in old.keys() | new.keys():
        before, after = old.get(urn), new.get(urn)
        op = "delete" if after is None else "same" if before == after else "update"
        op = "replace" if op == "update" and "research-kai-release" in urn else op
        steps.append(step(op, before, after))
    offline = report(now, base).changes
    for part in ("lost", "restarted"):
        assert summary_of_steps(steps)[part] == summary_of_changes(offline)[part] != []
    release = old[named(base, "research-release")["urn"]]
    (lost,) = summary_of_steps(
        [step("same", *[named(base, "research")] * 2), step("replace", release, release)]
    )["lost"]
    assert lost.words == "goes with everything inside its vCluster"
    own = {"urn": "urn:pulumi:lab::kai-fleet::pulumi:pulumi:Stack::x", "parent": ""}
    created = summary_of_steps(
        [step("create", None, {**release, **own, "type": "pulumi:pulumi:Stack"})]
    )
    assert not any(created.values()), "a stack is nothing on a cluster"


def test_what_is_made_anew_with_the_same_inputs_has_words():
    """So is all that was in a vCluster that is another one now."""
    every = golden.record()["resources"]
    summary = summary_of_steps([step("replace", item, item) for item in every])
    items = [item for part in summary.values() for item in part]
    assert len(items) > 10 and all(item.words for item in items)
    assert "is replaced" in {item.words for item in summary["changed"]}


def test_a_preview_says_what_high_availability_takes_where_that_is_new():
    single = named(golden.record(), "research-release")
    high = copy.deepcopy(single)
    high["inputs"]["values"] = argument_values("research", {"availability": "high"})

    def takes(*sides):
        changed = summary_of_steps([step("update", *sides)])["changed"]
        return [item.words for item in changed if "etcd members" in item.words]

    (words,) = takes(single, high)
    assert words.startswith("has 3 control planes that request 200m CPU and 256Mi each, and 3 etcd")
    assert takes(high, single) == takes(high, high) == []


TEAM_ML = {
    "urn": "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team::ml",
    "type": TEAM,
    "name": "ml",
    "parent": "",
    "provider": "",
    "inputs": {},
}


def tree(*names):
    """A queue tree of team ml with these queues."""
    above = "urn:pulumi:lab::kai-fleet::kai-fleet:index:Team"
    return {
        "urn": f"{above}${QUEUES}::ml-queues",
        "type": QUEUES,
        "name": "ml-queues",
        "parent": f"{above}::ml",
        "provider": "",
        "inputs": {"queues": {name: {"resources": {"gpu": {"quota": 1}}} for name in names}},
    }


def test_a_tree_that_is_replaced_loses_its_queues():
    """The engine names the tree: its queues are in another cluster, with the same inputs."""
    steps = [step("replace", tree("train", "serve"), tree("train", "more"))]
    summary = summary_of_steps([step("same", TEAM_ML, TEAM_ML), *steps])
    lost = [f"{item.team} {item.subject}: {item.words}" for item in summary["lost"]]
    goes = "goes: pods that name it are no longer scheduled"
    assert lost == [f"ml Queue {name}: {goes}" for name in ("serve", "train")]
    assert [item.subject for item in summary["changed"]] == ["Queue more"]
    kept = summary_of_steps([step("update", tree("train"), tree("train"))])
    assert not any(kept.values())


@pytest.mark.parametrize(
    "page",
    [lambda found: golden.shown(as_text.show_diff, found), as_markdown.diff_page],
)
def test_no_value_of_a_file_moves_the_terminal_or_turns_the_text_of_who_reviews_it(page):
    """It could take away the lines above, or show other words than the cluster gets."""
    record = golden.record()
    hiding = "\x1b[1A\x1b[2Kgood\u202e\x07"
    named(record, "research-namespace")["inputs"]["metadata"]["annotations"] = {"a/b": hiding}
    release = named(record, "research-release")["inputs"]
    release["values"]["controlPlane"] = {"service": {"annotations": {f"b{hiding}": hiding}}}
    record["problems"] = [PROBLEM | {"path": hiding, "name": hiding, "cause": hiding}]
    text = page(report(record))
    assert "good" in text
    assert not set(text) & set(hiding) - set("[1A2Kgod")
