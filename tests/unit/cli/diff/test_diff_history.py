"""Edits of a stack file against a commit of real git history."""

from dataclasses import replace

import pytest

from kai_fleet_cli.diff.report import base_at, report
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.plan import offline
from tests.unit.golden import compare, history
from tests.unit.golden.history import GOOD, git
from tests.unit.golden.reports import sealed

VISION = """\
    vision:
      scheduler: {mode: virtual, version: v0.14.7}
      nodePool: {pool: vision}
      gpus: 2
      queues: {all: {cpu: {quota: 1}, memory: {quota: 1G}, gpu: {quota: 2}}}
"""
REMOVED = "  kai-fleet:removed: [research]\n"
CUT = GOOD[: GOOD.index("    research:")]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    yield from history.created(
        tmp_path_factory.mktemp("scratch"), tmp_path_factory.mktemp("repository")
    )


@pytest.fixture(scope="module")
def good(repository):
    """The plan at `good`, made once by the code there."""
    base = base_at(repository.project, "good", "lab")
    assert (base.error, base.is_new) == ("", False)
    assert base.commit == git(repository.top, "rev-parse", "good")
    assert [item.path for item in base.secrets] == ["other:token"]
    return replace(base, secrets=())


@pytest.fixture
def edited(good, tmp_path):
    """The report for another text of the stack file, against `good`."""

    def compared(text, base=good):
        file = tmp_path / "Pulumi.lab.yaml"
        file.write_text(text)
        return report(base, offline.plan("lab", file), file)

    return compared


def lines(found, part):
    return [f"{item.team}: {item.subject} {item.words}" for item in found.summary[part]]


@pytest.mark.parametrize(
    ("old", "new", "part", "says"),
    [
        ("v0.7.11", "v0.9.3", "restarted", "research-kai-release restarts KAI; queues and running"),
        ("pool: ml}", "pool: big}", "restarted", "ml: Release ml-release restarts its API, values"),
        ("v0.16.8}", "v0.16.8, gpuSharing: false}", "restarted", "restarts KAI"),
        ("gpu: {quota: 3}", "gpu: {quota: 2}", "changed", "Queue alpha gpu.quota 3 → 2"),
        ("v0.36.1}", "v0.36.1, size: 20Gi}", "restarted", "volumeClaim.size unset → 20Gi"),
        ("beta:", "gamma:", "lost", "research: Queue beta goes: pods that name it are no longer"),
        ("beta:", "gamma:", "changed", "ValidatingAdmissionPolicy research-guard-policy changes"),
        ("gpus: 4", "gpus: 5", "changed", "ResourceQuota ml-gpus hard.[requests.nvidia.com/gpu] 4"),
        ("    ml:\n", "    ml:\n      isolation: {level: 'off'}\n", "lost", "is isolated no more"),
        (GOOD[len(CUT) :], VISION + REMOVED, "changed", "vision: team vision is created, with"),
        (GOOD, CUT + REMOVED, "lost", "goes with its pods and volumes"),
    ],
)
def test_what_follows_from_an_edit(edited, old, new, part, says):
    found = edited(GOOD.replace(old, new))
    assert found.exit_code == 3
    assert [line for line in lines(found, part) if says in line], found.summary


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("v0.36.1", "v0.34.7", "v0.36.1 → v0.34.7 is a downgrade"),
        ("v0.36.1}", "v0.36.1, kubernetesVersion: v1.35.0}", "write v1.36.0"),
        ("v0.36.1}", "v0.36.1, size: 4Gi}", "change from 5Gi to 4Gi, and the volume is made"),
        (GOOD, CUT, "kai-fleet:removed: [research]"),
    ],
)
def test_what_an_update_refuses_is_refused_in_a_diff(edited, old, new, says):
    """The same rules, with the base for what runs: a plan alone has nothing to compare with."""
    found = edited(GOOD.replace(old, new))
    assert says in lines(found, "refused")[0]
    assert (found.exit_code, found.verdict) == (1, "refused")
    for text in (as_markdown.diff_page(found), compare.shown(as_text.show_diff, found)):
        assert text.index("The update refuses this") < text.index("-release")


def test_a_diff_says_what_high_availability_takes(edited):
    """In the sentence of a plan. The rule about its store refuses it, which is another line."""
    takes = "has 3 control planes that request 200m CPU and 256Mi each, and 3 etcd members"
    found = edited(GOOD.replace("v0.36.1}", "v0.36.1, availability: high}"))
    assert f"ml: Release ml-release {takes}" in "\n".join(lines(found, "changed"))
    found = edited(GOOD.replace("v0.36.1}", "v0.36.1, replicas: 1}"))
    assert "control planes" not in "\n".join(lines(found, "changed"))


def test_a_changed_tree_is_drawn_before_and_after(edited):
    page = as_markdown.diff_page(edited(GOOD.replace("beta:", "gamma:")))
    trees = page.partition("Queues of research, before and after")[2].partition("</details>")[0]
    before, _, after = trees.partition("After:")
    assert "beta<br>" in before and "beta<br>" not in after and "gamma<br>" in after
    assert "Queues of ml" not in page
    assert "mermaid" not in as_markdown.diff_page(edited(GOOD.replace("v0.7.11", "v0.9.3")))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("environment: {values: {environmentVariables: {PYTHONPATH: /tmp}}}\n", "environment"),
        ("config:\n  other:url: https://example.com\n", "config.other:url"),
    ],
)
def test_what_the_engine_takes_of_the_file_and_no_plan_shows(edited, line, key):
    """Of these `environment` sets variables for the engine and its programs, a kubeconfig too."""
    text = GOOD.replace("config:\n", line, 1) if line.startswith("config:") else line + GOOD
    found = edited(text)
    (item,) = lines(found, "changed")
    assert item.startswith(f"host: Pulumi.lab.yaml {key} changes, from which the engine takes more")
    assert found.exit_code == 3


def test_only_a_secret_was_encrypted_anew(edited, good):
    before = replace(good, secrets=[sealed("other:token", "v1:HIDDEN-ONE")])
    found = edited(f"{GOOD}  other:token: {{secure: v1:HIDDEN-TWO}}\n", before)
    (line,) = lines(found, "secret")
    assert line == "host: other:token is encrypted anew: only the engine can say if it changed"
    assert (found.exit_code, found.verdict, list(found.changes)) == (3, "1 secret", [])
    assert "HIDDEN" not in as_markdown.diff_page(found)
