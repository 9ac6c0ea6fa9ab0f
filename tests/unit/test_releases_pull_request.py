"""The script that proposes new releases, run by node against a GitHub of its own."""

import json
import os
import shutil
import subprocess

import pytest
import yaml

from kai_fleet_cli.commands.releases import UNTESTED
from kai_fleet_cli.stack_file.reading import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "releases.yml"
FAKE_GITHUB = """\
const state = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const refused = (status) => Object.assign(new Error('refused'), { status });
const rest = {
  pulls: {
    list: 'list',
    create: async ({ title, body, head, base }) => {
      if (state.forbidden) throw refused(403);
      state.pulls.push({ number: state.pulls.length + 1, state: 'open', title, body, head, base });
    },
    update: async ({ pull_number, title, body }) => {
      Object.assign(state.pulls.find((one) => one.number === pull_number), { title, body });
    },
  },
  git: {
    createTree: async ({ base_tree, tree }) => {
      state.tree = { base_tree, tree };
      return { data: { sha: 'tree' } };
    },
    createCommit: async ({ message, parents }) => {
      state.commit = { message, parents };
      return { data: { sha: 'commit' } };
    },
    createRef: async ({ ref }) => {
      if (state.refs.includes(ref)) throw refused(422);
      state.refs.push(ref);
    },
    updateRef: async ({ ref, force }) => { state.moved = { ref, force }; },
  },
};
const github = { paginate: async () => state.pulls, rest };
const core = {
  warning: (text) => state.warnings.push(text),
  setFailed: (text) => { state.failed = text; },
};
const context = { repo: { owner: 'o', repo: 'r' }, sha: 'head', ref: 'refs/heads/main' };
require('./script.js')(github, context, core)
  .then(() => process.stdout.write(JSON.stringify(state)));
"""


@pytest.fixture
def weekly(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("the script is JavaScript: node is not on PATH")
    job = yaml.safe_load(WORKFLOW.read_text())["jobs"]["propose"]
    script = job["steps"][-1]["with"]["script"]
    (tmp_path / "script.js").write_text(
        f"module.exports = async (github, context, core) => {{\n{script}\n}};"
    )
    (tmp_path / "run.js").write_text(FAKE_GITHUB)

    def run(newer, known=None, silent="", **state):
        upstream = [{"project": name, "newer": it, "silent": silent} for name, it in newer.items()]
        found = {"known": {}, "seen": known or {}, "upstream": upstream}
        given = {"pulls": [], "refs": [], "warnings": [], **state}
        done = subprocess.run(
            [node, "run.js"],
            cwd=tmp_path,
            env={**os.environ, "FOUND": json.dumps(found)},
            input=json.dumps(given),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def written(state):
    """The file that the commit holds."""
    (entry,) = state["tree"]["tree"]
    assert entry["path"] == str(UNTESTED.relative_to(ROOT))
    return json.loads(entry["content"])


def test_a_pull_request_lists_what_nobody_tried(weekly):
    state = weekly({"KAI": ["v0.16.9"], "vCluster": []})
    (pull,) = state["pulls"]
    assert (pull["title"], pull["base"]) == ("New upstream: KAI v0.16.9", "main")
    assert pull["head"] == "releases/upstream" and state["refs"] == ["refs/heads/releases/upstream"]
    assert "Nobody has tried them" in pull["body"] and "- KAI v0.16.9" in pull["body"]
    assert state["tree"]["base_tree"] == "head" and state["commit"]["parents"] == ["head"]
    assert written(state) == {"KAI": ["v0.16.9"], "vCluster": []}


def test_it_is_kept_up_to_date_and_not_repeated(weekly):
    first = weekly({"KAI": ["v0.16.9"], "vCluster": []})
    again = weekly({"KAI": ["v0.16.9"], "vCluster": []}, pulls=first["pulls"])
    assert again["pulls"] == first["pulls"] and "tree" not in again
    newer = {"KAI": ["v0.16.9"], "vCluster": ["v0.37.0"]}
    later = weekly(newer, pulls=first["pulls"], refs=first["refs"])
    assert [one["title"] for one in later["pulls"]] == [
        "New upstream: KAI v0.16.9, vCluster v0.37.0"
    ]
    assert later["moved"] == {"ref": "heads/releases/upstream", "force": True}
    closed = [{**first["pulls"][0], "state": "closed"}]
    assert weekly({"KAI": ["v0.16.9"]}, pulls=closed)["pulls"] == closed


def test_what_is_listed_already_or_cannot_be_asked_opens_nothing(weekly):
    assert weekly({"KAI": [], "vCluster": []})["pulls"] == []
    assert weekly({"KAI": ["v0.16.9"]}, known={"KAI": ["v0.16.9"]})["pulls"] == []
    silent = weekly({"KAI": []}, known={"KAI": ["v0.16.9"]}, silent="ghcr.io cannot be reached")
    assert silent["pulls"] == [] and silent["warnings"] == ["KAI: ghcr.io cannot be reached"]


def test_what_looks_like_no_version_is_not_written(weekly):
    assert weekly({"KAI": ["v1.0.0 @everyone", "](https://example.org)"]})["pulls"] == []


def test_where_workflows_may_open_none_the_run_says_what_to_allow(weekly):
    state = weekly({"KAI": ["v0.16.9"]}, forbidden=True)
    assert "Allow GitHub Actions to create and approve pull requests" in state["failed"]
