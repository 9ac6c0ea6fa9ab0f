"""The plan's formats, and its Mermaid text as Mermaid itself reads it."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from kai_fleet.finding import Finding, Level
from kai_fleet.fleet.queues import DeclaredQueue, QueueShare
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.plan import offline, summary
from kai_fleet_cli.plan.picture import picture
from kai_fleet_cli.stack_file.reading import ROOT, stacks
from sandbox.tools.toolbox import cache_root
from tests.unit.golden import compare as golden

HERE = Path(__file__).parent

NPM_PACKAGES = ("mermaid@11.17.2", "jsdom@26.1.0")  # jsdom: Mermaid asks for a document
HOST_MODE = """\
config:
  kai-fleet:cluster: {name: lab, context: lab}
  kai-fleet:kai: {version: v0.16.8}
  kai-fleet:queues:
    all: {cpu: {quota: unlimited}, memory: {quota: unlimited}, gpu: {quota: 5}}
  kai-fleet:teams:
    a: {scheduler: {mode: host}, queue: all, gpus: 4}
    b: {scheduler: {mode: host}, queue: all, gpus: 2}
"""


@pytest.mark.parametrize("format", ["txt", "details.txt", "json", "yaml", "md"])
def test_a_plan_in_each_format(format):
    kept = golden.plan_of(golden.record())
    text = {
        "txt": lambda: golden.shown(as_text.show_plan, kept),
        "details.txt": lambda: golden.shown(partial(as_text.show_plan, details=True), kept),
        "json": lambda: kept.json() + "\n",
        "yaml": kept.yaml,
        "md": lambda: as_markdown.plan_page(kept),
    }[format]()
    golden.check(f"plan.{format}", text)


def test_yaml_says_what_json_says():
    found = offline.plan("prod")
    assert yaml.safe_load(found.yaml()) == json.loads(found.json())
    assert "&id" not in found.yaml()


def test_colours_are_for_terminals_and_not_with_no_color(monkeypatch):
    kept = golden.plan_of(golden.record())
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32mfine" in golden.shown(as_text.show_plan, kept, terminal=True)
    assert "\x1b[" not in golden.shown(as_text.show_plan, kept)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in golden.shown(as_text.show_plan, kept, terminal=True)


def test_the_same_stack_gives_the_same_bytes_in_another_process():
    ran = subprocess.run(
        [sys.executable, "-m", "kai_fleet_cli", "plan", "--stack", "prod", "--format", "markdown"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7", "LC_ALL": "C", "COLUMNS": "30"},
        capture_output=True,
        check=True,
    )
    assert ran.stdout.decode() == as_markdown.plan_page(offline.plan("prod"))


def test_teams_of_one_host_scheduler_share_its_guarantees(tmp_path):
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text(HOST_MODE)
    found = offline.plan("lab", file)
    page = as_markdown.plan_page(found)
    assert "| any node (host's KAI) | a, b | 6 | 5 | 1 |" in page
    assert "The host runs KAI `v0.16.8` (supported until 2027-06-30)." in page
    assert '"all<br>gpu 5, limit 6"' in page


def test_promising_more_than_there_is_stands_out():
    record = golden.record()
    for item in record["resources"]:
        if item["type"].endswith("ResourceQuota") and item["name"].startswith("research"):
            item["inputs"]["spec"]["hard"] = {"requests.nvidia.com/gpu": "3"}
    page = as_markdown.plan_page(golden.plan_of(record))
    assert "| `pool=research` | research | 3 | 4 | **1 too many** |" in page


def test_a_refused_stack_shows_its_problems_only():
    place = ("kai-fleet:teams.ml", "queue", "a in ml")
    problem = Finding(Level.MANDATORY, *place, "is | <b>too</b> @much", check="queue-quota")
    page = as_markdown.plan_page(offline.Plan("lab", problems=(problem,)))
    assert "**refused**: 0 resources, 1 problem, 0 warnings" in page
    assert "- **refused** `queue-quota` `kai-fleet:teams.ml`<br>" in page
    assert r"is \| \<b\>too\</b\> \@much" in page
    assert "### Teams" not in page


def test_an_odd_tree_is_drawn_all_the_same():
    queues = [
        DeclaredQueue("a", "b"),
        DeclaredQueue("b", "a"),
        DeclaredQueue("c", "nosuch"),
        DeclaredQueue("c", None),
    ]
    drawn = summary.queue_flowchart(queues)
    assert [drawn.count(f'"{name}<br>') for name in "abc"] == [1, 1, 1]


@pytest.fixture(scope="module")
def mermaid_parser():
    """Mermaid's own parser under node; installed once, into the folder of the tools."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Mermaid's parser is JavaScript: node and npm are not on PATH")
    folder = cache_root() / "tools" / "-".join(NPM_PACKAGES).replace("@", "-")
    if not (folder / "node_modules" / ".package-lock.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        installed = subprocess.run(
            [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", *NPM_PACKAGES],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if installed.returncode != 0:
            pytest.skip(f"npm cannot install Mermaid here: {installed.stderr.strip()[-300:]}")

    def parse(diagrams):
        """For each diagram: the edges and labels that Mermaid reads, or its error."""
        ran = subprocess.run(
            [node, HERE / "golden" / "parse_mermaid.mjs", folder],
            input=json.dumps(diagrams),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    return parse


@pytest.mark.engine  # installs from npm: needs a network the first time
def test_mermaid_reads_every_tree_as_it_is_meant(mermaid_parser):
    diagrams, trees = [], []
    for stack in stacks():
        seen = picture(offline.plan(stack).resources)
        for queues in seen.trees().values():
            diagrams.append(summary.queue_flowchart(queues))
            trees.append({(q.parent, q.name) for q in queues})
    odd = [
        DeclaredQueue(name, None, {"gpu": QueueShare(0.5, 1.0, 2.0)})
        for name in ("end", "graph", "a.b-c", "1", 'q"uote', "x<y>&z", "style", "`md`", "semi;#")
    ]
    diagrams.append(summary.queue_flowchart(odd))
    trees.append({(None, q.name) for q in odd})
    diagrams.append('flowchart TD\n  q0["broken')

    drawn_pools = [
        summary.pool_flowchart(picture(offline.plan(stack).resources).teams.values())
        for stack in stacks()
    ]
    assert not any("error" in found for found in mermaid_parser(drawn_pools))

    *read, broken = mermaid_parser(diagrams)
    assert "error" in broken, "the parser would accept anything"
    for found, tree in zip(read, trees, strict=True):
        assert "error" not in found, found
        names = {key: label.split("<br>")[0] for key, label in found["labels"].items()}
        assert set(names.values()) == {name for _, name in tree}
        edges = {(names[start], names[end]) for start, end in found["edges"]}
        assert edges == {(parent, name) for parent, name in tree if parent is not None}
