"""The script that writes a pull request's comment, run by node against a GitHub of its own."""

import json
import shutil
import subprocess

import pytest
import yaml

from kai_fleet_cli.stack_file.reading import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "preview-comment.yml"


@pytest.fixture
def comment(tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("the script is JavaScript: node is not on PATH")
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    script = job["steps"][-1]["with"]["script"]
    (tmp_path / "script.js").write_text(
        f"module.exports = async (github, context, core) => {{\n{script}\n}};"
    )
    (tmp_path / "run.js").write_text(FAKE_GITHUB)

    def run(
        pages,
        comments=(),
        pulls=({"number": 7, "head": {"sha": "abc"}},),
        conclusion="success",
        folders=None,
    ):
        # As actions/download-artifact v8 extracts what a pattern matches, unless it is said.
        folders = len(pages) > 1 if folders is None else folders
        shutil.rmtree(tmp_path / "diffs", ignore_errors=True)
        for name, page in pages.items():
            folder = tmp_path / "diffs" / (f"diff-{name}" if folders else "")
            folder.mkdir(parents=True, exist_ok=True)
            if isinstance(page, str):
                (folder / f"{name}.md").write_text(page)
            else:
                (folder / f"{name}.md").symlink_to(page)
        state = {"comments": list(comments), "pulls": list(pulls), "conclusion": conclusion}
        done = subprocess.run(
            [node, "run.js"],
            cwd=tmp_path,
            input=json.dumps(state),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


FAKE_GITHUB = """\
const state = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const calls = [];
const github = {
  paginate: async (what, asked) => { calls.push(['list', asked]); return state[what]; },
  rest: {
    pulls: { list: 'pulls' },
    issues: {
      listComments: 'comments',
      createComment: async (asked) => {
        calls.push(['create', asked]);
        const user = { type: 'Bot' };
        state.comments.push({ id: 1, user, body: asked.body, on: asked.issue_number });
      },
      updateComment: async (asked) => {
        calls.push(['update', asked]);
        state.comments.find((one) => one.id === asked.comment_id).body = asked.body;
      },
    },
  },
};
const context = {
  repo: { owner: 'o', repo: 'r' },
  payload: { workflow_run: {
    head_repository: { owner: { login: 'someone' } }, head_branch: 'topic', head_sha: 'abc',
    html_url: 'https://example.org/run', conclusion: state.conclusion,
  } },
};
require('./script.js')(github, context, { info: () => {} })
  .then(() => process.stdout.write(JSON.stringify({ comments: state.comments, calls })));
"""


def test_one_comment_is_written_and_then_edited(comment):
    first = comment({"prod": "## prod\n", "dev": "## dev\n"})["comments"]
    assert [one["on"] for one in first] == [7]
    assert first[0]["body"].index("## dev") < first[0]["body"].index("## prod")
    again = comment({"prod": "## prod again\n"}, first)
    assert len(again["comments"]) == 1
    assert "## prod again" in again["comments"][0]["body"]
    assert "## dev" not in again["comments"][0]["body"]
    (asked,) = (asked for what, asked in again["calls"] if what == "list" and "head" in asked)
    assert asked["head"] == "someone:topic"
    failed = comment({}, again["comments"], conclusion="failure")["comments"]
    assert "## prod again" in failed[0]["body"]
    nothing = comment({}, again["comments"])["comments"]
    assert "No stack changes." in nothing[0]["body"]


@pytest.mark.parametrize("folders", [True, False], ids=["a folder each", "no folders"])
@pytest.mark.parametrize("stacks", [["prod"], ["prod", "staging"]], ids=["one", "two"])
def test_every_stack_that_changes_is_in_the_comment(comment, stacks, folders):
    """In either layout: which one comes depends on the action's version and on the number."""
    mine = {"id": 1, "user": {"type": "Bot"}, "body": "<!-- kai-fleet preview -->\nold"}
    pages = {stack: f"## {stack} changes\n" for stack in stacks}
    (found,) = comment(pages, [mine], folders=folders)["comments"]
    assert all(f"## {stack} changes" in found["body"] for stack in stacks)
    assert "No stack changes." not in found["body"]


def test_a_person_who_writes_the_marker_keeps_the_comment(comment):
    theirs = {"id": 5, "user": {"type": "User"}, "body": "<!-- kai-fleet preview --> mine"}
    found = comment({"prod": "## prod\n"}, [theirs])["comments"]
    assert [one["id"] for one in found] == [5, 1]
    assert found[0]["body"] == theirs["body"]


@pytest.mark.parametrize(
    ("pages", "more"),
    [
        ({}, {}),
        ({}, {"conclusion": "failure"}),
        ({"prod": "## prod\n"}, {"pulls": [{"number": 8, "head": {"sha": "other"}}]}),
        ({"prod": ROOT / "README.md"}, {}),
    ],
    ids=["nothing", "failed-early", "head-moved-on", "a-link-to-a-file"],
)
def test_nothing_is_written_without_a_page_of_the_heads_own(comment, pages, more):
    assert comment(pages, **more)["comments"] == []
