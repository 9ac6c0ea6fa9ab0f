"""Edits of a stack file against a commit of real git history."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from kai_fleet_cli.diff.base import BaseState, planning
from kai_fleet_cli.diff.changes import difference
from kai_fleet_cli.diff.consequences import Hazard, by_hazard
from kai_fleet_cli.diff.report import DiffReport, refusals
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.plan import offline
from kai_fleet_cli.stack_file.reading import beside
from tests.unit.golden import compare, history
from tests.unit.golden.history import GOOD, git
from tests.unit.golden.reports import in_words, sealed

VISION = """\
    vision:
      scheduler: {mode: virtual, version: v0.14.7}
      nodePool: {pool: vision}
      gpus: 2
      queues: {all: {cpu: {quota: 1}, memory: {quota: 1G}, gpu: {quota: 2}}}
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    yield from history.made(
        tmp_path_factory.mktemp("scratch"), tmp_path_factory.mktemp("repository")
    )


@pytest.fixture(scope="module")
def good(repository):
    """The plan at `good`, made once by the code there."""
    with planning(repository.project, "good", "lab") as planned:
        base = planned()
    assert base.state is BaseState.PLANNED
    assert base.commit == git(repository.top, "rev-parse", "good")
    assert [it.path for it in base.secrets] == ["other:token"]
    return replace(base, secrets=())


@pytest.fixture
def edited(repository, good, tmp_path):
    """The report for another text of the stack file, against `good`."""

    def report(text):
        file = tmp_path / "Pulumi.lab.yaml"
        file.write_text(text)
        refused = refusals("lab", file, good.resources)
        now = offline.plan("lab", file)
        found = DiffReport("lab", good, now, refusals=refused, beside=beside(file))
        return found, list(map(in_words, found.sentences))

    return report


def test_a_version_switch(edited):
    found, (sentence,) = edited(GOOD.replace("v0.7.11", "v0.9.3"))
    assert found.exit_code == 3
    assert sentence.startswith("research: KAI v0.7.11 → v0.9.3, replaced, its 3 queues are re-decl")
    assert "the new chart has kai-operator" in sentence
    assert found.untouched == ["ml"]
    assert "research-kai-release" in {change.name for change in found.difference.replaced}


def test_a_quota_change(edited):
    found, (sentence,) = edited(
        GOOD.replace("gpu: {quota: 3}", "gpu: {quota: 2, limit: 3}").replace(
            "cpu: {quota: 2}, ", ""
        )
    )
    assert sentence == (
        "research: queue alpha: gpu quota 3 → 2, gpu limit unlimited → 3; queue beta: cpu quota"
        " 2 → 0"
    )
    assert not found.difference.replaced


def test_a_team_added(edited):
    found, (sentence,) = edited(GOOD + VISION)
    assert sentence == (
        "vision: new team in mode virtual with KAI v0.14.7, vCluster v0.36.1 on nodes pool=vision,"
        " 2 GPUs, 1 queue"
    )
    assert {change.team for change in found.difference.created} == {"vision"}
    assert found.untouched == ["ml", "research"]


def test_on_80_columns_no_name_is_broken(edited):
    name = "a-team-of-forty-letters-that-does-it-all"
    found, _ = edited((GOOD + VISION).replace("    vision:", f"    {name}:"))
    out = io.StringIO()
    as_text.show_diff(found, Console(file=out, width=80))
    shown = out.getvalue()
    words = set(shown.split())
    assert {change.name for change in found.difference.created} <= words
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_team_removed(edited):
    """Cut out of the file it stops the update; named, it goes. Either comes before all else."""
    cut = GOOD[: GOOD.index("    research:")]
    found, (refused, sentence) = edited(cut)
    assert sentence == (
        "research: removed: its vCluster, its KAI v0.7.11, 3 queues, and the namespace"
        " team-research with every pod and volume in it"
    )
    assert refused.startswith("team research: is deployed and not in the file any more")
    assert "kai-fleet:removed: [research]" in refused
    assert found.verdict.startswith("the update is refused, ")
    assert found.exit_code == 3
    assert {change.team for change in found.difference.deleted} == {"research"}
    for text in (as_markdown.diff_page(found), compare.shown(as_text.show_diff, found)):
        heads = ("The update refuses this", "Lost with this")
        assert text.index(heads[0]) < text.index(heads[1]) < text.index("research-release")

    page = as_markdown.diff_page(found)
    assert "`kai-fleet:removed: [research]` in the file" in page
    assert "`.venv/bin/fleet up --stack lab --remove-team research`, or" in page

    named, (sentence,) = edited(f"{cut}  kai-fleet:removed: [research]\n")
    assert list(by_hazard(named.sentences)) == [Hazard.LOST]
    assert "refused" not in named.verdict


def test_what_an_update_refuses_is_refused_in_a_diff(edited):
    """The same rules, with the base for what runs: a plan alone has nothing to compare with."""

    def refused(old, new):
        found, _ = edited(GOOD.replace(old, new))
        return [(it.subject, it.text) for it in by_hazard(found.sentences).get(Hazard.REFUSED, ())]

    ((subject, text), *_) = refused("v0.36.1", "v0.34.7")
    assert subject == "vClusters ml and research"
    assert "v0.36.1 → v0.34.7 is a downgrade" in text
    ((subject, text), *_) = refused("{version: v0.36.1}", "{version: v0.36.1, size: 20Gi}")
    assert subject == "vCluster ml"
    assert "kubectl -n team-ml patch pvc data-ml-0" in text
    team = GOOD[GOOD.index("    research:") :]
    grant = "  kai-fleet:teamStacks: {research: {nodePool: {pool: research}, gpus: 4}}\n"
    ((subject, text),) = refused(team, grant)
    assert subject == "team research"
    assert "remove it then (.venv/bin/fleet team remove research --stack STACK;" in text
    page = as_markdown.diff_page(edited(GOOD.replace(team, grant))[0])
    assert "remove it then (`.venv/bin/fleet team remove research --stack STACK`; docs" in page


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "{version: v0.36.1}",
            "{version: v0.36.1, kubernetesVersion: v1.34.4}",
            "Kubernetes unset → v1.34.4, and its API restarts",
        ),
        (
            "{version: v0.36.1}",
            "{version: v0.36.1, values: {controlPlane: {statefulSet: {resources: {limits:"
            " {memory: 8Gi}}}}}}",
            "and its API restarts",
        ),
        ("nodePool: {pool: ml}", "nodePool: {pool: big}", "pool=big, and its API restarts"),
        (
            "version: v0.16.8}",
            "version: v0.16.8, gpuSharing: false}",
            "and KAI's scheduler restarts",
        ),
    ],
)
def test_what_restarts_is_told_before_what_only_changes(edited, old, new, says):
    found, _ = edited(GOOD.replace(old, new).replace("gpus: 4", "gpus: 5", 1))
    groups = by_hazard(found.sentences)
    assert list(groups) == [Hazard.RESTARTS, None]
    assert says in {it.subject: it.text for it in groups[Hazard.RESTARTS]}["ml"]
    assert "GPUs 4 → 5" in {it.subject: it.text for it in groups[None]}["ml"]


def test_what_keeps_teams_apart_and_what_brings_gpus_is_not_lost_in_silence(edited):
    found, _ = edited(f'{GOOD}      isolation: {{level: "off"}}\n')
    (lost,) = by_hazard(found.sentences)[Hazard.LOST]
    assert in_words(lost).startswith("research: its isolation ends")
    with_gpus, _ = edited(f"{GOOD}  kai-fleet:gpu: {{provider: operator}}\n")
    base = replace(found.base, resources=with_gpus.now.resources)
    (lost, *_) = by_hazard(DiffReport("lab", base, found.now).sentences)[Hazard.LOST]
    assert in_words(lost).startswith(
        "host: Release host-gpu-release is removed, and with it what makes"
    )


def test_a_grant_that_comes_back_has_to_be_ended_first(edited, good, tmp_path):
    """The team's own stack runs it, and the platform's would make it once more."""
    team = GOOD[GOOD.index("    research:") :]
    grant = "  kai-fleet:teamStacks: {research: {nodePool: {pool: research}, gpus: 4}}\n"
    found, _ = edited(GOOD.replace(team, grant))
    granted = replace(good, resources=found.now.resources)
    file = tmp_path / "Pulumi.lab.yaml"
    for text, says in (
        (GOOD, "end that first: .venv/bin/fleet destroy --stack lab-research"),
        (GOOD.replace(team, ""), "end that first: .venv/bin/fleet destroy --stack lab-research"),
    ):
        file.write_text(text)
        report = DiffReport("lab", granted, offline.plan("lab", file))
        (refused,) = by_hazard(report.sentences)[Hazard.REFUSED]
        assert refused.subject == "research"
        assert says in refused.text


def test_guards_that_repeat_the_queues_names_are_left_out(edited):
    """Of a renamed queue the table has the queue, and not an expression of a thousand signs."""
    found, _ = edited(GOOD.replace("beta:", "gamma:"))
    kinds = {change.type.rpartition(":")[2] for change in found.difference.changed}
    assert "ValidatingAdmissionPolicy" in kinds
    assert not found.shown.changed
    assert found.left_out == "1 guard repeats the queues' new names"
    for text in (as_markdown.diff_page(found), compare.shown(as_text.show_diff, found)):
        assert "ValidatingAdmissionPolicy" not in text
        assert found.left_out in text
    other, _ = edited(GOOD.replace("beta:", "gamma:").replace("v0.7.11", "v0.9.3"))
    guards = [it for it in other.difference.changed if it.type.endswith("AdmissionPolicy")]
    assert not {it.urn for it in other.shown.changed} & {it.urn for it in guards}


def test_a_crd_that_goes_says_why(edited):
    base, _ = edited(GOOD.replace("v0.7.11", "v0.9.3"))
    old = base.now.resources
    new, _ = edited(GOOD.replace("v0.7.11", "v0.16.8"))
    gone = [
        change
        for change in difference(old, new.now.resources).deleted
        if change.type.endswith("CustomResourceDefinition")
    ]
    assert [change.name for change in gone] == ["research-kai-cluster-policy"]
    assert gone[0].reason.startswith("it was made for KAI v0.9 and v0.10")


def test_the_guards_of_a_switched_team_are_no_news(edited):
    """They know its queues, and from v0.15 that a PodGroup may have them."""
    _, (sentence,) = edited(GOOD.replace("v0.7.11", "v0.16.8"))
    assert sentence.startswith("research: KAI v0.7.11 → v0.16.8")
    assert "ValidatingAdmissionPolicy" not in sentence


def test_a_queue_renamed(edited):
    found, (sentence,) = edited(GOOD.replace("beta:", "gamma:"))
    assert sentence.startswith("research: queue beta becomes gamma (KAI has no renames")
    assert [change.name for change in found.difference.created] == ["research-queues-gamma"]
    assert [change.name for change in found.difference.deleted] == ["research-queues-beta"]


def test_the_mode_changed(edited):
    other = GOOD.replace(
        "scheduler: {mode: virtual, version: v0.16.8}", "scheduler: {mode: default}"
    )
    queues = other[other.index("      queues:") : other.index("    research:")]
    found, (sentence,) = edited(other.replace(queues, "", 1))
    start = "ml: mode virtual → default, and its API restarts; KAI v0.16.8 is removed, with 1 queue"
    assert sentence.startswith(start)
    assert found.untouched == ["research"]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("environment: {values: {environmentVariables: {PYTHONPATH: /tmp}}}\n", "environment"),
        ("secretsprovider: gcpkms://projects/others/key\n", "secretsprovider"),
        ("config:\n  other:url: https://example.com\n", "config.other:url"),
        ("config:\n  other:tags: {1: a, b: c}\n", "config.other:tags"),
    ],
)
def test_what_the_engine_takes_of_the_file_and_no_plan_shows(edited, line, key):
    """Of these `environment` sets variables for the engine and its programs, a kubeconfig too."""
    text = GOOD.replace("config:\n", line, 1) if line.startswith("config:") else line + GOOD
    found, sentences = edited(text)
    (sentence,) = sentences
    assert sentence.startswith(f"Pulumi.lab.yaml: {key} changes, from which the engine takes more")
    assert (found.exit_code, found.verdict) == (3, "1 key beside the plan")


def test_only_a_secret_was_encrypted_anew(edited, good):
    found, sentences = edited(GOOD)
    before = replace(good, secrets=[sealed("other:token", "v1:HIDDEN-ONE")])
    again = DiffReport("lab", before, found.now, [sealed("other:token", "v1:HIDDEN-TWO")])
    assert (sentences, again.difference.same, again.exit_code) == ([], True, 3)
