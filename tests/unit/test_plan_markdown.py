"""The plan's formats, and its Mermaid text as Mermaid itself reads it."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from kai_fleet.fleet.queues import DeclaredQueue, QueueShare
from kai_fleet_cli.display import as_markdown, as_text
from kai_fleet_cli.display.queue_trees import queue_flowchart
from kai_fleet_cli.plan import offline
from kai_fleet_cli.plan.picture import picture
from kai_fleet_cli.stack_file.reading import ROOT, stacks
from kai_fleet_policies.problem import mandatory
from sandbox.tools.toolbox import cache_root
from tests.unit.golden import compare as golden

HERE = Path(__file__).parent

NPM_PACKAGES = ("mermaid@11.17.2", "jsdom@26.1.0")  # jsdom: Mermaid asks for a document


@pytest.mark.parametrize("format", ["txt", "details.txt", "json", "md"])
def test_a_plan_in_each_format(format):
    kept = golden.plan_of(golden.record())
    text = {
        "txt": lambda: golden.shown(as_text.show_plan, kept),
        "details.txt": lambda: golden.shown(partial(as_text.show_plan, details=True), kept),
        "json": lambda: kept.json() + "\n",
        "md": lambda: as_markdown.plan_page(kept),
    }[format]()
    golden.check(f"plan.{format}", text)


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


def test_a_refused_stack_shows_its_problems_only():
    problem = mandatory(
        "queue a in ml", "kai-fleet:teams.ml", "is | <b>too</b> @much", "queue-quota"
    )
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
    drawn = queue_flowchart(queues)
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
        for queues in seen.trees.values():
            diagrams.append(queue_flowchart(queues))
            trees.append({(q.parent, q.name) for q in queues})
    odd = [
        DeclaredQueue(name, None, {"gpu": QueueShare(0.5, 1.0, 2.0)})
        for name in ("end", "graph", "a.b-c", "1", 'q"uote', "x<y>&z", "style", "`md`", "semi;#")
    ]
    diagrams.append(queue_flowchart(odd))
    trees.append({(None, q.name) for q in odd})
    diagrams.append('flowchart TD\n  q0["broken')

    *read, broken = mermaid_parser(diagrams)
    assert "error" in broken, "the parser would accept anything"
    for found, tree in zip(read, trees, strict=True):
        assert "error" not in found, found
        names = {key: label.split("<br>")[0] for key, label in found["labels"].items()}
        assert set(names.values()) == {name for _, name in tree}
        edges = {(names[start], names[end]) for start, end in found["edges"]}
        assert edges == {(parent, name) for parent, name in tree if parent is not None}
