"""What a diff says in each format, from plans that are at hand."""

import copy
import json

import pytest

from kai_fleet_cli.diff.base import BaseState
from kai_fleet_cli.diff.changes import FieldChange, difference
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.plan.recorder import Registered
from tests.unit.golden import compare as golden
from tests.unit.golden.reports import named, report, without

PROBLEM = {
    "rule": "queue-quota",
    "level": "mandatory",
    "subject": "queue all in research",
    "path": "kai-fleet:teams.research.queues.all",
    "message": "guarantees 5 GPUs of 4; write 4",
}


def edited():
    """One of everything: a version, a share, a renamed queue, a bound, a secret, a team gone."""
    record = without(golden.record(), "dev")
    release = named(record, "research-kai-release")["inputs"]
    release["version"] = "v0.14.7"
    named(record, "research-kai-ready")["inputs"]["environment"]["KAI_VERSION"] = "v0.14.7"
    named(record, "research-queues-train")["inputs"]["spec"]["resources"]["gpu"]["quota"] = 2.5
    named(record, "research-gpus")["inputs"]["spec"]["hard"]["requests.nvidia.com/gpu"] = "6"
    queue = named(record, "research-queues-serve")
    queue["name"] = "research-queues-inference"
    queue["urn"] = queue["urn"].replace("queues-serve", "queues-inference")
    queue["inputs"]["metadata"]["name"] = "inference"
    return record


@pytest.mark.parametrize("format", ["txt", "json", "md"])
def test_a_diff_in_each_format(format):
    secrets = ({"kai-fleet:cluster.kubeconfig": "v1:a"}, {"kai-fleet:cluster.kubeconfig": "v1:b"})
    found = report(edited(), secrets=secrets)
    assert found.exit_code == 3
    text = {
        "txt": lambda: golden.shown(as_text.show_diff, found),
        "json": lambda: json.dumps(found.record(), indent=2, ensure_ascii=False) + "\n",
        "md": lambda: as_markdown.diff_page(found),
    }[format]()
    golden.check(f"diff.{format}", text)


@pytest.mark.parametrize(
    ("state", "more"),
    [
        (BaseState.NO_PLAN, {}),
        (BaseState.REFUSED, {"problems": golden.problems([PROBLEM])}),
        (BaseState.FAILED, {"error": "ModuleNotFoundError: No module named 'old'"}),
    ],
)
def test_a_base_without_a_plan_shows_the_stack_instead(state, more):
    found = report(golden.record(), (), state=state, **more)
    golden.check(
        f"base-{state}.md", as_markdown.diff_page(found) + golden.shown(as_text.show_diff, found)
    )
    assert found.record()["created"] == []
    assert found.exit_code == (3 if state is BaseState.NO_PLAN else 1)


def test_nothing_changes():
    found = report(golden.record())
    assert (found.exit_code, found.sentences) == (0, [])
    assert "Stack lab: nothing changes" in as_markdown.diff_page(found)
    assert golden.shown(as_text.show_diff, found).endswith("nothing changes\n")


def test_a_refused_work_tree_is_not_taken_for_an_empty_one():
    found = report({"stack": "lab", "resources": [], "problems": [PROBLEM]})
    page = as_markdown.diff_page(found)
    assert found.exit_code == 1
    assert found.record()["deleted"] == []
    assert "guarantees 5 GPUs of 4; write 4" in page
    assert "The rules refuse the stack as it is now" in page


def test_the_same_secret_text_is_no_change_and_unknown_values_neither():
    record = golden.record()
    same = golden.resources(record["resources"])
    assert difference(same, same).same
    provider = next(i for i in record["resources"] if "kubeconfig" in i["inputs"])
    assert provider["inputs"]["kubeconfig"] == "[secret]"
    provider["inputs"]["kubeconfig"] = None
    page = json.dumps(report(record).record())
    assert '"old": "[secret]"' in page
    assert "v1:abc" not in page


def test_fields_of_lists_and_dotted_keys_are_named():
    def resource(inputs):
        return Registered("urn::a", "kubernetes:v1:X", "a", "", "", inputs)

    old = {"list": [1, {"a": 1}], "long": [1], "labels": {"a/b": "x"}, "on": True, "gone": {"k": 1}}
    new = {"list": [1, {"a": 2}], "long": [1, 2], "labels": {"a/b": "y"}, "on": 1}
    (change,) = difference([resource(old)], [resource(new)]).changed
    assert [(f.path, f.old, f.new) for f in change.fields] == [
        ("gone.k", 1, None),
        ("labels.[a/b]", "x", "y"),
        ("list[1].a", 1, 2),
        ("long", [1], [1, 2]),
        ("on", True, 1),
    ]


def test_of_a_text_the_lines_that_differ_are_named():
    def told(text):
        return [Registered("u::c", "t", "c", "", "", {"data": {"a.yml": text}})]

    found = difference(told("for: 15m\nlabels: x\n"), told("for: 30m\nlabels: x\nmore: y\n"))
    (change,) = found.changed
    assert [(item.path, item.old, item.new) for item in change.fields] == [
        ("data.[a.yml] line 1", "for: 15m", "for: 30m"),
        ("data.[a.yml] line 3", None, "more: y"),
    ]


def test_a_huge_diff_fits_into_a_comment():
    base = golden.record()
    queue = named(base, "research-queues-serve")
    now = copy.deepcopy(base)
    for number in range(3000):
        more = copy.deepcopy(queue)
        more["name"] = f"research-queues-{number}"
        more["urn"] = f"{queue['urn']}{number}"
        more["inputs"]["metadata"]["name"] = f"q{number}"
        now["resources"].append(more)
    page = as_markdown.diff_page(report(now, base["resources"]))
    assert len(page) < 60_000
    assert "3000 resources created" in page
    assert "and 2900 resources more" in page
    back = as_markdown.diff_page(report(base, now["resources"]))
    assert len(back) < 60_000


def test_a_changed_tree_and_changed_pools_are_drawn_before_and_after():
    record = golden.record()
    page = as_markdown.diff_page(report(without(record, "dev")))
    pools = page.partition("GPUs by node pool, before and after")[2].partition("</details>")[0]
    before, _, after = pools.partition("After:")
    assert '"dev<br>' in before and '"dev<br>' not in after
    assert "Queues of" not in page, "no queue changes"
    assert "mermaid" not in as_markdown.diff_page(report(record))


def test_what_a_team_loses_when_it_goes_is_said():
    page = as_markdown.diff_page(report(without(golden.record(), "dev")))
    assert "every pod and volume in it" in page


def test_a_long_value_is_shown_from_where_it_changes():
    record = golden.record()
    expression = "x" * 500
    for rest, plan in (("serve", record), ("eval, serve", changed := copy.deepcopy(record))):
        named(plan, "research-kai-ready")["inputs"]["create"] = f"{expression}: {rest}"
    page = as_markdown.diff_page(report(changed, record["resources"]))
    assert f"| `…{'x' * 38}: serve` | `…{'x' * 38}: eval, serve` |" in page


@pytest.mark.parametrize("same", [0, 21, 39, 41, 80, 300])
@pytest.mark.parametrize("most", [60, 120])
def test_what_changes_is_in_what_is_shown(same, most):
    old, new = FieldChange("spec", "x" * same + "A", "x" * same + "B" + "y" * 40).shown(most)
    assert ("A" in old, "B" in new) == (True, True)
    assert ("…" in old + new) == (same + 41 > most)


@pytest.mark.parametrize(
    "page",
    [lambda found: golden.shown(as_text.show_diff, found), as_markdown.diff_page],
)
def test_no_value_of_a_file_moves_the_terminal_or_turns_the_text_of_who_reviews_it(page):
    """It could take away the lines above, or show other words than the cluster gets."""
    record = golden.record()
    hiding = "\x1b[1A\x1b[2Kgood\u202e\x07"
    named(record, "research-namespace")["inputs"]["metadata"]["annotations"] = {
        "example.com/a": hiding
    }
    release = named(record, "research-release")["inputs"]
    release["values"]["controlPlane"] = {"service": {"annotations": {f"b{hiding}": hiding}}}
    record["problems"] = [PROBLEM | {"path": hiding, "subject": hiding, "message": hiding}]
    text = page(report(record))
    assert "good" in text
    assert not set(text) & set(hiding) - set("[1A2Kgod")
