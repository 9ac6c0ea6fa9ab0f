"""The plan's formats, and its Mermaid text as Mermaid itself reads it."""

import os
import subprocess
import sys

import pytest

from kai_fleet.values import UNKNOWN
from kai_fleet_cli.diff.changes import SummaryLine
from kai_fleet_cli.diff.report import Base, DiffReport
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.display.as_markdown import queue_flowchart
from kai_fleet_cli.plan import offline
from kai_fleet_cli.stack_file.reading import ROOT
from kai_fleet_policies.finding import Finding, Level
from kai_fleet_policies.model.queues import DeclaredQueue, QueueShare
from tests.unit.golden import compare as golden

# Of a shell whose state a plan does not read.
SHELL = {"PYTHONHASHSEED": "7", "LC_ALL": "C", "COLUMNS": "30"}
SHELL |= {"PULUMI_BACKEND_URL": "file:///nowhere", "PULUMI_CONFIG_PASSPHRASE": "sandbox"}


@pytest.mark.parametrize("format", ["txt", "json", "md"])
def test_a_plan_in_each_format(format):
    kept = golden.plan_of(golden.record())
    text = {
        "txt": lambda: golden.shown(as_text.show_plan, kept),
        "json": lambda: kept.json() + "\n",
        "md": lambda: as_markdown.plan_page(kept),
    }[format]()
    golden.check(f"plan.{format}", text)


def test_the_same_stack_gives_the_same_bytes_in_another_process():
    ran = subprocess.run(
        [sys.executable, "-m", "kai_fleet_cli", "plan", "--stack", "prod", "--format", "markdown"],
        cwd=ROOT,
        env={**os.environ, **SHELL},
        capture_output=True,
        check=True,
    )
    assert ran.stdout.decode() == as_markdown.plan_page(offline.plan("prod"))


def test_a_refused_stack_shows_its_problems_only():
    place = ("kai-fleet:teams.ml", "queue", "a in ml")
    problem = Finding(Level.MANDATORY, *place, "is | <b>too</b> @much", check="queue-quota")
    page = as_markdown.plan_page(offline.Plan("lab", problems=(problem,)))
    assert "**refused**: 0 resources, 1 problem, 0 warnings" in page
    assert "- **refused** `queue-quota` `kai-fleet:teams.ml`<br>" in page
    assert r"is \| \<b\>too\</b\> \@much" in page
    assert "### Teams" not in page


def test_only_commands_of_a_finding_are_code():
    fix = "ask `@ann`, or `kubectl get *`"
    commands = ("kubectl get *",)
    subject = ("", "queue", "a in ml")
    problem = Finding(Level.MANDATORY, *subject, "is off", fix, "queue-quota", commands=commands)
    page = as_markdown.plan_page(offline.Plan("lab", problems=(problem,)))
    assert r"queue a in ml: is off; ask \`\@ann\`, or `kubectl get *`" in page


def test_the_command_that_lists_contexts_is_code():
    page = as_markdown.plan_page(offline.plan_settings({"cluster": {"name": "lab"}}))
    assert "with a name from `kubectl config get-contexts`, or kind: {}" in page


def test_the_command_of_a_refusal_is_code_in_a_diff():
    words = "is gone; ask `@ann`, or run `kubectl get *` [team-removal]"
    line = SummaryLine("host", "team ml", words, ("kubectl get *",))
    report = DiffReport(
        "lab", Base("main", "0" * 40), offline.Plan("lab"), summary={"refused": [line]}
    )
    page = as_markdown.diff_page(report)
    assert r"team ml is gone; ask \`\@ann\`, or run `kubectl get *` \[team-removal\]" in page
    assert report.record()["refused"] == [{"team": "host", "subject": "team ml", "words": words}]


def test_shares_that_only_the_update_knows_are_not_drawn_as_none():
    drawn = queue_flowchart([DeclaredQueue("q", shares=UNKNOWN)])
    assert "<br>gpu not known yet, limit not known yet" in drawn
    assert "0" not in drawn.replace("q0", "")


def test_names_that_mermaid_would_read_as_its_own_are_escaped():
    shares = {"gpu": QueueShare(0.5, 1.0, 2.0)}
    drawn = queue_flowchart([DeclaredQueue(name, None, shares) for name in ('q"uote', "x<y>&z;#")])
    assert '"q#quot;uote<br>gpu 0.5, limit 1, weight 2<br>' in drawn
    assert '"x#lt;y#gt;#amp;z;#35;<br>gpu 0.5' in drawn
